from __future__ import annotations

import re
import time

import pytest

from jupyter_agentbox.mcp.patterns import PatternTimeoutError, is_harmless, search


@pytest.mark.parametrize(
    "pattern",
    ["^[a-z]+$", r"^\d{4}-\d{2}-\d{2}$", "^(red|green)?$", r"^\(\d+\)$", r"^[(+*)]+$", "plain", r"^\w+@\w+\.\w+$"],
)
def test_ordinary_patterns_are_matched_here(pattern: str) -> None:
    assert is_harmless(pattern, 40)


@pytest.mark.parametrize(
    ("pattern", "length"),
    [("(a+)+$", 30), ("(a|aa)*$", 30), (r"(.)\1", 5), ("(?P<x>a)(?P=x)", 5), (".*.*.*x", 5000), ("(a{2}){9}", 30)],
)
def test_patterns_that_may_explode_are_not(pattern: str, length: int) -> None:
    assert not is_harmless(pattern, length)


@pytest.mark.parametrize("pattern", [r"^([a-z]+\.)+[a-z]{2,}$", "^[a-z.]+$"])
def test_both_ways_give_the_same_answer(pattern: str) -> None:
    assert search(pattern, "www.example.org", seconds=10)
    assert not search(pattern, "WWW", seconds=10)


def test_a_pattern_that_explodes_is_ended_in_time() -> None:
    began = time.perf_counter()
    with pytest.raises(PatternTimeoutError):
        search("(a+)+$", "a" * 50 + "!", seconds=0.3)
    assert time.perf_counter() - began < 30


def test_another_dialect_is_an_error() -> None:
    with pytest.raises(re.error):
        search(r"\p{L}", "x", seconds=1)
