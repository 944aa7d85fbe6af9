"""Who may allow alone in an emergency, and which answers need a reason."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from .service import USERS, ask
from .test_service import asking

#: Two stewards have to approve; who is on call may allow it alone.
TWO = ask(group="data-stewards", count=2, break_glass="on-call")


@pytest.fixture(autouse=True)
def on_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let eve be on call, and ada, whose code asks."""
    for name in ("eve", "ada"):
        monkeypatch.setitem(USERS, name, ["on-call"])


@pytest.mark.parametrize("who", ["eve", "ada"])
async def test_who_is_on_call_allows_alone_with_a_reason_and_the_record_says_so(
    tmp_path: Path, who: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with asking(tmp_path, TWO) as asked:
        service, request = asked.service, asked.request
        listed = (await service.pending(who))[0]
        assert (listed["may_decide"], listed["may_reject"], listed["may_break_glass"]) == (False, False, True)

        plain = await service.decide(request, who, reason="the site is down")
        bare = await service.decide(request, who, reason=" ", break_glass=True)
        assert (plain[0], bare[0]) == (403, 422)
        assert "needs a reason" in bare[1]["message"]
        assert not asked.calling.done()

        code, decided = await service.decide(request, who, reason="the site is down", break_glass=True)

        assert (code, decided["status"]) == (200, "approved")
        assert not (await asked.result()).is_error
        record = json.loads((await service.get("api/audit", token="dan")).body.decode().splitlines()[0])
        assert record["decision"]["reviewer"] == who
        assert (record["decision"]["via"], record["decision"]["reason"]) == ("break_glass", "the site is down")
        assert record["approvers"]["break_glass"] == "on-call"
        page = (await service.get(f"requests/{request['id']}", session=who)).body.decode()
        assert f"{who}, who broke the glass: the site is down" in page
    said = [vars(one)["agentbox_fields"] for one in caplog.records if one.message == "request"]
    assert {one["decided_via"] for one in said} == {None, "break_glass"}


async def test_an_approver_is_nobody_who_may_break_the_glass_and_a_rejection_breaks_none(tmp_path: Path) -> None:
    async with asking(tmp_path, TWO) as asked:
        service, request = asked.service, asked.request
        assert request["may_break_glass"] is False
        for who, answer, given, wanted in (
            ("bob", "allow_once", True, 403),
            ("eve", "reject_once", True, 422),
            ("eve", "reject_once", False, 403),
            ("eve", "allow_once", "yes", 422),
        ):
            code, _ = await service.decide(request, who, answer, reason="now", break_glass=given)
            assert (who, answer, code) == (who, answer, wanted)
        assert not asked.calling.done()


async def test_several_are_not_allowed_in_an_emergency_at_once(tmp_path: Path) -> None:
    async with asking(tmp_path, TWO) as asked:
        entry = {
            "id": asked.request["id"],
            "decision": "allow_once",
            "digest": asked.request["call"]["digest"],
            "reason": "now",
            "break_glass": True,
        }
        code, answer = await asked.service.post_as("eve", "api/decisions", {"decisions": [entry]})
        assert code == 422, answer
        assert not asked.calling.done()


async def test_a_button_of_the_page_breaks_the_glass_for_those_who_may(tmp_path: Path) -> None:
    async with asking(tmp_path, TWO) as asked:
        service, request = asked.service, asked.request
        pages = {
            who: (await service.get(f"requests/{request['id']}", session=who)).body.decode() for who in ("eve", "bob")
        }
        assert {who: 'value="break_glass"' in page for who, page in pages.items()} == {"eve": True, "bob": False}
        assert 'value="reject"' not in pages["eve"]

        assert (await service.press(request, "eve", "break_glass", "")).code == 422
        assert (await service.press(request, "eve", "break_glass", "the site is down")).code == 303
        assert not (await asked.result()).is_error


@pytest.mark.parametrize("answer", ["allow_once", "reject_once"])
async def test_an_answer_needs_a_reason_where_the_rule_wants_one(tmp_path: Path, answer: str) -> None:
    async with asking(tmp_path, ask(group="data-stewards", reason="required")) as asked:
        service, request = asked.service, asked.request
        assert request["approvers"]["reason"] == "required"
        page = (await service.get(f"requests/{request['id']}", session="bob")).body.decode()
        assert "Reason (required, " in page

        code, refused = await service.decide(request, "bob", answer)
        assert (code, refused["reason"]) == (422, "invalid_decision")
        assert "needs a reason" in refused["message"]

        assert (await service.decide(request, "bob", answer, reason="ticket 12"))[0] == 200
        assert (await asked.result()).is_error is (answer == "reject_once")
