"""JSON with comments and trailing commas, as written by VS Code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from jupyter_agentbox.core.calls import JsonValue

_STRING: Final = r'"(?:\\.|[^"\\\n])*"'
_COMMENT: Final = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?\*/", re.DOTALL)
# a comma with a value before it and nothing after it
_TRAILING_COMMA: Final = re.compile(rf"((?:{_STRING}|[\w.}}\]])\s*),(?=\s*[}}\]])|({_STRING})")
# a key, a string that is none, or the beginning or end of an object or a list
_TOKEN: Final = re.compile(rf"(?P<key>{_STRING})(?=\s*:)|{_STRING}|(?P<begin>[{{[])|(?P<end>[}}\]])")


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


def located_keys(text: str) -> Iterator[tuple[tuple[str, ...], int, bool]]:
    """Yield the path of each key, its offset, and whether its object already has it.

    Parameters
    ----------
    text : str
        A text that `parse` can parse.

    Yields
    ------
    tuple of (tuple of str, int, bool)
        The path is the keys from the outermost object on, without positions in lists.
    """
    path: list[str | None] = []
    seen: list[set[str]] = []
    for token in _TOKEN.finditer(without_comments(text)):
        if token["begin"] is not None:
            path.append(None)
            seen.append(set())
        elif token["end"] is not None:
            path.pop()
            seen.pop()
        elif token["key"] is not None:
            key = path[-1] = json.loads(token["key"])
            yield tuple(part for part in path if part is not None), token.start(), key in seen[-1]
            seen[-1].add(key)
