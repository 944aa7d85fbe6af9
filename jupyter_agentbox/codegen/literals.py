"""Python literals for JSON values from schemas: short, safe source text, or none."""

from __future__ import annotations

import math
from typing import Final

from jupyter_agentbox.core.calls import JsonValue

#: Maximum length of a literal in source, in characters.
LONGEST: Final = 300
#: Maximum nesting depth.
_DEEPEST: Final = 8


class _NoLiteralError(Exception):
    """The value has no short literal."""


def literal(value: JsonValue) -> str | None:
    """Return the value as Python source.

    ``repr`` of a string escapes unprintable characters, so the text can neither end the literal nor reorder a line.

    Parameters
    ----------
    value : JSON value
        Any value, even a hostile one: the work is limited.

    Returns
    -------
    str or None
        ``None`` if the literal would be too long or too deep, or the value is not JSON (a NaN, an infinity).
    """
    pieces: list[str] = []
    try:
        _render(value, pieces, _DEEPEST)
    except _NoLiteralError:
        return None
    text = "".join(pieces)
    return text if len(text) <= LONGEST else None


def scalar(value: JsonValue) -> str | None:
    """Return a string, an integer, a boolean or ``None`` as Python source; ``None`` for anything else."""
    return literal(value) if value is None or isinstance(value, str | int) else None


def _render(value: object, pieces: list[str], depth: int) -> None:
    if depth == 0 or len(pieces) > LONGEST:
        raise _NoLiteralError
    if isinstance(value, list):
        _render_all(value, pieces, depth, "[]")
    elif isinstance(value, dict):
        _render_all(value.items(), pieces, depth, "{}")
    elif isinstance(value, tuple):  # a pair of a dict
        _render(value[0], pieces, depth)
        pieces.append(": ")
        _render(value[1], pieces, depth)
    elif value is None or isinstance(value, bool) or _is_short(value):
        pieces.append(repr(value))
    else:
        raise _NoLiteralError


def _render_all(items: object, pieces: list[str], depth: int, brackets: str) -> None:
    pieces.append(brackets[0])
    for index, item in enumerate(items):  # type: ignore[arg-type, var-annotated]  # a list, or a dict's items
        if index:
            pieces.append(", ")
        _render(item, pieces, depth - 1)
    pieces.append(brackets[1])


def _is_short(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST
    if isinstance(value, int):
        return value.bit_length() <= LONGEST
    return isinstance(value, float) and math.isfinite(value)
