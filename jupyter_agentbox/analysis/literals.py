"""JSON values as literals of Python: read from a syntax tree, compared, and written."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from typing import Any, Final

from jupyter_agentbox.core.calls import JsonValue

from .edited_call import LONGEST, NotUpdatableError

#: Lines that IPython changes even in a text: what looks like a prompt of a pasted session, and nothing but spaces.
_CHANGED_LINE: Final = re.compile(r"^[^\S\n]*(>>>|\.\.\.|(\[\w+\] *)?In *\[)|^[^\S\n]+$", re.MULTILINE)
_NOT_GIVEN: Final = object()


def _plain(node: ast.expr) -> Any:
    """Return the value of a literal; a special marker if it is not one, or not JSON."""
    match node:
        case ast.Constant(value=str() | int() | float() | None as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            parts = [_plain(item) for item in items]
            return _NOT_GIVEN if any(part is _NOT_GIVEN for part in parts) else parts
        case ast.Dict(keys=keys, values=values) if (names := text_keys(keys)) is not None:
            parts = [_plain(item) for item in values]
            return _NOT_GIVEN if any(part is _NOT_GIVEN for part in parts) else dict(zip(names, parts, strict=True))
    return _NOT_GIVEN


def is_plain(node: ast.expr) -> bool:
    """Whether an expression is a literal of a JSON value."""
    return _plain(node) is not _NOT_GIVEN


def is_same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same: 1, 1.0 and True are three, and 0.0 and -0.0 are two."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(is_same(item, other[key]) for key, item in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, float):
        return repr(one) == repr(other)
    return bool(one == other)


def agrees(node: ast.expr, value: JsonValue) -> bool:
    """Whether an expression may have a value: each literal part of it equals that part of the value."""
    match node:
        case ast.Dict(keys=keys, values=values) if (names := text_keys(keys)) is not None:
            found = dict(zip(names, values, strict=True))
            return (
                isinstance(value, dict)
                and found.keys() == value.keys()
                and all(agrees(item, value[key]) for key, item in found.items())
            )
        case ast.List(elts=items) | ast.Tuple(elts=items) if not has_star(items):
            return (
                isinstance(value, list)
                and len(items) == len(value)
                and all(agrees(item, part) for item, part in zip(items, value, strict=True))
            )
    plain = _plain(node)
    return plain is _NOT_GIVEN or is_same(plain, value)


def text_keys(keys: Sequence[ast.expr | None]) -> list[str] | None:
    """Return the keys of a dict; `None` if one is not a string literal."""
    texts = [key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
    return texts if len(texts) == len(keys) else None


def has_star(items: Sequence[ast.expr]) -> bool:
    """Whether one of the items is unpacked, as in `[*rows]`."""
    return any(isinstance(each, ast.Starred) for each in items)


def source_of(value: JsonValue, *, like: str) -> str:
    """Return a value as Python source, with the kind of quotes of the text that it replaces."""
    quotes = re.match(r"\w{0,2}(\"\"\"|'''|\"|')", like)
    text = _render(value, quotes[1] if quotes else '"')
    if len(text) > LONGEST:
        raise NotUpdatableError(f"The edited value has more than {LONGEST:,} characters. Write it there.")
    return text


def _render(value: JsonValue, quotes: str) -> str:
    if isinstance(value, str):
        return _quoted(value, quotes)
    one = quotes[0]
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(key, one)}: {_render(item, one)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_render(item, one) for item in value) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        raise NotUpdatableError("The edited value has a number without a literal in Python. Write it there.")
    return repr(value)


def _quoted(value: str, quotes: str) -> str:
    """Return a text as a literal in which unprintable characters are escaped, and nothing ends the literal early."""
    if len(quotes) > 1 and ("\n" not in value or _CHANGED_LINE.search(value)):
        quotes = quotes[0]
    is_long = len(quotes) > 1
    pieces = [
        character
        if is_long and character == "\n"
        else f"\\{character}"
        if character in {quotes[0], "\\"}
        else repr(character)[1:-1]
        if character not in {"'", '"'}
        else character
        for character in value
    ]
    return f"{quotes}{''.join(pieces)}{quotes}"
