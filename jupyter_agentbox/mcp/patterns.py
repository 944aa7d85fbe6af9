"""Regular expressions from strangers, matched without a hang.

``re`` backtracks: ``(a+)+$`` takes longer than the universe on forty letters, and nothing can interrupt it, because it
holds the interpreter's lock. So a pattern is matched here only if it evidently cannot explode: no repeated group, no
back-reference, and so few repeats that repeats and length bound the work. All others run in a process of their own that
is killed when the time is over.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Final

#: About how many steps may be taken here; some tens of milliseconds.
_MOST_STEPS: Final = 1_000_000
_ESCAPE: Final = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CLASS: Final = re.compile(r"\[\^?\]?[^\]]*\]")
_BACK_REFERENCE: Final = re.compile(r"\\[1-9]|\(\?P=|\(\?\(")
_REPEATED_GROUP: Final = re.compile(r"\)(?:[*+]|\{)")
_REPEAT: Final = re.compile(r"[*+?]|\{\d*,?\d*\}")
_SEARCH: Final = (
    "import json, re, sys; pattern, text = json.load(sys.stdin); sys.exit(0 if re.search(pattern, text) else 3)"
)
_NO_MATCH: Final = 3


class PatternTimeoutError(Exception):
    """The match was not decided in time."""


def is_harmless(pattern: str, length: int) -> bool:
    """Say whether matching a text of this many characters evidently takes little time."""
    if _BACK_REFERENCE.search(pattern):
        return False
    plain = _CLASS.sub("c", _ESCAPE.sub("e", pattern))
    if _REPEATED_GROUP.search(plain):
        return False
    # each repeat can stop anywhere, and the search can start anywhere unless it is anchored
    repeats = len(_REPEAT.findall(plain)) + (not plain.startswith("^"))
    return bool((length + 1) ** repeats <= _MOST_STEPS)


def search(pattern: str, text: str, *, seconds: float) -> bool:
    """Say whether the pattern matches somewhere in the text.

    Parameters
    ----------
    seconds : float
        How long it may take.

    Raises
    ------
    re.error
        If Python does not know the pattern's syntax.
    PatternTimeoutError
        If it took longer.
    """
    compiled = re.compile(pattern)
    if is_harmless(pattern, len(text)):
        return compiled.search(text) is not None
    try:
        finished = subprocess.run(
            (sys.executable, "-I", "-S", "-c", _SEARCH),
            input=json.dumps([pattern, text]).encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=max(seconds, 0.05),
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise PatternTimeoutError from None
    if finished.returncode not in (0, _NO_MATCH):
        raise PatternTimeoutError  # it ran out of memory, or the like
    return finished.returncode == 0
