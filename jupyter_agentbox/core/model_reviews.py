"""A model's review of a call, and when it decides."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import Final

from .approvals import Answer
from .reviewers import Reviewer, ReviewerKind, Via
from .unique_keys import with_unique_keys

#: Maximum length of a stored rationale, in characters.
RATIONALE_LIMIT: Final = 1000


class Risk(str, Enum):
    """The potential harm of a call."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class ReviewOutcome(str, Enum):
    """A model's recommendation for a call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """A model's review of a call.

    Parameters
    ----------
    risk : Risk
        The call's potential harm.
    outcome : ReviewOutcome
        The recommendation.
    rationale : str
        The reasons. Untrusted text.
    """

    risk: Risk
    outcome: ReviewOutcome
    rationale: str

    @property
    def answer(self) -> Answer | None:
        """The answer that follows from the review; ``None`` if a person must decide, as always at a high risk."""
        return None if self.risk is Risk.HIGH else _ANSWERS.get(self.outcome)


_ANSWERS: Final = {ReviewOutcome.ALLOW: Answer.ALLOW_ONCE, ReviewOutcome.DENY: Answer.REJECT_ONCE}


def review_from_text(text: str) -> Review:
    """Parse a model's answer: a JSON object of exactly ``risk``, ``outcome`` and ``rationale``.

    Raises
    ------
    ValueError
        It is anything else, which then is ignored entirely.
    """
    value = json.loads(_without_fence(text.strip()), object_pairs_hook=with_unique_keys)
    if not isinstance(value, dict) or value.keys() != {"risk", "outcome", "rationale"}:
        raise ValueError("the review must have `risk`, `outcome` and `rationale`, and nothing else")
    rationale = value["rationale"]
    if not isinstance(rationale, str) or not rationale.strip():
        raise ValueError("the rationale of the review must be a text")
    return Review(
        risk=Risk(value["risk"]), outcome=ReviewOutcome(value["outcome"]), rationale=rationale[:RATIONALE_LIMIT]
    )


def reviewing_model(name: str) -> Reviewer:
    """Return the reviewer that stands for a model in the record.

    Parameters
    ----------
    name : str
        The model's name, such as ``openai:gpt-5.2``.
    """
    return Reviewer(name=f"model:{name}", via=Via.MODEL, kind=ReviewerKind.MODEL)


def _without_fence(text: str) -> str:
    """Return the contents of a Markdown fence, which models like to put around JSON; without one, the text itself."""
    lines = text.splitlines()
    if len(lines) > 2 and lines[0] in {"```", "```json"} and lines[-1] == "```":
        return "\n".join(lines[1:-1])
    return text
