from __future__ import annotations

from collections.abc import Callable

from jupyter_agentbox.core.globs import Matcher, careful_matcher_of, matcher_of

from .attack import Attack

ATTACK = Attack(
    "leave the directory, or the part of a site, that a rule allows (`/data/*`) by a step up that only whoever opens it"
    " sees: percent-encoded, or with a line break or a tab in it",
    plain=False,
    control="test_a_pattern_that_is_not_careful_matches_all_of_them",
)
PATHS = ("..%2f", "%2e%2e%5C", "..%2Fa/", ".\t./", ".\n.%2f", "%0a../", ".%09./", "..;/", "..?/", "..")


def attack(matcher: Callable[[str], Matcher]) -> list[str]:
    """Return the paths that a pattern for a part of a site matches."""
    matches, between = matcher("https://shop.example/public/*"), matcher("https://shop.example/*/x*")
    paths = [f"https://shop.example/public/x/{step}" for step in PATHS]
    return [path for path in paths if matches(path) or between(path)]


def test_a_pattern_that_is_not_careful_matches_all_of_them() -> None:
    assert len(attack(matcher_of)) == len(PATHS)


def test_a_pattern_of_a_rule_that_allows_matches_none() -> None:
    assert attack(careful_matcher_of) == []
