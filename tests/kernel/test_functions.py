from __future__ import annotations

import inspect
from typing import Any

from jupyter_agentbox.kernel.functions import NOT_GIVEN, Caller, Default, given
from jupyter_agentbox.kernel.link import Link

from .fakes import ServerEnd


def test_default_looks_like_its_value_and_is_not_sent() -> None:
    assert repr(Default({"a": 1})) == "{'a': 1}"
    assert repr(NOT_GIVEN) == "<not sent>"
    assert given({"a": Default(1), "b": NOT_GIVEN, "c": None, "d": 0}) == {"c": None, "d": 0}


async def test_variants_are_the_same_function_with_another_end(link: Link, server: ServerEnd) -> None:
    _call = Caller("my-shop")

    namespace: dict[str, Any] = {"_call": _call, "__name__": "jupyter_agentbox.tools.my_shop"}
    code = "@_call.tool\ndef add(n: int, *, m: int = 1) -> int:\n    'Adds.'\n    return _call('add', {'n': n, 'm': m})"
    exec(code, namespace)
    add = namespace["add"]

    assert add(n=2).echo == add(2).echo == {"n": 2, "m": 1}
    assert (await add.aio(3)).echo == {"n": 3, "m": 1}
    assert add.raw(4, m=5).structured == {"echo": {"n": 4, "m": 5}}
    for variant in (add.aio, add.raw):
        assert inspect.signature(variant) == inspect.signature(add)
        assert variant.__doc__ == "Adds."
        assert variant.__module__ == "jupyter_agentbox.tools.my_shop"
    assert add.aio.__qualname__ == "add.aio"
    assert {call.server for call in server.calls} == {"my-shop"}
