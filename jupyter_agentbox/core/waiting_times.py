"""How long requests wait for a person."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from .approvals import ApprovalRequest
from .policy import Evaluation

#: Extension of a request with a rule's timeout, if others wait without limit.
_EXTENSION: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingTimes:
    """The limits on how long requests wait for a person.

    Parameters
    ----------
    timeout : timedelta or None
        Waiting time if no rule gives one; ``None`` for no limit.
    longest : timedelta or None
        Maximum waiting time including extensions; ``None`` for no limit.
    bounds_all : bool
        Whether `longest` also bounds `timeout` and the timeouts of rules.
    """

    timeout: timedelta | None = None
    longest: timedelta | None = None
    bounds_all: bool = False

    def end(self, evaluation: Evaluation, *, created_at: datetime, now: datetime) -> datetime | None:
        """Return when a request that a person is asked about now expires; ``None`` for never.

        Parameters
        ----------
        evaluation : Evaluation
            The policy's evaluation of its call; a rule may have a timeout of its own.
        created_at : datetime
            Time of the call, from which the maximum waiting time counts.
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
        """Return the new expiry time of a request that a person extends now."""
        until = now + (self.timeout or _EXTENSION)
        return until if self.longest is None else min(until, request.created_at + self.longest)
