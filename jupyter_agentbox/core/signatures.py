"""A tool call on one line, as in code, for records that people read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from .calls import JsonValue
from .secret_names import is_secret_name
from .text import counted, one_line

#: Maximum length of a value, and of a call, in characters.
_VALUE: Final = 80
_CALL: Final = 400
#: Characters of a longer value at its beginning and at its end, where something may be hidden.
_HEAD: Final = 40
_TAIL: Final = 24
#: Maximum length of a written value before it is cut: its characters may be escapes.
_WRITTEN: Final = 1_000_000
#: Maximum length of what was replaced, in characters.
_REPLACED: Final = 200
#: Placeholder for a probable secret.
_HIDDEN: Final = "•••"

T = TypeVar("T")


def signature(name: str, arguments: Mapping[str, JsonValue]) -> str:
    """Return a call on one line, with long values cut and probable secrets hidden.

    Of a long value its beginning and its end are shown, and of many arguments the first ones and the last.

    Parameters
    ----------
    name : str
        ``server.tool``, untrusted.
    arguments : mapping
        By name, untrusted.
    """
    shown = one_line(name)
    return one_line(f"{shown}({listed(arguments, _CALL - len(shown) - 2)})", _CALL)


def listed(arguments: Mapping[str, JsonValue], limit: int) -> str:
    """Return arguments on one line, in about `limit` characters: ``product_id=5, price=14.9``."""
    if not arguments:
        return ""
    *names, last = arguments
    end = _argument(last, arguments[last])
    left = limit - len(end)
    parts: list[str] = []
    for name in names:
        part = _argument(name, arguments[name])
        left -= len(part) + 2
        if left < len("…, "):
            return ", ".join([*parts, "…", end])
        parts.append(part)
    return ", ".join([*parts, end])


def not_in_full(name: str, arguments: Mapping[str, JsonValue]) -> list[str]:
    """Return the names of the arguments of which `signature` does not show every character.

    Parameters
    ----------
    name, arguments
        As for `signature`.
    """
    parts = {one: _argument(one, value) for one, value in arguments.items()}
    if len(one_line(name)) + len("(), …") + len(", ".join(parts.values())) > _CALL:
        return list(arguments)
    return [one for one, part in parts.items() if part != f"{one}={arguments[one]!r}"]


def replaced(asked: Mapping[str, JsonValue], edited: Mapping[str, JsonValue]) -> str:
    """Return on one line the arguments that the code asked for, where an edit has others; empty if it has all."""
    missing = object()
    changed = {name: value for name, value in asked.items() if edited.get(name, missing) != value}
    return one_line(listed(changed, _REPLACED), _REPLACED) if changed else ""


def _argument(name: str, value: JsonValue) -> str:
    return f"{one_line(name, _VALUE)}={_value(name, value)}"


def _value(name: str, value: JsonValue) -> str:
    """Return a value on one line, with its end if it is cut."""
    if is_secret_name(name) and value not in (None, ""):
        return _HIDDEN
    if isinstance(value, str):
        return _text(value)
    line = one_line(_written(value), _WRITTEN)
    return line if len(line) <= _VALUE else f"{line[:_HEAD]} … {line[-_TAIL:]}"


def _text(value: str) -> str:
    """Return a text in quotes; what says that it was cut is outside of them, where the text cannot write."""
    if len(value) <= 2 * _VALUE and len(line := one_line(repr(value), _WRITTEN)) <= _VALUE:
        return line
    head, tail = (one_line(repr(part), 2 * _HEAD) for part in (value[:_HEAD], value[-_TAIL:]))
    return f"{head}… ({counted(len(value), 'character')}) …{tail}"


def _written(value: JsonValue) -> str:
    """Return a value in Python notation, with probable secrets hidden at all levels."""
    if isinstance(value, dict):
        return "{" + _joined(list(value.items()), lambda item: f"{item[0]!r}: {_value(*item)}") + "}"
    if isinstance(value, list):
        return "[" + _joined(value, _written) + "]"
    return _text(value) if isinstance(value, str) else repr(value)


def _joined(items: Sequence[T], write: Callable[[T], str]) -> str:
    """Write items of a list or a mapping; of many, the first and the last ones."""
    if len(items) <= _VALUE:
        return ", ".join(map(write, items))
    return ", ".join([*map(write, items[:_HEAD]), "…", *map(write, items[-_TAIL:])])
