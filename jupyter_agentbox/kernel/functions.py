"""Runtime of generated modules: functions that send their arguments, and defaults that are shown but not sent."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, Final

from . import runtime


class Default:
    """A schema's default: shown in the signature, but applied by the server, never sent.

    Parameters
    ----------
    value : object
        The default.
    """

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __repr__(self) -> str:
        return repr(self.value)


class _NotGiven(Default):
    __slots__ = ()

    def __repr__(self) -> str:
        return "<not sent>"


#: Default of a parameter whose schema has none; not sent. An explicit ``None`` is sent.
NOT_GIVEN: Final = _NotGiven(None)


class Caller:
    """Calls the tools of one server; one per generated module.

    Parameters
    ----------
    server : str
        The server's name in the configuration.
    """

    def __init__(self, server: str) -> None:
        self.server = server

    def __call__(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Call the tool, wait, and return its value."""
        __tracebackhide__ = True  # the traceback of a rejection ends at the cell
        return runtime.link().call(self.server, tool, given(arguments)).value

    async def call_async(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Call the tool without blocking the event loop; return its value."""
        __tracebackhide__ = True
        return (await runtime.link().call_async(self.server, tool, given(arguments))).value

    def call_raw(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Call the tool, wait, and return the whole result."""
        __tracebackhide__ = True
        return runtime.link().call(self.server, tool, given(arguments))

    def tool(self, function: FunctionType) -> FunctionType:
        """Add the variants ``.aio`` (awaitable) and ``.raw`` (the whole result) to a generated function.

        They are the same code with another ``_call``, and so have the same signature, checks and documentation.
        """
        variants = {"aio": self.call_async, "raw": self.call_raw}
        for name, call in variants.items():
            setattr(function, name, _with_call(function, name, call))
        return function


def given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that were given: those that are not a `Default`."""
    return {name: value for name, value in arguments.items() if not isinstance(value, Default)}


def _with_call(function: FunctionType, name: str, call: Callable[..., Any]) -> FunctionType:
    namespace = {
        "_call": call,
        "__name__": function.__module__,
        "__builtins__": function.__globals__["__builtins__"],
    }
    variant = FunctionType(function.__code__, namespace, function.__name__)
    variant.__kwdefaults__ = function.__kwdefaults__
    variant.__annotations__ = function.__annotations__
    variant.__doc__ = function.__doc__
    variant.__module__ = function.__module__
    variant.__qualname__ = f"{function.__qualname__}.{name}"
    if name == "aio" and sys.version_info >= (3, 12):
        inspect.markcoroutinefunction(variant)
    return variant
