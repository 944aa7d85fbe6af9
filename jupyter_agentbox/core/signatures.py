"""A tool call on one line, as in code, for records that people read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .calls import JsonValue
from .secret_names import is_secret_name
from .text import one_line

#: Maximum length of a value, and of a call, in characters.
_VALUE: Final = 80
_CALL: Final = 400
#: Maximum length of what was replaced, in characters.
_REPLACED: Final = 200
#: Placeholder for a probable secret.
_HIDDEN: Final = "•••"


def signature(name: str, arguments: Mapping[str, JsonValue]) -> str:
    """Return a call on one line, with long values cut and probable secrets hidden.

    Parameters
    ----------
    name : str
        ``server.tool``, untrusted.
    arguments : mapping
        By name, untrusted.
    """
    return one_line(f"{name}({listed(arguments)})", _CALL)


def listed(arguments: Mapping[str, JsonValue]) -> str:
    """Return arguments on one line: ``product_id=5, price=14.9``."""
    return ", ".join(f"{one_line(name, _VALUE)}={_value(name, arguments[name])}" for name in arguments)


def replaced(asked: Mapping[str, JsonValue], edited: Mapping[str, JsonValue]) -> str:
    """Return on one line the arguments that the code asked for, where an edit has others; empty if it has all."""
    missing = object()
    changed = {name: value for name, value in asked.items() if edited.get(name, missing) != value}
    return one_line(listed(changed), _REPLACED) if changed else ""


def _value(name: str, value: JsonValue) -> str:
    if is_secret_name(name) and value not in (None, ""):
        return _HIDDEN
    return one_line(_written(value), _VALUE)


def _written(value: JsonValue) -> str:
    """Return a value in Python notation, with probable secrets hidden at all levels."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name!r}: {_value(name, each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_written, value[:_VALUE])) + "]"
    if isinstance(value, str) and len(value) > 2 * _VALUE:
        return repr(value[: 2 * _VALUE])[:-1] + "…"  # without the closing quote: what follows may be what matters
    return repr(value)
