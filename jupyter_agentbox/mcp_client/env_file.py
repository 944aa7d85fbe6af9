"""The `envFile` of an MCP server's configuration, in the format of `python-dotenv`."""

from __future__ import annotations

import re
from typing import Final

_BLANK: Final = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*[ \t]*(?:#[^\n]*)?\Z|(?:[ \t]*(?:#[^\n]*)?\n)*")
_BINDING: Final = re.compile(
    r"""[ \t]*(?:export[ \t]+)?(?P<name>[^=\#\s'"]+)[ \t]*=
    (?: [ \t]*'(?P<single>(?:[^'\\]|\\.)*)'[ \t]*(?:\#[^\n]*)?
      | [ \t]*"(?P<double>(?:[^"\\]|\\.)*)"[ \t]*(?:\#[^\n]*)?
      | (?P<plain>(?![ \t]*['"])[^\n]*)
    )(?:\n|\Z)""",
    re.VERBOSE | re.DOTALL,
)
_SINGLE: Final = re.compile(r"\\([\\'])")
_DOUBLE: Final = re.compile(r"\\([\\'\"abfnrtv])")
_COMMENT: Final = re.compile(r"\s+#.*")
_ESCAPES: Final = dict(zip("abfnrtv", "\a\b\f\n\r\t\v", strict=True))


def parse_env_file(text: str) -> dict[str, str]:
    """Parse an ``envFile``: ``NAME=value``, ``#`` comments, optional ``export``; quoted values may span lines.

    Raises
    ------
    ValueError
        If a line is invalid; the message has its number but not its text.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    values: dict[str, str] = {}
    place = 0
    while True:
        blank = _BLANK.match(text, place)
        place = blank.end() if blank is not None else place
        if place == len(text):
            return values
        found = _BINDING.match(text, place)
        if found is None or "\0" in found[0]:
            raise ValueError(f"line {text.count(chr(10), 0, place) + 1} is not `NAME=value`")
        values[found["name"]] = _value(found)
        place = found.end()


def _value(found: re.Match[str]) -> str:
    if (single := found["single"]) is not None:
        return _SINGLE.sub(r"\1", single)
    if (double := found["double"]) is not None:
        return _DOUBLE.sub(lambda escape: _ESCAPES.get(escape[1], escape[1]), double)
    return _COMMENT.sub("", found["plain"]).strip()
