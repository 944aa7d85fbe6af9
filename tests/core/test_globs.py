from __future__ import annotations

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_agentbox.core.globs import careful_matcher_of, is_literal, literal, matcher_of
from tests.samples import texts

patterns = st.text(st.sampled_from("ab*?[]!-./\n"), max_size=8)


@given(patterns, st.text(st.sampled_from("ab[]!-./\n"), max_size=8))
def test_a_pattern_means_what_it_means_to_fnmatch(pattern: str, text: str) -> None:
    assert matcher_of(pattern)(text) is fnmatchcase(text, pattern)


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
