"""What a model says of a call that it reviews, and what its word is worth."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import Final

from .approvals import Answer
from .reviewers import Reviewer, ReviewerKind, Via

#: Characters of a rationale that are kept.
RATIONALE_LIMIT: Final = 1000


class Risk(str, Enum):
    """How much harm a call could do."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class ReviewOutcome(str, Enum):
    """What should become of a call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What a model says of a call.

    Parameters
    ----------
    risk : Risk
        How much harm the call could do.
    outcome : ReviewOutcome
        What should become of it.
    rationale : str
        Why. Untrusted text.
    """

    risk: Risk
    outcome: ReviewOutcome
    rationale: str

    @property
    def answer(self) -> Answer | None:
        """What the model's word makes of the request; ``None`` if a person has to decide, as always at a high risk."""
        return None if self.risk is Risk.HIGH else _ANSWERS.get(self.outcome)


_ANSWERS: Final = {ReviewOutcome.ALLOW: Answer.ALLOW_ONCE, ReviewOutcome.DENY: Answer.REJECT_ONCE}


def review_from_text(text: str) -> Review:
    """Read a model's answer: a JSON object of ``risk``, ``outcome`` and ``rationale``, and nothing else.

    Raises
    ------
    ValueError
        It is none. Whatever may be in it does not count.
    """
    value = json.loads(_without_fence(text.strip()), object_pairs_hook=_no_key_twice)
    if not isinstance(value, dict) or value.keys() != {"risk", "outcome", "rationale"}:
        raise ValueError("the review must have `risk`, `outcome` and `rationale`, and nothing else")
    rationale = value["rationale"]
    if not isinstance(rationale, str) or not rationale.strip():
        raise ValueError("the rationale of the review must be a text")
    return Review(
        risk=Risk(value["risk"]), outcome=ReviewOutcome(value["outcome"]), rationale=rationale[:RATIONALE_LIMIT]
    )


def reviewing_model(name: str) -> Reviewer:
    """Return a model, as the record names who decided.

    Parameters
    ----------
    name : str
        The model's, such as ``openai:gpt-5.2``.
    """
    return Reviewer(name=f"model:{name}", via=Via.MODEL, kind=ReviewerKind.MODEL)


def _without_fence(text: str) -> str:
    """Return what stands in a fence of Markdown, in which models like to put JSON; the text itself if there is none."""
    lines = text.splitlines()
    if len(lines) > 2 and lines[0] in {"```", "```json"} and lines[-1] == "```":
        return "\n".join(lines[1:-1])
    return text


def _no_key_twice(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key stands twice in the review")
    return dict(pairs)
