"""Conditions on a call's arguments in rules.

A condition is a string (a pattern), a number, ``true``, ``false``, ``null``, a range ``{"min": 1, "max": 10}``, or a
list of these, one of which must hold. It applies to one argument as a whole; lists and objects are not searched.

Conditions are three-valued. A value of a type that the condition does not cover (a list where it has a pattern, the
text "25" where it has a range) may mean anything to the tool, so whether the condition holds is *unknown*.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from .calls import JsonValue
from .globs import careful_matcher_of, matcher_of, problem_of_pattern

#: Whether a value meets a condition; ``None`` if unknown.
Condition: TypeAlias = Callable[[JsonValue], bool | None]
#: Argument names with their conditions.
Conditions: TypeAlias = tuple[tuple[str, Condition], ...]

_KINDS: Final = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}
_RANGE: Final = ("min", "max")
_FORMS: Final = 'a pattern, a number, true, false, null, a range `{"min": …, "max": …}`, or a list of these'


def problem_of(condition: JsonValue) -> str:
    """Return what is wrong with a condition; empty if it is valid."""
    if isinstance(condition, list):
        if not condition:
            return "an empty list matches nothing"
        if any(isinstance(one, list) for one in condition):
            return "a list cannot contain a list"
        return next((problem for one in condition if (problem := problem_of(one))), "")
    if isinstance(condition, str):
        return problem_of_pattern(condition)
    return _problem_of_range(condition) if isinstance(condition, dict) else ""


def _problem_of_range(condition: Mapping[str, JsonValue]) -> str:
    if not condition or condition.keys() - set(_RANGE):
        return f"must be {_FORMS}. What is inside of an argument cannot be named"
    for name, bound in condition.items():
        if not _is_number(bound):
            return f"`{name}` of a range must be a number"
    low, high = (condition.get(name) for name in _RANGE)
    if isinstance(low, int | float) and isinstance(high, int | float) and low > high:
        return "`min` is greater than `max`"
    return ""


def conditions_of(arguments: Mapping[str, JsonValue], *, careful: bool) -> Conditions:
    """Compile the conditions of a rule.

    Parameters
    ----------
    arguments : mapping
        As in a rules file.
    careful : bool
        Whether they belong to an allow rule, in which wildcards do not match a parent reference (``..``) in a path.

    Raises
    ------
    ValueError
        If a condition is invalid.
    """
    for name, condition in arguments.items():
        problem = problem_of(condition)
        if problem:
            raise ValueError(f"the condition of `{name:.80}`: {problem}")
    return tuple((name, _compiled(condition, careful)) for name, condition in arguments.items())


def _compiled(condition: JsonValue, careful: bool) -> Condition:
    tests: dict[str, list[Callable[..., bool]]] = {}
    for one in condition if isinstance(condition, list) else [condition]:
        kind, test = _test_of(one, careful)
        tests.setdefault(kind, []).append(test)

    if len(tests) == 1 and len(next(iter(tests.values()))) == 1:  # the common case; there may be thousands of rules
        ((only_kind, (only_test,)),) = tests.items()
        return lambda value: only_test(value) if _kind_of(value) == only_kind else None

    def holds(value: JsonValue) -> bool | None:
        found = tests.get(_kind_of(value))
        return None if found is None else any(test(value) for test in found)

    return holds


def _test_of(condition: JsonValue, careful: bool) -> tuple[str, Callable[..., bool]]:
    """Return the type of values that a condition covers, and its test function."""
    if isinstance(condition, str):
        return "string", careful_matcher_of(condition) if careful else matcher_of(condition)
    if isinstance(condition, dict):
        low, high = (condition.get(name) for name in _RANGE)
        return "number", lambda value: (low is None or low <= value) and (high is None or value <= high)
    # Python compares integers and floating-point numbers by their exact values.
    return _kind_of(condition), lambda value: bool(value == condition)


def _kind_of(value: JsonValue) -> str:
    return _KINDS.get(type(value), "other")


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
