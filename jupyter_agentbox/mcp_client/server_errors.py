"""The words of a server's error, whole but bounded."""

from __future__ import annotations

import json
from typing import Final

from mcp.shared.exceptions import MCPError

#: How much of an error's text is passed on, in characters, and how much of its data.
_LONGEST_TEXT: Final = 4000
_LONGEST_DATA: Final = 2000


def text_of(error: Exception) -> str:
    """Return what an error says, with its data if it is a server's, in a few thousand characters at most."""
    if not isinstance(error, MCPError):
        return bounded(f"{type(error).__name__}: {error}")
    text = bounded(error.error.message)
    data = error.error.data
    if data is None or data == error.error.message:
        return text
    shown = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, default=str)
    return f"{text}\n{bounded(shown, _LONGEST_DATA)}"


def bounded(text: str, longest: int = _LONGEST_TEXT) -> str:
    """Return the text, cut where it is too long."""
    text = text.strip()
    return text if len(text) <= longest else f"{text[:longest]} … ({len(text)} characters)"
