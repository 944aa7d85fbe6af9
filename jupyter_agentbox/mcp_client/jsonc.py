"""JSON with comments and trailing commas, as VS Code writes it."""

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
        With the line and column of the original text: comments become blanks, so nothing moves.
    """
    value: JsonValue = json.loads(without_trailing_commas(without_comments(text)))
    return value


def without_comments(text: str) -> str:
    """Return the text with blanks in the place of comments: nothing moves."""
    return _COMMENT.sub(lambda found: found[1] or re.sub(r"[^\n]", " ", found[0]), text)


def without_trailing_commas(text: str) -> str:
    """Return a text without comments with blanks in the place of trailing commas: nothing moves."""
    return _TRAILING_COMMA.sub(lambda found: f"{found[1]} " if found[1] else found[2], text)
