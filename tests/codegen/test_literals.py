from __future__ import annotations

import ast
from typing import Any

import pytest

from jupyter_agentbox.codegen.literals import LONGEST, literal, scalar


@pytest.mark.parametrize("value", [None, True, -3, 2.5, "é\u202e'\"\\\n\ud800", [1, ["a"]], {"a": {"b": None}}, [], {}])
def test_literal_has_the_value(value: Any) -> None:
    text = literal(value)

    assert text is not None
    assert ast.literal_eval(text) == value
    assert text.isprintable()


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        "x" * (LONGEST + 1),
        1 << (LONGEST + 1),
        nested(100_000),
        [0] * 1000,
        {"a" * 400: 1},
        ["x" * 200] * 2,
    ],
    ids=lambda value: type(value).__name__,
)
def test_long_and_deep_values_have_none(value: Any) -> None:
    assert literal(value) is None


def test_scalars_are_what_a_literal_type_can_hold() -> None:
    assert [scalar(value) for value in ("a", 1, True, None)] == ["'a'", "1", "True", "None"]
    assert [scalar(value) for value in (1.5, [], {})] == [None, None, None]
