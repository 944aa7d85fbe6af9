"""The result of a request for code: its statuses and attempts, and the result type.

`TRANSITIONS` has all transitions of a status. Any other raises.
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
    """The status of a request for code. The first four are transient, the others final."""

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
        """Whether the status can no longer change."""
        return self not in _PASSING


_PASSING: Final = frozenset({CodeStatus.GENERATING, CodeStatus.ANALYSING, CodeStatus.WAITING, CodeStatus.RUNNING})
_REFUSED: Final = frozenset({CodeStatus.REJECTED, CodeStatus.EXPIRED, CodeStatus.BLOCKED, CodeStatus.CANCELLED})

#: Status -> possible successors. Errors that can be retried lead to `GENERATING`; refusals do not.
TRANSITIONS: Final[Mapping[CodeStatus, frozenset[CodeStatus]]] = {
    CodeStatus.GENERATING: frozenset({CodeStatus.ANALYSING, CodeStatus.FAILED, CodeStatus.CANCELLED}),
    # An analysis ends with a request, decided by a person or a rule.
    CodeStatus.ANALYSING: frozenset(
        {CodeStatus.GENERATING, CodeStatus.WAITING, CodeStatus.RUNNING, CodeStatus.FAILED, *_REFUSED}
    ),
    # Running code waits whenever one of its calls does.
    CodeStatus.WAITING: frozenset(
        {CodeStatus.RUNNING, CodeStatus.GENERATING, CodeStatus.SUCCEEDED, CodeStatus.FAILED, *_REFUSED}
    ),
    CodeStatus.RUNNING: frozenset(
        {CodeStatus.WAITING, CodeStatus.GENERATING, CodeStatus.SUCCEEDED, CodeStatus.FAILED, *_REFUSED}
    ),
}


def step(before: CodeStatus, after: CodeStatus) -> CodeStatus:
    """Return `after`, if it is a valid successor.

    Raises
    ------
    InvalidTransitionError
        If it is not.
    """
    if after not in TRANSITIONS.get(before, frozenset()):
        raise InvalidTransitionError(f"a code request with status `{before.value}` cannot become `{after.value}`")
    return after


class Stage(str, Enum):
    """The stage at which an attempt failed."""

    CONFIGURATION = "configuration"
    GENERATION = "generation"
    ANALYSIS = "analysis"
    APPROVAL = "approval"
    EXECUTION = "execution"
    RESULTS = "results"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptError:
    """The error of an attempt, passed to the generator for the next one.

    Parameters
    ----------
    stage : Stage
        The stage at which it failed.
    message : str
        The error message, with the kernel's traceback if there is one. It may contain the code's own text.
    attempt : int
        Number of the attempt, from 1.
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
    """One piece of code, and its outcome.

    Parameters
    ----------
    number : int
        Number of the attempt, from 1.
    status : CodeStatus
        How it ended.
    code : str
        The code as generated; empty if there is none.
    approved_code : str or None
        The code as run, including a person's edits. ``None`` if it did not run.
    findings : tuple of Finding
        The findings in the code that ran, or would have run.
    request_id : str or None
        The approval request, if there was one.
    error : AttemptError or None
        The error, if it failed.
    results : dict
        The code's `results`; empty if it did not succeed.
    text : str or None
        Printed and displayed output, as text.
    outputs : tuple of mapping
        Displayed output, as MIME bundles; text first.
    figures : tuple of Path
        Paths of its images.
    metadata : mapping
        The generator's metadata.
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
        """Whether another attempt may follow: refusals, and errors that only a person can fix, are final."""
        return (
            self.status is CodeStatus.FAILED and self.error is not None and self.error.stage is not Stage.CONFIGURATION
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeResult:
    """The result of a request for code.

    The code's values are in `results` only, so that none of its keys can shadow an attribute.

    Parameters
    ----------
    attempts : tuple of Attempt
        All attempts, in order; the last one determines the result.
    """

    attempts: tuple[Attempt, ...]

    @property
    def status(self) -> CodeStatus:
        """The final status of the last attempt."""
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
        """The last attempt's printed and displayed output, as text."""
        return self.attempts[-1].text

    @property
    def outputs(self) -> tuple[Mapping[str, Any], ...]:
        """The last attempt's displayed output, as MIME bundles; text first."""
        return self.attempts[-1].outputs

    @property
    def figures(self) -> tuple[Path, ...]:
        """The images of the last attempt."""
        return self.attempts[-1].figures

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings in the last attempt's code."""
        return self.attempts[-1].findings

    @property
    def code(self) -> str:
        """The last attempt's code, as run if it did."""
        last = self.attempts[-1]
        return last.approved_code if last.approved_code is not None else last.code

    @property
    def error(self) -> AttemptError | None:
        """The error of the last attempt; ``None`` if it succeeded."""
        return self.attempts[-1].error


def latest_errors(attempts: Sequence[Attempt], most: int = 2) -> list[AttemptError]:
    """Return the errors of the latest attempts, oldest first."""
    return [attempt.error for attempt in attempts if attempt.error is not None][-most:]
