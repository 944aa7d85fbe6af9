"""What became of a request for code: its statuses, its attempts, and the one type of result.

`TRANSITIONS` has everything that can change a status. A pair that is not there raises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Final

from jupyter_agentbox.analysis.findings import Finding
from jupyter_agentbox.exceptions import InvalidTransitionError


class CodeStatus(str, Enum):
    """Where a request for code stands. The first four pass, the others are final."""

    GENERATING = "generating"
    ANALYSING = "analysing"
    WAITING = "waiting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    REJECTED = "rejected"
    EXPIRED = "expired"
    BLOCKED = "blocked"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Whether nothing can change it any more."""
        return self not in _PASSING


_PASSING: Final = frozenset({CodeStatus.GENERATING, CodeStatus.ANALYSING, CodeStatus.WAITING, CodeStatus.RUNNING})
_REFUSED: Final = frozenset({CodeStatus.REJECTED, CodeStatus.EXPIRED, CodeStatus.BLOCKED, CodeStatus.CANCELLED})

#: Status -> what can follow. What went wrong and may be tried again leads to `GENERATING`; what was refused does not.
TRANSITIONS: Final[Mapping[CodeStatus, frozenset[CodeStatus]]] = {
    CodeStatus.GENERATING: frozenset({CodeStatus.ANALYSING, CodeStatus.FAILED, CodeStatus.CANCELLED}),
    # An analysis ends with a request: one that a person decides, or one that a rule has decided.
    CodeStatus.ANALYSING: frozenset(
        {CodeStatus.GENERATING, CodeStatus.WAITING, CodeStatus.RUNNING, CodeStatus.FAILED, *_REFUSED}
    ),
    # A running piece of code waits whenever a call of it does.
    CodeStatus.WAITING: frozenset(
        {CodeStatus.RUNNING, CodeStatus.GENERATING, CodeStatus.SUCCEEDED, CodeStatus.FAILED, *_REFUSED}
    ),
    CodeStatus.RUNNING: frozenset(
        {CodeStatus.WAITING, CodeStatus.GENERATING, CodeStatus.SUCCEEDED, CodeStatus.FAILED, *_REFUSED}
    ),
}


def step(before: CodeStatus, after: CodeStatus) -> CodeStatus:
    """Return `after`, if it can follow.

    Raises
    ------
    InvalidTransitionError
        If it cannot.
    """
    if after not in TRANSITIONS.get(before, frozenset()):
        raise InvalidTransitionError(f"a code request with status `{before.value}` cannot become `{after.value}`")
    return after


class Stage(str, Enum):
    """Where an attempt went wrong."""

    CONFIGURATION = "configuration"
    GENERATION = "generation"
    ANALYSIS = "analysis"
    APPROVAL = "approval"
    EXECUTION = "execution"
    RESULTS = "results"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptError:
    """What went wrong in an attempt. The next one's generator gets it.

    Parameters
    ----------
    stage : Stage
        Where it went wrong.
    message : str
        What, with the kernel's traceback if there is one. It can have text of the code's own making.
    attempt : int
        Which attempt, from 1.
    code : str
        The code; empty if there was none.
    """

    stage: Stage
    message: str
    attempt: int
    code: str = field(default="", repr=False)

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One piece of code, and what became of it.

    Parameters
    ----------
    number : int
        Which attempt this was, from 1.
    status : CodeStatus
        How it ended.
    code : str
        As it was made; empty if none was.
    approved_code : str or None
        As it ran: what the person edited, if they did. ``None`` if it did not run.
    findings : tuple of Finding
        What the analysis found in the code that ran, or would have.
    request_id : str or None
        The approval request, if it came to one.
    error : AttemptError or None
        What went wrong.
    results : dict
        The code's `results`; empty if it did not succeed.
    text : str or None
        What it printed and showed, as text.
    outputs : tuple of mapping
        What it showed, as MIME bundles; the text comes first.
    figures : tuple of Path
        Its images.
    metadata : mapping
        What the generator says of how it made the code.
    """

    number: int
    status: CodeStatus
    code: str = field(default="", repr=False)
    approved_code: str | None = field(default=None, repr=False)
    findings: tuple[Finding, ...] = ()
    request_id: str | None = None
    error: AttemptError | None = None
    results: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None
    outputs: tuple[Mapping[str, Any], ...] = ()
    figures: tuple[Path, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def may_be_repeated(self) -> bool:
        """Whether another attempt may follow: what was refused, and what only a person can set right, is final."""
        return (
            self.status is CodeStatus.FAILED and self.error is not None and self.error.stage is not Stage.CONFIGURATION
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeResult:
    """What became of a request for code.

    What the code gave is in `results` and nowhere else, so that none of its keys can hide what is said here.

    Parameters
    ----------
    attempts : tuple of Attempt
        All, in order; the last one decides.
    """

    attempts: tuple[Attempt, ...]

    @property
    def status(self) -> CodeStatus:
        """How the last attempt ended: one of the final statuses."""
        return self.attempts[-1].status

    @property
    def succeeded(self) -> bool:
        """Whether there are results."""
        return self.status is CodeStatus.SUCCEEDED

    @property
    def results(self) -> dict[str, Any]:
        """The dictionary `results` of the code that succeeded; empty if none did."""
        return dict(self.attempts[-1].results)

    @property
    def text(self) -> str | None:
        """What the last attempt printed and showed, as text."""
        return self.attempts[-1].text

    @property
    def outputs(self) -> tuple[Mapping[str, Any], ...]:
        """What the last attempt showed, as MIME bundles; the text comes first."""
        return self.attempts[-1].outputs

    @property
    def figures(self) -> tuple[Path, ...]:
        """The images of the last attempt."""
        return self.attempts[-1].figures

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the analysis found in the last attempt's code."""
        return self.attempts[-1].findings

    @property
    def code(self) -> str:
        """The last attempt's code: as it ran, if it did."""
        last = self.attempts[-1]
        return last.approved_code if last.approved_code is not None else last.code

    @property
    def error(self) -> AttemptError | None:
        """What went wrong in the last attempt; ``None`` if it succeeded."""
        return self.attempts[-1].error


def latest_errors(attempts: Sequence[Attempt], most: int = 2) -> list[AttemptError]:
    """Return the errors of the latest attempts, the oldest first."""
    return [attempt.error for attempt in attempts if attempt.error is not None][-most:]
