"""How long requests wait for a person."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from .approvals import ApprovalRequest
from .policy import Evaluation

#: What a request is given that a rule lets wait for a time, where others wait for ever.
_EXTENSION: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingTimes:
    """How long requests wait for a person.

    Parameters
    ----------
    timeout : timedelta or None
        How long one waits where no rule says otherwise; ``None`` for ever.
    longest : timedelta or None
        How long one waits at most, however often a person asks that it wait longer; ``None`` for no bound.
    bounds_all : bool
        Whether no request waits longer than that, whatever `timeout` and rules say.
    """

    timeout: timedelta | None = None
    longest: timedelta | None = None
    bounds_all: bool = False

    def end(self, evaluation: Evaluation, *, created_at: datetime, now: datetime) -> datetime | None:
        """Return when a request that a person is asked about now expires; ``None`` for never.

        Parameters
        ----------
        evaluation : Evaluation
            What the policy says of its call; a rule may have a time of its own.
        created_at : datetime
            When the call came: the longest wait begins then.
        now : datetime
            When the person is asked.
        """
        rule = evaluation.rule
        timeout = timedelta(seconds=rule.timeout) if rule is not None and rule.timeout is not None else self.timeout
        ends = [now + timeout] if timeout is not None else []
        if self.bounds_all and self.longest is not None:
            ends.append(created_at + self.longest)
        return min(ends, default=None)

    def extended_end(self, request: ApprovalRequest, *, now: datetime) -> datetime:
        """Return until when a request can wait if a person gives it more time now."""
        until = now + (self.timeout or _EXTENSION)
        return until if self.longest is None else min(until, request.created_at + self.longest)
