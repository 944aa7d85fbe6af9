from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from jupyter_agentbox.kernel.decision_lines import comment_line, decision_line

ASKED = {"product_id": 5, "price": 149.0}


@pytest.fixture(autouse=True)
def _in_london(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/London")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def record(**fields: Any) -> dict[str, Any]:
    return {
        "status": "approved",
        "by": "Ada",
        "at": "2026-11-22T00:32:10.000Z",
        "is_edited": False,
        "arguments": None,
        "with_arguments": True,
        **fields,
    }


def line(record: object, outcome: str = "done", *, has_run: bool = True) -> str:
    return decision_line("shop.set_price", ASKED, record, outcome, has_run=has_run)


def test_line_says_what_ran_who_allowed_it_and_when() -> None:
    assert line(record()) == (
        "✓ shop.set_price(product_id=5, price=149.0) — allowed by Ada, 2026-11-22 00:32"
    )  # fmt: skip


def test_line_says_what_ran_after_an_edit_and_what_the_code_asked_for() -> None:
    edited = record(is_edited=True, arguments={"product_id": 5, "price": 14.9, "note": "new"})

    assert line(edited) == (
        "✓ shop.set_price(product_id=5, price=14.9, note='new') — edited (the code asked for price=149.0),"
        " allowed by Ada, 2026-11-22 00:32"
    )


def test_line_has_no_arguments_where_none_may_be_saved() -> None:
    assert line(record(with_arguments=False)) == "✓ shop.set_price(…) — allowed by Ada, 2026-11-22 00:32"
    assert line(record(with_arguments=False, is_edited=True)) == (
        "✓ shop.set_price(…) — edited, allowed by Ada, 2026-11-22 00:32"
    )


def test_line_of_a_call_that_did_not_run_says_so() -> None:
    assert line(record(status="rejected"), "too many; did not run", has_run=False) == (
        "✗ shop.set_price(product_id=5, price=149.0) — rejected by Ada, 2026-11-22 00:32, too many; did not run"
    )
    nobody = record(status="expired", by=None, at=None)
    assert line(nobody, "expired: nobody decided in time, did not run", has_run=False) == (
        "✗ shop.set_price(product_id=5, price=149.0) — expired: nobody decided in time, did not run"
    )


@pytest.mark.parametrize("said", [None, "x", {}, {"by": 7, "at": [], "arguments": "x", "is_edited": "yes"}])
def test_line_of_a_server_that_says_nothing_or_nonsense_has_no_arguments(said: object) -> None:
    assert line(said).startswith("✓ shop.set_price(…) — ")
    assert line(said).endswith("done")


def test_nothing_that_others_wrote_reorders_the_line_or_begins_another() -> None:
    said = line(record(by="A\u202eda\nand all", at="yesterday"), "it\nfailed\u202e", has_run=False)

    assert "\n" not in said
    assert "\u202e" not in said
    assert "yesterday" not in said


def test_comment_is_one_line_that_says_whose_it_is_and_of_what() -> None:
    said = record(comment="use 14.9\nfrom now on\x1b[2J")

    assert comment_line("shop.set_price", said) == "Comment by Ada on shop.set_price: use 14.9 from now on<U+001B>[2J"


@pytest.mark.parametrize("said", [record(), record(comment=None), record(comment=7), None, "no record"])
def test_nothing_is_printed_where_there_is_no_comment(said: object) -> None:
    assert comment_line("shop.set_price", said) == ""


def test_line_says_what_was_answered_at_the_hub() -> None:
    allowed = {"by": None, "at": None}
    assert line(record(**allowed, hub={"status": "approved", "text": "approved by bob and cleo"})) == (
        "✓ shop.set_price(product_id=5, price=149.0) — at the Hub approved by bob and cleo"
    )
    assert line(
        record(hub={"status": "rejected", "text": "rejected by cleo: too\nbroad"}), "the tool failed", has_run=False
    ) == (
        "✗ shop.set_price(product_id=5, price=149.0) — allowed by Ada, 2026-11-22 00:32,"
        " at the Hub rejected by cleo: too broad; did not run"
    )
    failed = line(record(hub={"status": "approved", "text": "approved by bob"}), "the tool failed", has_run=False)
    assert failed.endswith("at the Hub approved by bob, the tool failed")


def test_line_of_a_call_that_ended_while_the_hub_asked_does_not_say_that_it_waits() -> None:
    hub = {"status": "pending", "text": "waiting for a member of stewards at https://hub/requests/r1"}
    assert line(record(hub=hub), "interrupted", has_run=False) == (
        "✗ shop.set_price(product_id=5, price=149.0) — allowed by Ada, 2026-11-22 00:32,"
        " not yet answered at the Hub, interrupted"
    )


@pytest.mark.parametrize("hub", [None, "bob", {"status": "approved"}, {"text": 1}])
def test_what_is_no_word_of_the_hub_is_left_out(hub: object) -> None:
    assert line(record(hub=hub)) == line(record())
