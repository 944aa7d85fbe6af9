from __future__ import annotations

from typing import Any

import pytest

from jupyter_agentbox.exceptions import ToolArgumentsError
from jupyter_agentbox.kernel.arguments import plain_arguments
from jupyter_agentbox.kernel.results import Record, Text


class Array:
    """What NumPy's arrays and scalars have in common."""

    def tolist(self) -> list[int]:
        return [1, 2]


def test_json_stays_and_what_is_clearly_json_becomes_it() -> None:
    arguments = {"a": (1, [2.5, None]), "b": Record(x=Text("t")), "c": Array(), "d": True}

    plain = plain_arguments("shop.add", arguments)

    assert plain == {"a": [1, [2.5, None]], "b": {"x": "t"}, "c": [1, 2], "d": True}
    assert type(plain["b"]) is dict
    assert type(plain["b"]["x"]) is str


cyclic: list[Any] = []
cyclic.append(cyclic)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(object(), id="object"),
        {1: 2},
        {"a": {None: 1}},
        {1, 2},
        b"bytes",
        float("nan"),
        [float("inf")],
        cyclic,
        "\ud800",
        {"\ud800": 1},
        pytest.param([10**5000], id="more digits than Python writes"),
    ],
    ids=repr,
)
def test_anything_else_is_refused_with_the_parameters_name(value: Any) -> None:
    with pytest.raises(ToolArgumentsError) as caught:
        plain_arguments("shop.add", {"good": 1, "bad": value})

    assert caught.value.parameter == "bad"
