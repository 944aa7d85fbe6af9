"""Validation of the `results` of code against expectations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

#: Type name -> the Python types of its JSON values.
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "bool": (bool,),
    "boolean": (bool,),
    "int": (int,),
    "integer": (int,),
    "float": (int, float),
    "number": (int, float),
    "str": (str,),
    "string": (str,),
    "list": (list,),
    "array": (list,),
    "tuple": (list,),
    "dict": (dict,),
    "object": (dict,),
}


def problem_of(results: object, expected: Mapping[str, Any]) -> str:
    """Return what is wrong with the results; empty if they are valid.

    Parameters
    ----------
    results : object
        The code's `results`, as JSON.
    expected : mapping
        Key to a type, a type's name, or a description. A missing key is not an error: descriptions are for the
        generator of the code.
    """
    if not isinstance(results, dict):
        return f"TypeError: `results` must be a dict, not {type(results).__name__}"
    for key, wanted in expected.items():
        types = _TYPES.get(wanted.__name__ if isinstance(wanted, type) else wanted if isinstance(wanted, str) else "")
        if types is not None and key in results and not _is_one_of(results[key], types):
            name = wanted.__name__ if isinstance(wanted, type) else wanted
            return f"TypeError: `results[{key!r}]` must be of type {name}, not {type(results[key]).__name__}"
    return ""


def _is_one_of(value: object, types: tuple[type, ...]) -> bool:
    if isinstance(value, bool):  # which is a number in Python
        return bool in types
    return isinstance(value, types)
