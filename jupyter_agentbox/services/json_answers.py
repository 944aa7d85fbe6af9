"""Answers as JSON that every reader takes, whatever an MCP server or a kernel put into them."""

from __future__ import annotations

import json
from math import isfinite
from typing import Final

_JSON: Final = json.JSONEncoder(allow_nan=False)


def answer_text(value: object) -> str:
    """Return a value as JSON; a number that JSON does not have is ``null``.

    Python writes NaN and infinities, and a browser then reads nothing of the whole answer: one server would hide what
    all others say.

    Parameters
    ----------
    value : object
        What ``json`` can write.
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
