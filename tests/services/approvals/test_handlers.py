"""The REST API of approval requests, over HTTP against a real Jupyter server."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from tornado.httpclient import HTTPClientError

from jupyter_agentbox.core.approvals import Lapse, OutcomeState
from jupyter_agentbox.core.calls import Origin, ToolCall
from jupyter_agentbox.core.hub_reviews import HubReview
from jupyter_agentbox.core.policy import Effect, Evaluation
from jupyter_agentbox.core.times import json_time
from jupyter_agentbox.core.tools import Progress, ToolDescription
from jupyter_agentbox.services.approvals.manager import ApprovalManager
from jupyter_agentbox.services.handlers import SETTINGS_KEY

SCHEMA: Any = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
TOOL = ToolDescription(name="delete_order", title="Delete an order", description="For good.", input_schema=SCHEMA)
ASK = Evaluation(effect=Effect.ASK)


def a_call(id: int = 7, kernel: str = "k1", path: str = "a.ipynb") -> ToolCall:
    origin = Origin(kernel_id=kernel, notebook_path=path, cell_id="c1")
    return ToolCall(server="shop", tool="delete_order", arguments={"id": id}, origin=origin)


async def test_a_request_says_whether_a_person_has_looked_at_the_tool_as_it_is(
    approvals: ApprovalManager, fetch: Any, jp_serverapp: Any
) -> None:
    seen = jp_serverapp.web_app.settings[SETTINGS_KEY].seen_tools
    request = await approvals.open(a_call(), TOOL, ASK)

    async def marks() -> list[Any]:
        bodies = [(await fetch("approvals", request.id))[1], *(await fetch("approvals"))[1]["approvals"]]
        return [body["tool"]["mark"] for body in bodies]

    assert await marks() == [None, None]
    seen.look("shop", {"other": "x"})
    assert await marks() == ["new", "new"]
    seen.look("shop", {"delete_order": "another"})
    assert await marks() == ["changed", "changed"]
    await approvals.lapse(request.id, Lapse.WITHDRAWN)
    assert await marks() == [None, None]


async def test_a_request_that_is_over_says_what_a_notebook_may_keep_of_its_arguments(
    approvals: ApprovalManager, fetch: Any, jp_serverapp: Any
) -> None:
    settings = jp_serverapp.web_app.settings
    request = await approvals.open(a_call(), TOOL, ASK)

    async def saved() -> list[Any]:
        bodies = [(await fetch("approvals", request.id))[1], *(await fetch("approvals"))[1]["approvals"]]
        return [body["saved"] for body in bodies]

    assert await saved() == [None, None]
    await approvals.lapse(request.id, Lapse.WITHDRAWN)
    assert await saved() == [{"call": "shop.delete_order(id=7)", "replaced": None}] * 2
    settings[SETTINGS_KEY] = replace(settings[SETTINGS_KEY], saves_arguments=False)
    assert await saved() == [None, None]


async def test_a_request_reads_as_the_reference_says(approvals: ApprovalManager, fetch: Any) -> None:
    request = await approvals.open(a_call(), TOOL, ASK)

    code, body = await fetch("approvals", request.id)

    assert (code, body["id"], body["status"]) == (200, request.id, "pending")
    assert body["call"] == {
        "server": "shop",
        "tool": "delete_order",
        "arguments": {"id": 7},
        "omitted": None,
        "digest": request.call.digest,
        "kernel_id": "k1",
        "notebook_path": "a.ipynb",
        "cell_id": "c1",
        "thread_id": None,
        "turn_id": None,
        "isolation": "none",
        "has_own_settings": False,
        "person": None,
        "asked_by": None,
        "askers": [],
        "look_alikes": [],
    }
    assert body["tool"] == {
        "title": "Delete an order",
        "description": "For good.",
        "annotations": {},
        "input_schema": SCHEMA,
        "mark": None,
    }
    assert body["evaluation"] == {
        "effect": "ask",
        "rule": None,
        "layer": None,
        "reason": None,
        "file": None,
        "line": None,
        "grant": None,
        "voided": None,
    }
    assert (body["decision"], body["outcome"]) == (None, None)
    assert body["created_at"].endswith("Z")
    assert body["expires_at"].endswith("Z")


async def test_list_filters_and_pages_newest_first(approvals: ApprovalManager, fetch: Any) -> None:
    first, second, third = [
        await approvals.open(call, TOOL, ASK) for call in (a_call(), a_call(path="ü b.ipynb"), a_call(kernel="k2"))
    ]
    for params, expected in [
        ({}, [third, second, first]),
        ({"status": "pending,approved"}, [third, second, first]),
        ({"status": "rejected"}, []),
        ({"kernel_id": "k2"}, [third]),
        ({"notebook_path": "ü b.ipynb"}, [second]),
    ]:
        code, body = await fetch("approvals", params=params)
        assert (code, [found["id"] for found in body["approvals"]]) == (200, [request.id for request in expected])
        assert body["next"] is None

    _, page = await fetch("approvals", params={"limit": "2"})
    _, rest = await fetch("approvals", params={"limit": "2", "cursor": page["next"]})
    assert [found["id"] for found in page["approvals"] + rest["approvals"]] == [third.id, second.id, first.id]
    assert rest["next"] is None


async def test_summaries_say_which_requests_there_are_and_how_they_stand(
    approvals: ApprovalManager, fetch: Any
) -> None:
    request = await approvals.open(a_call(), TOOL, ASK)
    code, body = await fetch("approvals", params={"summary": "true"})
    _, whole = await fetch("approvals")
    [listed] = whole["approvals"]
    assert (code, body["next"]) == (200, None)
    assert body["approvals"] == [
        {name: listed[name] for name in ("id", "status", "created_at", "expires_at", "ended_at")}
        | {name: listed["call"][name] for name in ("server", "tool", "digest", "kernel_id", "notebook_path", "cell_id")}
    ]
    assert body["approvals"][0]["id"] == request.id


async def test_the_first_page_of_summaries_names_the_running_calls_that_wait_at_the_hub(
    approvals: ApprovalManager, fetch: Any, jp_serverapp: Any
) -> None:
    running_calls = jp_serverapp.web_app.settings[SETTINGS_KEY].running_calls
    allow = Evaluation(effect=Effect.ALLOW)

    async def at_hub(**params: str) -> Any:
        _, body = await fetch("approvals", params={"summary": "true", "status": "pending", **params})
        return body.get("at_hub")

    async def ask_at_hub(kernel: str) -> str:
        request = await approvals.open(a_call(kernel=kernel), TOOL, allow)
        tell(request.id, "pending")
        return request.id

    def tell(id: str, status: str) -> None:
        review = HubReview(status=status, groups=("keepers",))
        running_calls.set_progress(id, Progress(progress=0, review=review))

    assert await at_hub() == []
    await approvals.open(a_call(), TOOL, allow)  # runs, and asks nobody
    first, second = await ask_at_hub("k2"), await ask_at_hub("k3")
    assert await at_hub() == [first, second]
    assert await at_hub(kernel_id="k1") == [first, second]
    assert await at_hub(cursor=(await first_page(fetch))["next"]) is None
    tell(first, "approved")
    assert await at_hub() == [second]
    await approvals.record(second, OutcomeState.CANCELLED)
    assert await at_hub() == []


async def first_page(fetch: Any) -> Any:
    _, body = await fetch("approvals", params={"limit": "1"})
    return body


async def test_a_page_that_says_the_same_is_not_sent_again(
    approvals: ApprovalManager, jp_fetch: Any, fetch: Any
) -> None:
    async def look(tag: str) -> Any:
        headers = {"If-None-Match": tag} if tag else {}
        params = {"summary": "true", "status": "pending"}
        return await jp_fetch("jupyter-agentbox", "approvals", params=params, headers=headers, raise_error=False)

    request = await approvals.open(a_call(), TOOL, ASK)
    first = await look("")
    tag = first.headers["ETag"]
    same = await look(tag)
    assert (first.code, same.code, same.body) == (200, 304, b"")
    # A proxy that compresses says so in the tag.
    assert (await look(f"W/{tag}")).code == 304
    other = await approvals.open(a_call(), TOOL, ASK)
    more = await look(tag)
    assert (more.code, len(json.loads(more.body)["approvals"])) == (200, 2)
    await fetch(
        "approvals", other.id, "decision", body={"decision": "reject_once", "digest": other.call.digest, "reason": "no"}
    )
    # What is as it was before has the tag that it had.
    again = await look(more.headers["ETag"])
    assert (again.code, again.headers["ETag"]) == (200, tag)
    assert [one["id"] for one in json.loads(again.body)["approvals"]] == [request.id]


@pytest.mark.parametrize(
    "params",
    [{"status": "maybe"}, {"limit": "0"}, {"limit": "501"}, {"limit": "x"}, {"cursor": "zzz"}, {"summary": "1"}],
)
async def test_bad_query_is_422(fetch: Any, params: Any) -> None:
    code, body = await fetch("approvals", params=params)
    assert code == 422
    assert body["message"]


async def test_decision_is_taken_with_the_sessions_identity(approvals: ApprovalManager, fetch: Any) -> None:
    request = await approvals.open(a_call(), TOOL, ASK)
    settled = asyncio.create_task(approvals.settled(request.id))

    code, body = await fetch(
        "approvals",
        request.id,
        "decision",
        body={"decision": "reject_once", "digest": request.call.digest, "reason": "no"},
    )

    assert (code, body["status"], body["decision"]["reason"]) == (200, "rejected", "no")
    assert body["decision"]["reviewer"]
    assert (await settled).status.value == "rejected"


async def test_second_decision_is_409_and_changes_nothing(approvals: ApprovalManager, fetch: Any) -> None:
    request = await approvals.open(a_call(), TOOL, ASK)
    decision = {"decision": "reject_once", "digest": request.call.digest}
    await fetch("approvals", request.id, "decision", body=decision)

    code, body = await fetch("approvals", request.id, "decision", body=decision | {"decision": "allow_once"})

    assert (code, body["reason"], body["approval"]["status"]) == (409, "not_pending", "rejected")


async def test_two_decisions_at_once_have_one_winner(approvals: ApprovalManager, fetch: Any) -> None:
    request = await approvals.open(a_call(), TOOL, ASK)
    decision = {"decision": "allow_once", "digest": request.call.digest}
    answers = await asyncio.gather(*(fetch("approvals", request.id, "decision", body=decision) for _ in range(8)))
    assert sorted(code for code, _ in answers) == [200, *[409] * 7]


async def test_wrong_digest_is_409(approvals: ApprovalManager, fetch: Any) -> None:
    request = await approvals.open(a_call(), TOOL, ASK)
    code, body = await fetch(
        "approvals", request.id, "decision", body={"decision": "allow_once", "digest": a_call(8).digest}
    )
    assert (code, body["reason"]) == (409, "stale_digest")
    assert (await approvals.get(request.id)).status.value == "pending"


async def test_unknown_request_is_404(fetch: Any) -> None:
    assert (await fetch("approvals", "nope"))[0] == 404
    code, body = await fetch("approvals", "nope", "decision", body={"decision": "allow_once", "digest": "x"})
    assert (code, body["reason"]) == (404, "unknown_approval")


@pytest.mark.parametrize(
    "change",
    [
        {"decision": "yes"},
        {"decision": None},
        {"digest": 1},
        {"arguments": [1]},
        {"reason": 1},
        {"reason": "x" * 4001},
        {"tell": "yes"},
        {"decision": "reject_once", "tell": True},
        {"reviewer": "mallory"},
    ],
)
async def test_bad_decision_is_422(approvals: ApprovalManager, fetch: Any, change: Any) -> None:
    request = await approvals.open(a_call(), TOOL, ASK)
    body = {"decision": "allow_once", "digest": request.call.digest} | change
    assert (await fetch("approvals", request.id, "decision", body=body))[0] == 422
    assert (await approvals.get(request.id)).status.value == "pending"


@pytest.mark.parametrize("body", ["", "{", "[]", "1", "[" * 100_000])
async def test_body_that_is_no_json_object_is_422(approvals: ApprovalManager, fetch: Any, body: str) -> None:
    request = await approvals.open(a_call(), TOOL, ASK)
    assert (await fetch("approvals", request.id, "decision", method="POST", body=body))[0] == 422


async def test_edited_arguments_that_do_not_fit_are_422_with_the_parameter(
    approvals: ApprovalManager, fetch: Any
) -> None:
    request = await approvals.open(a_call(), TOOL, ASK)
    edited = {"decision": "allow_once", "digest": request.call.digest, "arguments": {"id": "x"}}
    code, body = await fetch("approvals", request.id, "decision", body=edited)
    assert (code, body["reason"], body["parameter"]) == (422, "invalid_arguments", "id")

    code, body = await fetch("approvals", request.id, "decision", body=edited | {"arguments": {"id": 8}})
    assert (code, body["decision"]["arguments"], body["call"]["arguments"]) == (200, {"id": 8}, {"id": 7})
    assert body["decision"]["digest"] == a_call(8).digest


@pytest.mark.parametrize("path", ["approvals", "approvals/r1", "servers", "kernels/k1"])
async def test_without_a_token_nothing_is_told(jp_fetch: Any, path: str) -> None:
    with pytest.raises(HTTPClientError) as caught:
        await jp_fetch("jupyter-agentbox", *path.split("/"), headers={"Authorization": "token wrong"})
    assert caught.value.code == 403


async def test_without_a_token_nothing_is_decided(approvals: ApprovalManager, jp_fetch: Any) -> None:
    request = await approvals.open(a_call(), TOOL, ASK)
    with pytest.raises(HTTPClientError) as caught:
        await jp_fetch(
            "jupyter-agentbox", "approvals", request.id, "decision",
            method="POST",
            body=json.dumps({"decision": "allow_once", "digest": request.call.digest}),
            headers={"Authorization": "token wrong"},
        )  # fmt: skip
    assert caught.value.code == 403
    assert (await approvals.get(request.id)).status.value == "pending"


async def test_every_change_is_announced_without_arguments(
    approvals: ApprovalManager, fetch: Any, jp_serverapp: Any
) -> None:
    told: list[Any] = []
    done = asyncio.Event()

    async def listen(logger: Any, schema_id: str, data: Any) -> None:
        told.append(data)
        if len(told) == 2:
            done.set()

    jp_serverapp.event_logger.add_listener(schema_id="https://events.jupyter-agentbox.org/approval/v1", listener=listen)
    request = await approvals.open(a_call(), TOOL, ASK)
    decision = {"decision": "reject_once", "digest": request.call.digest, "reason": "secret"}
    await fetch("approvals", request.id, "decision", body=decision)
    async with asyncio.timeout(60):
        await done.wait()

    mine = [{key: event[key] for key in event if not key.startswith("__")} for event in told]
    asked = {
        "id": request.id,
        "status": "pending",
        "outcome": None,
        "kernel_id": "k1",
        "isolation": "none",
        "asked_by": None,
        "effect": "ask",
        "layer": None,
        "created_at": json_time(request.created_at),
        "expires_at": json_time(request.expires_at),
    }
    unanswered = dict.fromkeys(("decision", "reviewer", "reviewer_kind", "via", "decided_at", "ended_at"))
    rejected = (await approvals.get(request.id)).decision
    assert rejected is not None
    assert mine == [
        asked | unanswered,
        {
            **asked,
            "status": "rejected",
            "decision": "reject_once",
            "reviewer": rejected.reviewer.name,
            "reviewer_kind": rejected.reviewer.kind.value,
            "via": "api_token",
            "decided_at": json_time(rejected.decided_at),
            "ended_at": json_time(rejected.decided_at),
        },
    ]


async def test_a_list_leaves_long_arguments_out_and_a_request_has_them_until_it_ends(
    approvals: ApprovalManager, fetch: Any
) -> None:
    arguments = {"id": 7, "text": "x" * 1_000_000}
    request = await approvals.open(replace(a_call(), arguments=arguments), TOOL, ASK)

    _, page = await fetch("approvals", params={"status": "pending"})
    [listed] = page["approvals"]
    assert (listed["call"]["arguments"], listed["call"]["omitted"]["size"] > 1_000_000) == (None, True)
    assert len(json.dumps(page)) < 5_000
    _, whole = await fetch("approvals", request.id)
    assert (whole["call"]["arguments"], whole["call"]["omitted"]) == (arguments, None)
    assert whole["call"]["digest"] == listed["call"]["digest"] == request.call.digest

    await approvals.lapse(request.id, Lapse.WITHDRAWN)
    _, ended = await fetch("approvals", request.id)
    assert (ended["call"]["arguments"], ended["call"]["omitted"]) == (None, listed["call"]["omitted"])
    assert ended["call"]["digest"] == request.call.digest


async def test_requests_can_be_listed_by_their_ids(approvals: ApprovalManager, fetch: Any) -> None:
    first, _, third = [await approvals.open(a_call(), TOOL, ASK) for _ in range(3)]

    _, page = await fetch("approvals", params={"ids": f"{first.id},{third.id},nobody"})
    assert {one["id"] for one in page["approvals"]} == {first.id, third.id}
    code, _ = await fetch("approvals", params={"ids": ",".join(["x"] * 501)})
    assert code == 422


async def test_request_is_given_more_time_as_the_reference_says(approvals: ApprovalManager, fetch: Any) -> None:
    request = await approvals.open(a_call(), TOOL, ASK)

    code, body = await fetch("approvals", request.id, "extend", method="POST", body="{}")

    assert (code, body["id"], body["status"]) == (200, request.id, "pending")
    assert body["extended_by"]
    assert body["expires_at"] >= (json_time(request.expires_at) or "")


async def test_no_time_is_given_to_what_is_over_or_unknown_nor_for_a_body_that_says_how_much(
    approvals: ApprovalManager, fetch: Any
) -> None:
    request = await approvals.open(a_call(), TOOL, ASK)
    codes = [
        (await fetch("approvals", request.id, "extend", method="POST", body='{"seconds": 9}'))[0],
        (await fetch("approvals", "unknown", "extend", method="POST", body="{}"))[0],
    ]
    await approvals.lapse(request.id, Lapse.WITHDRAWN)
    code, body = await fetch("approvals", request.id, "extend", method="POST", body="{}")

    assert [*codes, code] == [422, 404, 409]
    assert body["approval"]["status"] == "cancelled"
