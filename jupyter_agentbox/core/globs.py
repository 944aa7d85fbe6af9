"""Glob patterns for names and values: ``*``, ``?`` and ``[...]``, case-sensitive, matching the whole text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from fnmatch import translate
from functools import lru_cache
from typing import Final, TypeAlias
from urllib.parse import unquote

#: Tests whether a text matches.
Matcher: TypeAlias = Callable[[str], bool]

_RANGE: Final = re.compile(r"(.)-(.)", re.DOTALL)
_WILD: Final = re.compile(r"[*?[]")
_SEPARATOR: Final = r"[/\\]|%c0%af|%e0%80%af|%u002f|%u005c"
_DOT: Final = r"\.|%c0%ae|%e0%80%ae|%u002e"
#: A parent reference (``..``) in a path or URL. Encodings that `unquote` does not decode are here.
_STEP_UP: Final = re.compile(rf"(?:^|{_SEPARATOR})(?:{_DOT}){{2}}(?:{_SEPARATOR}|[;?#]|$)", re.IGNORECASE)
#: Characters that browsers and programs drop, or at which they stop reading.
_LEFT_OUT: Final = re.compile(r"[\0\t\r\n]")
#: How often a text may be encoded. One that is encoded more often counts as a parent reference.
_ROUNDS: Final = 5


def literal(text: str) -> str:
    """Escape a text, so that the pattern matches it and no other."""
    return re.sub(r"([*?\[])", r"[\1]", text)


def problem_of_pattern(pattern: str) -> str:
    """Return why a pattern cannot have been intended; empty if it can.

    ``fnmatch`` treats a ``[`` without ``]`` as a literal, and a class with a reversed range as one that matches nothing
    or, with ``!``, everything: a deny rule would never match, and an allow rule always.
    """
    at = pattern.find("[")
    while at >= 0:
        first = at + 2 if pattern[at + 1 : at + 2] == "!" else at + 1
        end = pattern.find("]", first + 1)  # a leading `]` is a member of the class
        if end < 0:
            return f"`{pattern[at:]:.40}` has no `]`; write `[[]` for the letter `[`"
        for low, high in _RANGE.findall(pattern[first:end]):
            if low > high:
                return f"`{low}-{high}` in `{pattern[at : end + 1]:.40}` is upside down: write `{high}-{low}`"
        at = pattern.find("[", end + 1)
    return ""


def is_literal(pattern: str) -> bool:
    """Whether a pattern has no wildcard, so that it matches only itself."""
    return _WILD.search(pattern) is None


@lru_cache(maxsize=8192)
def matcher_of(pattern: str) -> Matcher:
    """Compile a pattern. ``*`` matches anything, including ``/`` and line breaks."""
    if is_literal(pattern):
        return pattern.__eq__
    if pattern == "*":
        return _always
    start = pattern[:-1]
    if pattern.endswith("*") and is_literal(start):  # the most common form, for which compiling would be slow
        return lambda text: text.startswith(start)
    match = re.compile(translate(pattern)).match
    return lambda text: match(text) is not None


def careful_matcher_of(pattern: str) -> Matcher:
    """Compile a pattern of an allow rule: its wildcards do not match a parent reference in a path, such as ``/../``.

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
    for _ in range(_ROUNDS):
        if not text.isascii():
            text = unicodedata.normalize("NFKC", text)  # as file systems and servers may: `．．／` is `../`
        text = _LEFT_OUT.sub("", text)
        if _STEP_UP.search(text):
            return True
        decoded = unquote(text) if "%" in text else text
        if decoded == text:
            return False
        text = decoded
    return True


def _always(_text: str) -> bool:
    return True
