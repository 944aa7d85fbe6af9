"""Verdicts: decisions as people send them, without reviewer and time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from jupyter_agentbox.core.approvals import Answer, Decision
from jupyter_agentbox.core.calls import JsonValue
from jupyter_agentbox.core.grants import GrantTerms
from jupyter_agentbox.core.reviewers import Reviewer


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A decision as a person sends it, without reviewer and time, which the server knows.

    Parameters
    ----------
    answer : Answer
        One of the four answers.
    digest : str
        The digest of the call that the person was shown.
    reason : str
        Why. On a rejection, the calling code is told.
    tell : bool
        Whether the calling code is also told the reason of an approval.
    arguments : dict or None
        Edited arguments.
    grant : GrantTerms or None
        For a lasting answer: the grant's terms.
    """

    answer: Answer
    digest: str
    reason: str = ""
    tell: bool = False
    arguments: Mapping[str, JsonValue] | None = None
    grant: GrantTerms | None = None

    def by(self, reviewer: Reviewer, *, at: datetime) -> Decision:
        """Return the decision by this reviewer at this time."""
        return Decision(
            answer=self.answer,
            digest=self.digest,
            reviewer=reviewer,
            decided_at=at,
            reason=self.reason,
            tell=self.tell,
            arguments=None if self.arguments is None else dict(self.arguments),
        )


#: A verdict and its reviewer.
Answered: TypeAlias = tuple[Verdict, Reviewer]
