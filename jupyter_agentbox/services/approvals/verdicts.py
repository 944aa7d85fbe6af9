"""What people send: their answers to requests, without who and when."""

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
    """What a person sends: their answer, without who and when, which the server knows.

    Parameters
    ----------
    answer : Answer
        Which of the four answers.
    digest : str
        The digest of the call that the person saw.
    reason : str
        Why. The code that called is told why it was rejected.
    tell : bool
        Whether it is told the reason of an answer that allows, too.
    arguments : dict or None
        Edited arguments.
    grant : GrantTerms or None
        Of a lasting answer: what it is for.
    """

    answer: Answer
    digest: str
    reason: str = ""
    tell: bool = False
    arguments: Mapping[str, JsonValue] | None = None
    grant: GrantTerms | None = None

    def by(self, reviewer: Reviewer, *, at: datetime) -> Decision:
        """Return the answer with who gave it, and when."""
        return Decision(
            answer=self.answer,
            digest=self.digest,
            reviewer=reviewer,
            decided_at=at,
            reason=self.reason,
            tell=self.tell,
            arguments=None if self.arguments is None else dict(self.arguments),
        )


#: An answer, and whose it is.
Answered: TypeAlias = tuple[Verdict, Reviewer]
