"""`POST approvals/decisions`: many answers in one request, each taken as if it came alone."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from jupyter_server.auth.authorizer import Authorizer
from tornado.httpclient import HTTPClientError

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.reviewers import DecideWith
from jupyter_agentbox.services.approvals.decisions import DecisionManager
from jupyter_agentbox.services.approvals.handlers import MAX_DECISIONS
from jupyter_agentbox.services.approvals.manager import ApprovalManager

from .test_handlers import ASK, TOOL, a_call


class Only(Authorizer):
    """Lets everybody do one thing."""

    action = ""

    def is_authorized(self, handler: Any, user: Any, action: str, resource: str) -> bool:  # noqa: ARG002
        return action == self.action


async def open_many(approvals: ApprovalManager, count: int) -> list[ApprovalRequest]:
    return [await approvals.open(a_call(number), TOOL, ASK) for number in range(count)]


def an_answer(request: ApprovalRequest, decision: str = "allow_once", **more: Any) -> dict[str, Any]:
    return {"id": request.id, "decision": decision, "digest": request.call.digest, **more}


async def test_each_decision_is_answered_in_order_and_a_refused_one_stops_no_other(
    approvals: ApprovalManager, fetch: Any
) -> None:
    first, stale, wrong, edited, last = await open_many(approvals, 5)

    code, body = await fetch(
        "approvals",
        "decisions",
        body={
            "decisions": [
                an_answer(first),
                an_answer(stale) | {"digest": "0"},
                an_answer(wrong, arguments={"id": "x"}),
                {"id": "nope", "decision": "allow_once", "digest": "0"},
                an_answer(edited, arguments={"id": 99}),
                an_answer(last, "reject_once", reason="no"),
                an_answer(first, "reject_once"),
                an_answer(stale, "perhaps"),
            ]
        },
    )

    assert code == 200
    assert [(one["id"], one["code"], one["status"], one["reason"]) for one in body["decisions"]] == [
        (first.id, 200, "approved", None),
        (stale.id, 409, "pending", "stale_digest"),
        (wrong.id, 422, "pending", "invalid_arguments"),
        ("nope", 404, None, "unknown_approval"),
        (edited.id, 200, "approved", None),
        (last.id, 200, "rejected", None),
        (first.id, 409, "approved", "not_pending"),
        (stale.id, 422, "pending", "invalid_decision"),
    ]
    assert [one["parameter"] for one in body["decisions"]] == [None, None, "id", *[None] * 5]
    assert [bool(one["message"]) for one in body["decisions"]] == [False, True, True, True, False, False, True, True]
    kept = await approvals.get(edited.id)
    assert (kept.decision and kept.decision.arguments) == {"id": 99}
    refused = await approvals.get(last.id)
    assert (refused.decision and refused.decision.reason) == "no"


async def test_a_rejection_leaves_the_others_of_its_cell_waiting(approvals: ApprovalManager, fetch: Any) -> None:
    rejected, waiting = await open_many(approvals, 2)
    await fetch("approvals", "decisions", body={"decisions": [an_answer(rejected, "reject_once")]})
    assert (await approvals.get(waiting.id)).status.value == "pending"


async def test_overlapping_batches_decide_each_request_once(approvals: ApprovalManager, fetch: Any) -> None:
    requests = await open_many(approvals, 60)
    mine, theirs = requests[:40], requests[20:]
    woken = [asyncio.create_task(approvals.settled(request.id)) for request in requests]

    answers = await asyncio.gather(
        fetch("approvals", "decisions", body={"decisions": [an_answer(one) for one in mine]}),
        fetch("approvals", "decisions", body={"decisions": [an_answer(one, "reject_once") for one in theirs]}),
    )

    codes = [{one["id"]: one["code"] for one in body["decisions"]} for _, body in answers]
    won = [sum(code[request.id] == 200 for code in codes if request.id in code) for request in requests]
    assert won == [1] * 60
    for request, settled in zip(requests, await asyncio.gather(*woken), strict=True):
        expected = "approved" if codes[0].get(request.id) == 200 else "rejected"
        assert settled.status.value == expected


async def test_a_thousand_requests_are_decided_by_two_batches(approvals: ApprovalManager, fetch: Any) -> None:
    requests = [await approvals.open(a_call(number, kernel=f"k{number % 3}"), TOOL, ASK) for number in range(1000)]
    for half in (requests[:MAX_DECISIONS], requests[MAX_DECISIONS:]):
        async with asyncio.timeout(60):
            _, body = await fetch("approvals", "decisions", body={"decisions": [an_answer(one) for one in half]})
        assert {one["code"] for one in body["decisions"]} == {200}


@pytest.mark.parametrize(
    "body",
    [
        "",
        "[]",
        "{}",
        '{"decisions": {}}',
        '{"decisions": [1]}',
        '{"decisions": [{"decision": "allow_once", "digest": "0"}]}',
        '{"decisions": [{"id": 7}]}',
        '{"decisions": [], "reviewer": "mallory"}',
        '{"decisions": [], "decisions": []}',
    ],
)
async def test_a_batch_that_is_none_is_422(fetch: Any, body: str) -> None:
    assert (await fetch("approvals", "decisions", method="POST", body=body))[0] == 422


async def test_a_batch_that_is_too_long_decides_nothing(approvals: ApprovalManager, fetch: Any) -> None:
    [request] = await open_many(approvals, 1)
    body = {"decisions": [an_answer(request)] * (MAX_DECISIONS + 1)}
    assert (await fetch("approvals", "decisions", body=body))[0] == 422
    assert (await approvals.get(request.id)).status.value == "pending"


async def test_a_batch_says_nothing_of_its_reviewer(approvals: ApprovalManager, fetch: Any) -> None:
    [request] = await open_many(approvals, 1)
    _, body = await fetch("approvals", "decisions", body={"decisions": [an_answer(request, reviewer="mallory")]})
    assert [(one["code"], one["reason"]) for one in body["decisions"]] == [(422, "invalid_decision")]


async def test_a_program_decides_nothing_where_only_a_persons_answers_count(
    approvals: ApprovalManager, decisions: DecisionManager, fetch: Any
) -> None:
    [request] = await open_many(approvals, 1)
    decisions.decide_with = DecideWith.PERSON
    _, body = await fetch("approvals", "decisions", body={"decisions": [an_answer(request)]})
    assert [(one["code"], one["reason"]) for one in body["decisions"]] == [(403, "needs_person")]


async def test_without_a_token_no_batch_is_taken(approvals: ApprovalManager, jp_fetch: Any) -> None:
    [request] = await open_many(approvals, 1)
    with pytest.raises(HTTPClientError) as caught:
        await jp_fetch(
            "jupyter-agentbox", "approvals", "decisions",
            method="POST",
            body=json.dumps({"decisions": [an_answer(request)]}),
            headers={"Authorization": "token wrong"},
        )  # fmt: skip
    assert caught.value.code == 403
    assert (await approvals.get(request.id)).status.value == "pending"


async def test_who_may_only_read_decides_nothing(
    approvals: ApprovalManager, fetch: Any, jp_serverapp: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    [request] = await open_many(approvals, 1)
    monkeypatch.setitem(jp_serverapp.web_app.settings, "authorizer", Only())
    monkeypatch.setattr(Only, "action", "read")
    code, _ = await fetch("approvals", "decisions", body={"decisions": [an_answer(request)]})
    assert (code, (await approvals.get(request.id)).status.value) == (403, "pending")


async def test_who_may_only_write_is_not_told_how_others_stand(
    approvals: ApprovalManager, fetch: Any, jp_serverapp: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, stale = await open_many(approvals, 2)
    monkeypatch.setitem(jp_serverapp.web_app.settings, "authorizer", Only())
    monkeypatch.setattr(Only, "action", "write")
    _, body = await fetch(
        "approvals", "decisions", body={"decisions": [an_answer(mine), an_answer(stale) | {"digest": "0"}]}
    )
    assert [(one["code"], one["status"]) for one in body["decisions"]] == [(200, "approved"), (409, None)]
