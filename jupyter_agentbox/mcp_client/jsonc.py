"""JSON with comments and trailing commas, as written by VS Code."""

from __future__ import annotations

import json
import re
from typing import Final

from jupyter_agentbox.core.calls import JsonValue

_STRING: Final = r'"(?:\\.|[^"\\\n])*"'
_COMMENT: Final = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?\*/", re.DOTALL)
# a comma with a value before it and nothing after it
_TRAILING_COMMA: Final = re.compile(rf"((?:{_STRING}|[\w.}}\]])\s*),(?=\s*[}}\]])|({_STRING})")


def parse(text: str) -> JsonValue:
    """Parse the text.

    Raises
    ------
    json.JSONDecodeError
        With the original line and column: comments are replaced by blanks, which keeps positions.
    """
    value: JsonValue = json.loads(without_trailing_commas(without_comments(text)))
    return value


def without_comments(text: str) -> str:
    """Replace comments by blanks, which keeps positions."""
    return _COMMENT.sub(lambda found: found[1] or re.sub(r"[^\n]", " ", found[0]), text)


def without_trailing_commas(text: str) -> str:
    """Replace trailing commas in a text without comments by blanks, which keeps positions."""
    return _TRAILING_COMMA.sub(lambda found: f"{found[1]} " if found[1] else found[2], text)
