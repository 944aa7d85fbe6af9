"""What a server says of the persons whom it asks: read from strangers, and put in words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from jupyter_agentbox.core.hub_reviews import REVIEW_KEY, HubReview, review_from_json, review_in

UNTIL = datetime(2026, 1, 1, 12, 30, tzinfo=UTC)
WAITING = HubReview(
    status="pending",
    groups=("stewards",),
    count=2,
    approved_by=("bob",),
    expires_at=UNTIL,
    url="https://hub/requests/r1",
)


@pytest.mark.parametrize(
    "review",
    [
        WAITING,
        HubReview(status="rejected", groups=("a", "b"), rejected_by="cleo", reason="no"),
        HubReview(status="approved"),
    ],
)
def test_what_is_written_is_read_again(review: HubReview) -> None:
    assert review_in({REVIEW_KEY: review.to_json()}) == review


@pytest.mark.parametrize("value", [None, 1, [], {}, {"status": "done"}, {"status": ["pending"]}])
def test_what_is_no_review_is_none(value: Any) -> None:
    assert review_from_json(value) is None


def test_of_what_strangers_send_only_short_texts_are_taken() -> None:
    sent = {
        "status": "pending",
        "groups": ["g" * 1000, 7, "", *["x"] * 50],
        "count": True,
        "approved_by": "bob",
        "expires_at": "2026-01-01T00:00:00",
        "rejected_by": {"name": 1},
        "reason": "r" * 1000,
        "url": 5,
    }
    review = review_from_json(sent)
    assert review is not None
    assert (len(review.groups[0]), len(review.groups), review.count, review.approved_by) == (100, 18, 1, ())
    assert (review.expires_at, review.rejected_by, len(review.reason), review.url) == (None, "", 500, "")
    assert review_from_json({"status": "pending", "expires_at": "soon", "groups": {}}) == HubReview(status="pending")


@pytest.mark.parametrize(
    ("review", "expected"),
    [
        (
            WAITING,
            (f"waiting for 2 members of stewards at {WAITING.url} until 2026-01-01 12:30 UTC; approved by bob so far"),
        ),
        (HubReview(status="pending"), "waiting for you"),
        (HubReview(status="approved", approved_by=("bob", "cleo")), "approved by bob and cleo"),
        (HubReview(status="approved"), "approved"),
        (HubReview(status="rejected", rejected_by="cleo", reason="no"), "rejected by cleo: no"),
        (HubReview(status="rejected"), "rejected by a rule"),
        (HubReview(status="expired", groups=("a", "b")), "expired while waiting for a member of a or b"),
        (
            HubReview(status="expired", groups=("a",), count=2, approved_by=("bob",)),
            "expired while waiting for 2 members of a; only bob approved it",
        ),
        (HubReview(status="cancelled"), "withdrawn before it was decided"),
        (HubReview(status="cancelled", approved_by=("bob",)), "withdrawn after bob approved it"),
    ],
)
def test_it_says_in_words_how_far_they_are(review: HubReview, expected: str) -> None:
    assert str(review) == expected


def test_secrets_are_taken_out_of_each_text() -> None:
    review = HubReview(
        status="rejected", groups=("key",), approved_by=("key",), rejected_by="key", reason="key", url="key"
    )
    assert "key" not in str(review.redacted(lambda text: text.replace("key", "…")).to_json().values())
