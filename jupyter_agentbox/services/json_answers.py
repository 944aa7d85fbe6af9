"""JSON responses that every parser accepts, whatever data an MCP server or a kernel sent."""

from __future__ import annotations

import json
from math import isfinite
from typing import Final

_JSON: Final = json.JSONEncoder(allow_nan=False)


def answer_text(value: object) -> str:
    """Return a value as JSON; numbers that JSON cannot represent become ``null``.

    Python writes NaN and infinities, for which a browser rejects the entire response: one server would hide the data of
    all others.

    Parameters
    ----------
    value : object
        Any value that ``json`` can serialize.
    """
    try:
        return _JSON.encode(value)
    except ValueError:
        return _JSON.encode(_readable(value))


def _readable(value: object) -> object:
    if isinstance(value, dict):
        return {key: _readable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_readable(inner) for inner in value]
    return None if isinstance(value, float) and not isfinite(value) else value
