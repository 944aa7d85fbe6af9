"""The messages of a server's errors, bounded in length and without secrets."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from mcp.shared.exceptions import MCPError
from mcp_types import URL_ELICITATION_REQUIRED

from .logs import Redactor, as_text

#: Maximum length of an error's message, and of its data, in characters.
_LONGEST_TEXT: Final = 4000
_LONGEST_DATA: Final = 2000
_LONGEST_URL: Final = 2000


def text_of(error: Exception, redact: Redactor) -> str:
    """Return an error's message, with the data of a server's error, bounded in length and without secrets."""
    if not isinstance(error, MCPError):
        return bounded(f"{type(error).__name__}: {error}", redact)
    text = bounded(error.error.message, redact)
    data = error.error.data
    if data is None or data == error.error.message:
        return text
    return f"{text}\n{bounded(as_text(data), redact, _LONGEST_DATA)}"


def sign_in_url(error: MCPError) -> str:
    """Return the page of the Hub service on which people sign in, if its error names one; empty for other errors."""
    if error.code != URL_ELICITATION_REQUIRED:
        return ""
    data = error.error.data
    asked = data.get("elicitations") if isinstance(data, dict) else None
    first = asked[0] if isinstance(asked, list) and asked else None
    url = first.get("url") if isinstance(first, dict) else None
    return url if isinstance(url, str) and len(url) <= _LONGEST_URL and _is_page(url) else ""


def _is_page(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc


def bounded(text: str, redact: Redactor, longest: int = _LONGEST_TEXT) -> str:
    """Return the text without secrets, cut if it is too long."""
    text = text.strip()
    head = redact.head(text, longest)
    return head if len(text) <= longest else f"{head} … ({len(text)} characters)"


#: What the SDK's servers say if their tool asks with `ctx.elicit`, which protocol versions from 2026-07-28 on lack.
_CANNOT_ASK: Final = re.compile(r"Cannot send 'elicitation/create': this transport context has no back-channel")
_OLDER_ERA: Final = (
    "(jupyter_agentbox: this tool asks its question in a way that the newer protocol does not have. To let it ask,"
    ' write "protocolEra": "legacy" in the server\'s entry in mcp.json.)'
)


def hint_for(text: str) -> str:
    """Return what a person can do about the error of a call; empty if nothing is known."""
    return _OLDER_ERA if _CANNOT_ASK.search(text) else ""
