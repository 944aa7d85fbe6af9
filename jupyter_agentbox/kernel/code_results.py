"""The kernel's namespace before and after code of a `CodeService`: cleared, and the value of `results`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from IPython import get_ipython

from jupyter_agentbox.protocol.notebook import RESULTS_MIME_TYPE

#: Maximum nesting depth of `results`; deeper values are given as text.
_MOST_LEVELS: Final = 20
#: Maximum length of a value given as text, in characters.
_MOST_CHARACTERS: Final = 10_000


def begin() -> None:
    """Clear the names that earlier code defined."""
    shell: Any = get_ipython()
    for name in [name for name in shell.user_ns if name not in shell.user_ns_hidden]:
        del shell.user_ns[name]


def publish() -> None:
    """Display the value of `results`, for the calling process."""
    shell: Any = get_ipython()
    found = shell.user_ns.get("results")
    answer = {
        "type": type(found).__name__ if "results" in shell.user_ns else None,
        "results": as_json(found) if isinstance(found, Mapping) else None,
    }
    shell.display_pub.publish(data={RESULTS_MIME_TYPE: answer})


def as_json(value: Any, level: int = 0) -> Any:
    """Return a value as JSON: NumPy numbers as numbers, arrays and columns as lists, times as ISO 8601, else text.

    Numbers that JSON cannot represent (NaN, infinities) become ``None``.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if level >= _MOST_LEVELS:
        return repr(value)[:_MOST_CHARACTERS]
    if isinstance(value, Mapping):
        return {str(key): as_json(item, level + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [as_json(item, level + 1) for item in value]
    return _converted(value, level)


def _converted(value: Any, level: int) -> Any:
    for method, options in (("tolist", {}), ("to_dict", {"orient": "list"}), ("to_dict", {}), ("isoformat", {})):
        convert = getattr(value, method, None)
        if not callable(convert) or isinstance(value, type):
            continue
        try:
            return as_json(convert(**options), level + 1)
        except (TypeError, ValueError):
            continue
    return (value if isinstance(value, str) else repr(value))[:_MOST_CHARACTERS]
