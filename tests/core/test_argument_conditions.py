from __future__ import annotations

import pytest

from jupyter_agentbox.core.argument_conditions import conditions_of, problem_of
from jupyter_agentbox.core.calls import JsonValue

BIG = 2**53 + 1


def holds(condition: JsonValue, value: JsonValue, *, careful: bool = False) -> bool | None:
    ((name, test),) = conditions_of({"x": condition}, careful=careful)
    assert name == "x"
    return test(value)


@pytest.mark.parametrize(
    ("condition", "value", "expected"),
    [
        ("a*", "abc", True),
        ("a*", "bc", False),
        ("a*", "a\nb", True),
        ("a*", ["abc"], None),
        ("7", 7, None),
        (7, 7, True),
        (7, 7.0, True),
        (7, 7.5, False),
        (BIG, BIG, True),
        (BIG, BIG - 1, False),
        (BIG, float(BIG), False),
        (0.1, 0.1, True),
        (1, True, None),
        (0, False, None),
        (7, "7", None),
        (True, True, True),
        (True, False, False),
        (True, 1, None),
        (None, None, True),
        (None, 0, None),
        ({"min": 1}, 1, True),
        ({"min": 1}, 0.999, False),
        ({"max": 10}, 10, True),
        ({"max": 10}, 11, False),
        ({"min": 1, "max": 10}, 5, True),
        ({"min": 1, "max": 10}, 0, False),
        ({"min": BIG}, BIG - 1, False),
        ({"min": 1, "max": 10}, True, None),
        ({"min": 1}, "5", None),
        (["a", "b*", 3], "bc", True),
        (["a", "b*", 3], "c", False),
        (["a", "b*", 3], 3, True),
        (["a", "b*", 3], 4, False),
        (["a", "b*", 3], None, None),
        ([{"max": 1}, {"min": 5}], 3, False),
        ([{"max": 1}, {"min": 5}], 7, True),
    ],
)
def test_a_condition_holds_does_not_or_it_is_unknown(
    condition: JsonValue, value: JsonValue, expected: bool | None
) -> None:
    assert holds(condition, value) is expected


@pytest.mark.parametrize(("careful", "expected"), [(True, False), (False, True)])
def test_a_careful_pattern_goes_no_step_up(careful: bool, expected: bool) -> None:
    assert holds(["/data/*"], "/data/../etc/passwd", careful=careful) is expected


@pytest.mark.parametrize(
    "condition",
    [
        {},
        {"min": "1"},
        {"min": True},
        {"max": None},
        {"min": 2, "max": 1},
        {"min": 1, "x": 2},
        [],
        [[1]],
        [{}],
    ],
)
def test_what_is_no_condition_is_refused(condition: JsonValue) -> None:
    assert problem_of(condition)
    with pytest.raises(ValueError, match="the condition of `x`"):
        conditions_of({"x": condition}, careful=False)
