"""What a look at one thing found, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from jupyter_agentbox.core.text import visible

State = Literal["ok", "note", "problem"]

_WORDS: Final = {"ok": "ok     ", "note": "note   ", "problem": "PROBLEM"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What was found of one thing.

    Parameters
    ----------
    name : str
        What was looked at.
    state : str
        ``ok``, ``note`` (it works, and somebody may want to know) or ``problem``.
    text : str
        What was found; never a secret.
    advice : str
        What to do; empty if nothing need be done.
    """

    name: str
    state: State
    text: str
    advice: str = ""

    def __str__(self) -> str:
        advice = f" -> {self.advice}" if self.advice else ""
        return visible(f"{_WORDS[self.state]}  {self.name}: {self.text}{advice}").replace("\n", " ")
