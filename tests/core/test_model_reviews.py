from __future__ import annotations

import json

import pytest

from jupyter_agentbox.core.approvals import Answer
from jupyter_agentbox.core.model_reviews import Review, ReviewOutcome, Risk, review_from_text, reviewing_model
from jupyter_agentbox.core.reviewers import Reviewer, ReviewerKind, Via

SURE = {"risk": "low", "outcome": "allow", "rationale": "It reads."}


@pytest.mark.parametrize(
    ("risk", "outcome", "answer"),
    [
        (Risk.LOW, ReviewOutcome.ALLOW, Answer.ALLOW_ONCE),
        (Risk.MEDIUM, ReviewOutcome.ALLOW, Answer.ALLOW_ONCE),
        (Risk.HIGH, ReviewOutcome.ALLOW, None),
        (Risk.LOW, ReviewOutcome.ASK, None),
        (Risk.MEDIUM, ReviewOutcome.DENY, Answer.REJECT_ONCE),
        (Risk.HIGH, ReviewOutcome.DENY, None),
    ],
)
def test_a_person_decides_at_a_high_risk_and_in_doubt(
    risk: Risk, outcome: ReviewOutcome, answer: Answer | None
) -> None:
    assert Review(risk=risk, outcome=outcome, rationale="why").answer is answer


@pytest.mark.parametrize(
    "text", [json.dumps(SURE), f"```json\n{json.dumps(SURE)}\n```", f" ```\n{json.dumps(SURE)}\n```\n"]
)
def test_a_review_is_json_also_in_a_fence(text: str) -> None:
    assert review_from_text(text) == Review(risk=Risk.LOW, outcome=ReviewOutcome.ALLOW, rationale="It reads.")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "allow",
        "[]",
        json.dumps({**SURE, "risk": "none"}),
        json.dumps({**SURE, "risk": ["low"]}),
        json.dumps({**SURE, "outcome": "yes"}),
        json.dumps({**SURE, "rationale": " "}),
        json.dumps({**SURE, "rationale": 1}),
        json.dumps({**SURE, "certain": True}),
        json.dumps({"risk": "low", "outcome": "allow"}),
        json.dumps(SURE) + json.dumps(SURE),
        '{"risk": "high", "outcome": "allow", "rationale": "x", "risk": "low"}',
        f"I think: {json.dumps(SURE)}",
        f"```json\n{json.dumps(SURE)}",
    ],
)
def test_what_is_not_exactly_a_review_is_none(text: str) -> None:
    with pytest.raises(ValueError):  # the kind of error is what counts
        review_from_text(text)


def test_a_long_rationale_is_cut() -> None:
    assert len(review_from_text(json.dumps({**SURE, "rationale": "a" * 5000})).rationale) == 1000


def test_a_model_that_reviews_is_named_as_a_model() -> None:
    assert reviewing_model("openai:x") == Reviewer(name="model:openai:x", via=Via.MODEL, kind=ReviewerKind.MODEL)
