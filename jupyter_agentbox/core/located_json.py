"""A JSON parser that keeps the position of each value, so that errors in a file have a line and column.

It is stricter than Python's ``json``: no duplicate keys, no number that is out of range or loses digits, no lone
surrogates, and no nesting deeper than `MAX_DEPTH`.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from math import isinf
from typing import Final, NamedTuple, TypeAlias

from .calls import JsonValue

MAX_DEPTH: Final = 32
#: Maximum length of a number, including its point and exponent.
MAX_NUMBER: Final = 1000

_TOKEN: Final = re.compile(
    r"""[ \t\n\r]*(?:
    (?P<string>"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*")
    |(?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?(?![0-9.eE]))
    |(?P<word>(?:true|false|null)(?![A-Za-z0-9_]))
    |(?P<sign>[][{}:,])
    |(?P<end>\Z))""",
    re.VERBOSE,
)
_BLANK: Final = re.compile(r"[ \t\n\r]*")
_WORDS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}
_DIGIT: Final = re.compile(r"[1-9]")
_IS_FLOAT: Final = re.compile(r"[.eE]")


class LocatedJsonError(ValueError):
    """A text is not valid JSON.

    Attributes
    ----------
    at : int
        Character offset of the error.
    """

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


#: The content of a `Node`.
Content: TypeAlias = "bool | int | float | str | list[Node] | dict[str, Node] | None"


@dataclass(slots=True)
class Node:
    """A JSON value with its position.

    Parameters
    ----------
    content : JSON value
        The value, with nodes in place of its members.
    at : int
        Character offset of its start.
    keys : dict
        For an object: the offsets of its keys.
    """

    content: Content
    at: int
    keys: dict[str, int] = field(default_factory=dict)

    @property
    def value(self) -> JsonValue:
        """The plain value, without positions."""
        if isinstance(self.content, list):
            return [inner.value for inner in self.content]
        if isinstance(self.content, dict):
            return {name: inner.value for name, inner in self.content.items()}
        return self.content


class Lines:
    """Converts offsets in a text to lines and columns.

    Parameters
    ----------
    text : str
        The text.
    """

    def __init__(self, text: str) -> None:
        self._starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def place(self, at: int) -> tuple[int, int]:
        """Return the line and column of an offset, both from 1."""
        line = bisect_right(self._starts, at)
        return line, at - self._starts[line - 1] + 1


def parse(text: str) -> Node:
    """Parse a JSON text.

    Raises
    ------
    LocatedJsonError
        If it is not valid JSON, or violates this parser's limits.
    """
    reader = _Reader(text)
    node = reader.value(reader.next(), 0)
    reader.expect_end()
    return node


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def next(self) -> _Token:
        found = _TOKEN.match(self._text, self._at)
        if found is None or found.lastgroup is None:
            raise self._strange()
        self._at = found.end()
        return _Token(found.lastgroup, found[found.lastgroup], found.start(found.lastgroup))

    def expect_end(self) -> None:
        token = self.next()
        if token.kind != "end":
            raise LocatedJsonError("expected the end of the file", token.at)

    def value(self, token: _Token, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise LocatedJsonError(f"it is nested more than {MAX_DEPTH} levels deep", token.at)
        if token.text == "{" and token.kind == "sign":
            return self._object(token, depth)
        if token.text == "[" and token.kind == "sign":
            return self._list(token, depth)
        if token.kind == "string":
            return Node(_string(token), token.at)
        if token.kind == "number":
            return Node(_number(token), token.at)
        if token.kind == "word":
            return Node(_WORDS[token.text], token.at)
        raise LocatedJsonError("expected a value", token.at)

    def _object(self, start: _Token, depth: int) -> Node:
        members: dict[str, Node] = {}
        keys: dict[str, int] = {}
        token = self.next()
        while token.text != "}" or token.kind != "sign":
            if token.kind != "string":
                raise LocatedJsonError("expected a key in double quotes", token.at)
            key = _string(token)
            if key in members:
                raise LocatedJsonError(f"the key `{key:.80}` stands here twice", token.at)
            keys[key] = token.at
            self._sign(":")
            members[key] = self.value(self.next(), depth + 1)
            token = self._sign(",", "}")
            if token.text == "," and (token := self.next()).text == "}":
                raise LocatedJsonError("expected another key after the comma", token.at)
        return Node(members, start.at, keys)

    def _list(self, start: _Token, depth: int) -> Node:
        items: list[Node] = []
        token = self.next()
        while token.text != "]" or token.kind != "sign":
            items.append(self.value(token, depth + 1))
            token = self._sign(",", "]")
            if token.text == "," and (token := self.next()).text == "]":
                raise LocatedJsonError("expected another value after the comma", token.at)
        return Node(items, start.at)

    def _sign(self, *signs: str) -> _Token:
        token = self.next()
        if token.kind != "sign" or token.text not in signs:
            raise LocatedJsonError("expected " + " or ".join(f"`{sign}`" for sign in signs), token.at)
        return token

    def _strange(self) -> LocatedJsonError:
        blank = _BLANK.match(self._text, self._at)
        at = blank.end() if blank is not None else self._at
        rest = self._text[at : at + 9]
        if rest.startswith('"'):
            return LocatedJsonError(
                "this string does not end, or has an escape or a character that JSON does not allow", at
            )
        if rest.startswith(("//", "/*", "#")):
            return LocatedJsonError("JSON has no comments", at)
        if rest.startswith(("NaN", "Infinity", "-Infinity")):
            return LocatedJsonError("JSON has no NaN and no infinity", at)
        return LocatedJsonError("this is not JSON", at)


def _string(token: _Token) -> str:
    text = str(json.loads(token.text)) if "\\" in token.text else token.text[1:-1]
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        raise LocatedJsonError("this string has half a character (a lone surrogate)", token.at) from None
    return text


def _number(token: _Token) -> int | float:
    if len(token.text) > MAX_NUMBER:
        raise LocatedJsonError("this number has too many digits", token.at)
    if not _IS_FLOAT.search(token.text):
        return int(token.text)
    number = float(token.text)
    mantissa = re.split("[eE]", token.text)[0]
    if isinf(number) or (number == 0 and _DIGIT.search(mantissa)):
        raise LocatedJsonError("this number is out of range", token.at)
    if number and Decimal(token.text) != Decimal(repr(number)):
        raise LocatedJsonError("this number has more digits than can be compared", token.at)
    return number


def member(node: Node, name: str) -> Node | None:
    """Return the member of an object with a name, if any."""
    return node.content.get(name) if isinstance(node.content, dict) else None


def items(node: Node, name: str) -> Sequence[Node]:
    """Return the elements of the list with a name."""
    found = member(node, name)
    return found.content if found is not None and isinstance(found.content, list) else ()
