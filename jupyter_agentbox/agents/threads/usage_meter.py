"""`UsageMeter`: counts a turn's cost, and enforces its limits."""

from __future__ import annotations

from typing import Protocol

from jupyter_agentbox.core.threads import Usage

from .limits import HourlyUse, TurnLimits
from .record import TurnRecord


class LimitReachedError(Exception):
    """A limit was reached; the text says which one."""


class ModelUsage(Protocol):
    """The cost of asking a model, as counted by the library for models."""

    requests: int
    input_tokens: int
    output_tokens: int


class UsageMeter:
    """Counts requests and tokens of one turn, and of all turns in an hour.

    Parameters
    ----------
    record : TurnRecord
        The turn, with its usage.
    limits : TurnLimits
        The limits of a turn.
    hourly : HourlyUse
        The usage of all turns in the last hour.
    """

    def __init__(self, record: TurnRecord, *, limits: TurnLimits, hourly: HourlyUse) -> None:
        self._record = record
        self._limits = limits
        self._hourly = hourly
        self._run = Usage()
        self._before = Usage()
        self._reviews = Usage()

    def begin_request(self) -> None:
        """Count a step that is about to begin, if the turn may have another one.

        Raises
        ------
        LimitReachedError
        """
        steps = self._limits.steps
        if steps is not None and (self._before + self._run).requests >= steps:
            times = "one model request" if steps == 1 else f"{steps:,} model requests"
            raise LimitReachedError(f"it reached the limit of {times} per turn")
        self.begin_review()

    def begin_review(self) -> None:
        """Count a review's request that is about to be sent, if one may be; one that fails or is aborted counts, too.

        Raises
        ------
        LimitReachedError
        """
        tokens = self._limits.tokens
        if tokens is not None and self._total.total_tokens >= tokens:
            raise LimitReachedError(f"it reached the limit of {tokens:,} tokens per turn")
        if reached := self._hourly.exceeded():
            raise LimitReachedError(reached)
        self._hourly.add_request()

    def begin_run(self) -> None:
        """Begin a run of the model, whose usage starts at zero."""
        self._before, self._run = self._before + self._run, Usage()

    def count_run(self, used: ModelUsage) -> None:
        """Count the cost of the present run so far."""
        before = self._run.total_tokens
        self._run = _usage(used)
        self._note(self._run.total_tokens - before)

    def count_review(self, used: ModelUsage) -> None:
        """Count the cost of a review of a call. A review is not a step of the turn."""
        cost = _usage(used)
        self._reviews += cost
        self._note(cost.total_tokens)

    @property
    def _total(self) -> Usage:
        return self._before + self._run + self._reviews

    def _note(self, tokens: int) -> None:
        self._hourly.add_tokens(tokens)
        self._record.use(self._total)


def _usage(used: ModelUsage) -> Usage:
    # A server may say anything, also less than nothing.
    return Usage(
        requests=used.requests, input_tokens=max(0, used.input_tokens), output_tokens=max(0, used.output_tokens)
    )
