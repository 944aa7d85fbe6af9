"""What a model is sent of the turn that it works on, as the demo's script reads it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

#: What a code run is reported with that nobody allowed.
_DECLINED: Final = "The code did not run:"
#: Stands between the code that a person edited and what it printed.
_EDITED: Final = "\nIts output:\n"

_ERROR: Final = re.compile(r"^(?:\w+\.)*(\w+(?:Error|Exception|Interrupt))(?:: (.*))?$", re.MULTILINE)
_REFUSALS: Final = {"ToolCallRejectedError", "ApprovalExpiredError", "ApprovalCancelledError"}
_REASON: Final = re.compile(r"it did not run: (.*)")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a function that the script called gave.

    Parameters
    ----------
    output : str
        What the script was told.
    """

    output: str

    @property
    def text(self) -> str:
        """What the code printed and returned; where a person edited it, without the code."""
        return self.output.rpartition(_EDITED)[2]

    @property
    def error(self) -> str:
        """The name of the exception that ended the code, or nothing."""
        found = _ERROR.findall(self.text)
        return found[-1][0] if found else ""

    @property
    def message(self) -> str:
        """What that exception says."""
        found = _ERROR.findall(self.text)
        return found[-1][1] if found else ""

    @property
    def is_refused(self) -> bool:
        """Whether a person or a rule refused the code, or a call in it."""
        return self.output.startswith(_DECLINED) or self.error in _REFUSALS

    @property
    def reason(self) -> str:
        """Why it was refused, if somebody said why."""
        found = _REASON.search(self.output)
        return found[1].strip() if found else ""

    @property
    def is_good(self) -> bool:
        """Whether the code ran to its end."""
        return not self.is_refused and not self.error


@dataclass(slots=True)
class Turn:
    """A question, and what happened since it was asked.

    Parameters
    ----------
    question : str
        What the person asked.
    outcomes : list of Outcome
        What the functions gave that were called since then, in their order.
    word : str
        What the person said last, if the script has not answered to it.
    """

    question: str = ""
    outcomes: list[Outcome] = field(default_factory=list)
    word: str = ""


def read_turn(items: Sequence[Mapping[str, Any]], is_question: Callable[[str], bool]) -> Turn:
    """Return the last turn of a conversation.

    Parameters
    ----------
    items : sequence of mapping
        The input of a request to OpenAI's Responses.
    is_question : callable
        Tells questions that begin a turn from words that are said while one is worked on. What follows an answer
        begins one in any case.
    """
    turn = Turn()
    is_answered = True
    for item in items:
        if item.get("type") == "function_call_output":
            turn.outcomes.append(Outcome(_text_of(item.get("output", ""))))
        elif item.get("role") == "user":
            said = _text_of(item.get("content", "")).strip()
            if is_answered or is_question(said):
                turn = Turn(question=said)
            else:
                turn.word = said
        elif item.get("role") == "assistant" or item.get("type") == "function_call":
            turn.word = ""
        is_answered = item.get("role") == "assistant"
    return turn


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
