from __future__ import annotations

from fnmatch import fnmatchcase, translate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_agentbox.core.globs import careful_matcher_of, is_literal, literal, matcher_of, problem_of_pattern
from tests.samples import texts

patterns = st.text(st.sampled_from("ab*?[]!-./\n"), max_size=8)


@given(patterns, st.text(st.sampled_from("ab[]!-./\n"), max_size=8))
def test_a_pattern_means_what_it_means_to_fnmatch(pattern: str, text: str) -> None:
    assert matcher_of(pattern)(text) is fnmatchcase(text, pattern)


@given(patterns)
def test_a_pattern_without_a_problem_has_no_class_that_is_empty_and_no_lone_bracket(pattern: str) -> None:
    said = problem_of_pattern(pattern)
    never = "(?!)" in translate(pattern)
    assert said or not never
    if "has no `]`" in said:
        assert "\\[" in translate(pattern)


@pytest.mark.parametrize(
    "pattern", ["*", "[ab]", "[a-z]*", "[]]", "[!]]", "[[]x]", "[-a]", "[a-]", "x[!0-9]", "", literal("[a")]
)
def test_a_pattern_as_people_write_them_has_no_problem(pattern: str) -> None:
    assert problem_of_pattern(pattern) == ""


@pytest.mark.parametrize("pattern", ["[", "[!", "a[b", "[]", "[!]", "[z-a]", "[!z-a]", "[a-c9-0]", "[ab]["])
def test_a_pattern_that_cannot_be_meant_is_told(pattern: str) -> None:
    assert problem_of_pattern(pattern)


@given(texts)
def test_a_literal_pattern_has_no_problem(text: str) -> None:
    assert problem_of_pattern(literal(text)) == ""


@given(texts, texts)
def test_a_literal_pattern_matches_its_text_only(text: str, other: str) -> None:
    matches = matcher_of(literal(text))
    assert matches(text)
    assert matches(other) is (other == text)


@given(texts)
def test_a_text_without_wildcards_is_its_own_pattern(text: str) -> None:
    assert (literal(text) == text) is is_literal(text)


@pytest.mark.parametrize(
    "text",
    [
        *("/data/../etc", "/data/..", "/data/a/../../b", "\\data\\..\\x", "/data/%2e%2E/x", "/data/.%2e/x", "../data"),
        *("/data/%%32%65%%32%65/x", "/data/%25%32%65%25%32%65/x", "/data/%2%65%2%65/x", "/data/%ef%bc%8e%ef%bc%8e/x"),
        *("/data/..%ef%bc%8fx", "/data/..%3b/x", "/data/..%23", "/data/%u002e%u002e/x", "/data/%e0%80%ae%e0%80%ae/x"),
        *(
            "/data/%2525252525252525252e",
            "/data/%252e%252e/x",
            "/data/..%25252fx",
            "/data/%c0%ae%c0%ae%c0%afx",
            "/data/..%00/x",
            "/data/..\0/x",
        ),
        *("/data/\uff0e\uff0e/x", "/data/..\uff0fx", "/data/\u2025/x"),
        *("/data/..%2fx", "/data%5c..\\x", "/data/.\t./x", "/data/%0a../x", "/data/..;/x"),
    ],
)
def test_a_careful_pattern_matches_no_step_up(text: str) -> None:
    assert not careful_matcher_of("*")(text)
    assert not careful_matcher_of("*data*")(text)
    assert careful_matcher_of(text)(text)


@pytest.mark.parametrize("text", ["/data/a..b", "/data/...", "/data/..a", "a...b", "/data/x", "see above.. and below"])
def test_a_careful_pattern_matches_other_dots(text: str) -> None:
    assert careful_matcher_of("*")(text)
