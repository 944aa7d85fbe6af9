"""Names, types and shapes of the user's variables, for agents. Never values."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

#: Maximum number of variables listed; below, the maximum length of a name or list of columns.
_MOST: Final = 200
_LONG: Final = 200
#: Packages whose objects have a shape that can be read without running user code.
_WITH_SHAPE: Final = ("jax", "jaxlib", "numpy", "pandas", "polars", "scipy", "tensorflow", "torch", "xarray")
_SIZED: Final = (str, bytes, bytearray, list, tuple, dict, set, frozenset)


def describe_variables(namespace: Mapping[str, Any], hidden: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each of the user's variables.

    Parameters
    ----------
    namespace : mapping
        The kernel's namespace.
    hidden : mapping
        Names and values that IPython itself defined there.
    """
    own = [
        (name, value)
        for name, value in list(namespace.items())
        if not name.startswith("_") and hidden.get(name, namespace) is not value and not inspect.ismodule(value)
    ]
    for name, value in own[:_MOST]:
        yield f"{name[:_LONG]}: {_describe(value)}"
    if len(own) > _MOST:
        yield f"({len(own) - _MOST} more)"


def print_variables(shell: Any) -> None:
    """Print the variables of a kernel."""
    lines = list(describe_variables(shell.user_ns, shell.user_ns_hidden))
    sys.stdout.write("\n".join(lines) or "(no variables)")


def _describe(value: Any) -> str:
    kind = type(value)
    if inspect.isfunction(value):
        return f"function {_signature(value)}"
    if inspect.isclass(value):
        return "class"
    if kind in _SIZED:
        return f"{kind.__name__}, length {len(value)}"
    if kind.__module__.partition(".")[0] in _WITH_SHAPE:
        return f"{kind.__module__.partition('.')[0]}.{kind.__name__}{_shape(value)}"
    return kind.__qualname__[:_LONG]


def _signature(function: Any) -> str:
    try:
        return str(inspect.signature(function))[:_LONG]
    except (TypeError, ValueError):
        return "(…)"


def _shape(value: Any) -> str:
    try:
        shape, kind, columns = (getattr(value, name, None) for name in ("shape", "dtype", "columns"))
        told = [f"shape {tuple(shape)}"] if shape is not None else []
        told += [f"dtype {kind}"] if kind is not None else []
        told += [f"columns {', '.join(map(str, columns))}"[:_LONG]] if columns is not None else []
    except Exception:  # noqa: BLE001  # a lazy or broken table; its name and type are enough
        return ""
    return "".join(f", {one}" for one in told)
