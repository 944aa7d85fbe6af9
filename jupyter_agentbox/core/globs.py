"""Patterns of names and values: ``*``, ``?`` and ``[...]``, case-sensitive, always of the whole text."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import translate
from functools import lru_cache
from typing import Final, TypeAlias

#: Says whether a text matches.
Matcher: TypeAlias = Callable[[str], bool]

_RANGE: Final = re.compile(r"(.)-(.)", re.DOTALL)
_WILD: Final = re.compile(r"[*?[]")
#: A step up in a path or a URL, also as browsers and programs decode it: they leave line breaks and tabs out.
_STEP_UP: Final = re.compile(r"(?:^|[/\\]|%2f|%5c)(?:\.|%2e){2}(?:[/\\;?#]|%2f|%5c|$)", re.IGNORECASE)
_LEFT_OUT: Final = re.compile(r"[\t\r\n]|%0[9ad]", re.IGNORECASE)


def literal(text: str) -> str:
    """Return the pattern that matches this text and no other."""
    return re.sub(r"([*?\[])", r"[\1]", text)


def problem_of_pattern(pattern: str) -> str:
    """Return why a pattern cannot be meant as it is written; empty if it can.

    ``fnmatch`` reads a ``[`` without its ``]`` as that letter, and of a class whose ranges are upside down it makes one
    that has nothing, or with ``!`` everything: a rule that denies would never match, and one that allows always.
    """
    at = pattern.find("[")
    while at >= 0:
        first = at + 2 if pattern[at + 1 : at + 2] == "!" else at + 1
        end = pattern.find("]", first + 1)  # a `]` that comes first is one of the letters
        if end < 0:
            return f"`{pattern[at:]:.40}` has no `]`; write `[[]` for the letter `[`"
        for low, high in _RANGE.findall(pattern[first:end]):
            if low > high:
                return f"`{low}-{high}` in `{pattern[at : end + 1]:.40}` is upside down: write `{high}-{low}`"
        at = pattern.find("[", end + 1)
    return ""


def is_literal(pattern: str) -> bool:
    """Whether a pattern has no wildcard, so that it matches the text that it is."""
    return _WILD.search(pattern) is None


@lru_cache(maxsize=8192)
def matcher_of(pattern: str) -> Matcher:
    """Return what matches texts with a pattern. ``*`` stands for anything, a ``/`` and a line's end too."""
    if is_literal(pattern):
        return pattern.__eq__
    if pattern == "*":
        return _always
    start = pattern[:-1]
    if pattern.endswith("*") and is_literal(start):  # most patterns are of this form, and compiling takes long
        return lambda text: text.startswith(start)
    match = re.compile(translate(pattern)).match
    return lambda text: match(text) is not None


def careful_matcher_of(pattern: str) -> Matcher:
    """Return what matches texts for a rule that allows: a wildcard stands for no step up in a path, such as ``/../``.

    Otherwise ``/data/*`` would match ``/data/../etc/passwd``.
    """
    matches = matcher_of(pattern)
    if is_literal(pattern):
        return matches
    start = pattern[:-1]
    if pattern.endswith("*") and is_literal(start):
        return lambda text: text.startswith(start) and not _steps_up(text)
    return lambda text: matches(text) and not _steps_up(text)


def _steps_up(text: str) -> bool:
    return _STEP_UP.search(_LEFT_OUT.sub("", text)) is not None


def _always(_text: str) -> bool:
    return True
