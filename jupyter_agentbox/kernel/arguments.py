"""Conversion of arguments to plain JSON: the server stores, shows and runs exactly what is sent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from jupyter_agentbox.core.calls import MAX_INTEGER_BITS, JsonObject, JsonValue
from jupyter_agentbox.exceptions import ToolArgumentsError

_DEEPEST: Final = 100


def plain_arguments(tool: str, arguments: Mapping[str, Any]) -> JsonObject:
    """Return the arguments as JSON.

    Tuples become lists, mappings dicts, and objects with ``tolist`` (NumPy, pandas) the result of that. Nothing else is
    converted.

    Parameters
    ----------
    tool : str
        ``server.tool``, for the error message.
    arguments : mapping
        The arguments by wire name.

    Raises
    ------
    ToolArgumentsError
        If a value cannot be sent as JSON, with the parameter's name.
    """
    result: JsonObject = {}
    for name, value in arguments.items():
        try:
            result[name] = _plain(value, _DEEPEST)
        except _NotJsonError as problem:
            raise ToolArgumentsError(f"`{tool}`: parameter `{name}` {problem}", parameter=name) from None
    return result


class _NotJsonError(Exception):
    pass


def _plain(value: Any, depth: int) -> JsonValue:
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return _plain_text(value)
    if isinstance(value, int | float):
        return _plain_number(value)
    if depth == 0:
        raise _NotJsonError("is nested too deeply, or contains itself")
    if isinstance(value, Mapping):
        return {_plain_key(key): _plain(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, depth - 1) for item in value]
    if callable(convert := getattr(value, "tolist", None)):
        return _plain(convert(), depth - 1)
    kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    raise _NotJsonError(f"holds a `{kind}`, which is not JSON: send text, numbers, lists or dicts")


def _plain_number(value: float) -> float:
    if isinstance(value, int):
        if value.bit_length() > MAX_INTEGER_BITS:
            raise _NotJsonError("holds an integer of more than 3,000 digits: send it as text")
        return int(value)
    if not math.isfinite(value):
        raise _NotJsonError(f"is {value}, which JSON cannot express: send None or a number")
    return float(value)


def _plain_key(key: Any) -> str:
    if not isinstance(key, str):
        raise _NotJsonError(f"holds a dict with the key {key!r:.80}: the keys of JSON are text")
    return _plain_text(key)


def _plain_text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _NotJsonError("holds text with a lone surrogate, which cannot be sent as UTF-8") from None
    return str.__str__(value)
