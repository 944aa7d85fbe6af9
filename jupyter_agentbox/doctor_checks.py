"""The result of one check, with advice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from jupyter_agentbox.core.text import visible

State = Literal["ok", "note", "problem"]

_WORDS: Final = {"ok": "ok     ", "note": "note   ", "problem": "PROBLEM"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result of one check.

    Parameters
    ----------
    name : str
        What was checked.
    state : str
        ``ok``, ``note`` (it works, but is worth knowing) or ``problem``.
    text : str
        The result, which never contains a secret.
    advice : str
        What to do; empty if nothing has to be done.
    """

    name: str
    state: State
    text: str
    advice: str = ""

    def __str__(self) -> str:
        advice = f" -> {self.advice}" if self.advice else ""
        return visible(f"{_WORDS[self.state]}  {self.name}: {self.text}{advice}").replace("\n", " ")
