"""Approval requests as the REST API sends them."""

from __future__ import annotations

import json
from dataclasses import replace

from jupyter_agentbox.core.approval_json import request_to_json, summary_to_json
from jupyter_agentbox.core.approvals import Lapse, Outcome, OutcomeState
from jupyter_agentbox.core.calls import LONG, Omission
from jupyter_agentbox.core.hub_reviews import HubReview
from jupyter_agentbox.core.policy import Effect, Evaluation, Rule
from jupyter_agentbox.core.reviewers import Reviewer, ReviewerKind, Via
from jupyter_agentbox.core.tools import Activity, Progress
from tests.samples import NOON, a_call, a_decision, a_request


def test_a_new_request_as_json_has_every_field_and_no_decision() -> None:
    request = a_request()

    assert request_to_json(request) == {
        "id": "r1",
        "status": "pending",
        "call": {
            "server": "shop",
            "tool": "delete_order",
            "arguments": {"order_id": 7},
            "omitted": None,
            "digest": request.call.digest,
            "kernel_id": "k1",
            "notebook_path": "work/orders.ipynb",
            "cell_id": "c1",
            "thread_id": None,
            "turn_id": None,
            "isolation": "none",
            "has_own_settings": False,
            "person": None,
            "asked_by": None,
            "askers": [],
            "look_alikes": [],
        },
        "tool": {
            "title": "Delete an order",
            "description": "",
            "annotations": {},
            "input_schema": {"type": "object"},
            "mark": None,
        },
        "evaluation": {
            "effect": "ask",
            "rule": None,
            "layer": None,
            "reason": None,
            "file": None,
            "line": None,
            "grant": None,
            "voided": None,
        },
        "created_at": "2026-05-01T12:00:00.000Z",
        "expires_at": "2026-05-01T12:10:00.000Z",
        "extended_by": None,
        "ended_at": None,
        "decision": None,
        "outcome": None,
        "saved": None,
    }


def test_a_summary_says_as_much_as_the_request_and_has_neither_arguments_nor_the_tool() -> None:
    asked = a_request()
    request = asked.decide(a_decision(asked))
    whole = request_to_json(request)

    assert summary_to_json(request) == {
        **{name: whole[name] for name in ("id", "status", "created_at", "expires_at", "ended_at")},
        "server": request.call.server,
        "tool": request.call.tool,
        "digest": request.call.digest,
        "kernel_id": request.call.origin.kernel_id,
        "notebook_path": request.call.origin.notebook_path,
        "cell_id": request.call.origin.cell_id,
    }


def test_a_decided_and_running_request_as_json_has_both_versions_of_the_arguments() -> None:
    rule = Rule(server="*", tool="*", effect=Effect.ASK)
    asked = a_request(evaluation=Evaluation(effect=Effect.ASK, rule=rule))
    running = asked.decide(a_decision(asked, arguments={"order_id": 8})).with_outcome(
        Outcome(state=OutcomeState.RUNNING, started_at=NOON)
    )

    value = request_to_json(running, Activity(progress=Progress(progress=1, total=2, message="half")))

    assert value["call"]["arguments"] == {"order_id": 7}  # type: ignore[call-overload, index]  # JSON
    assert value["evaluation"] == {
        "effect": "ask",
        "rule": "user: ask *.*",
        "layer": "user",
        "reason": "",
        "file": None,
        "line": None,
        "grant": None,
        "voided": None,
    }
    assert value["decision"] == {
        "decision": "allow_once",
        "reviewer": "ada",
        "reviewer_kind": "user",
        "reviewer_name": None,
        "via": "browser",
        "credential": None,
        "hub_server": None,
        "token_note": None,
        "reason": "",
        "tell": False,
        "decided_at": "2026-05-01T12:00:00.000Z",
        "arguments": {"order_id": 8},
        "omitted": None,
        "digest": running.effective_call.digest,
        "grant": None,
        "rule": None,
    }
    assert value["outcome"] == {
        "state": "running",
        "started_at": "2026-05-01T12:00:00.000Z",
        "finished_at": None,
        "error": "",
        "questions": [],
        "review": None,
        "progress": {"progress": 1, "total": 2, "message": "half"},
        "messages": [],
    }


def test_whom_the_hub_asks_is_that_of_a_running_call_and_afterwards_what_was_recorded() -> None:
    asked = a_request()
    running = asked.decide(a_decision(asked)).record(OutcomeState.RUNNING, at=NOON)
    waiting = HubReview(status="pending", groups=("stewards",))
    allowed = HubReview(status="approved", groups=("stewards",), approved_by=("bob",))
    ended = running.record(OutcomeState.SUCCEEDED, at=NOON, review=allowed)

    now = request_to_json(running, Activity().with_progress(Progress(progress=0, review=waiting)))

    assert now["outcome"]["review"] == waiting.to_json()  # type: ignore[call-overload, index]  # JSON
    assert request_to_json(ended)["outcome"]["review"] == allowed.to_json()  # type: ignore[call-overload, index]  # JSON


def test_long_arguments_are_left_out_of_a_list_and_of_nothing_else() -> None:
    long = {"text": "x" * LONG, "город": 1}
    asked = a_request(call=a_call(arguments=long))
    request = asked.decide(a_decision(asked, arguments={**long, "more": 1}))

    whole, listed = request_to_json(request), request_to_json(request, is_listed=True)

    size = len(json.dumps(long, ensure_ascii=False).encode())
    assert (whole["call"]["arguments"], whole["call"]["omitted"]) == (long, None)  # type: ignore[call-overload, index]  # JSON
    assert whole["decision"]["arguments"] == {**long, "more": 1}  # type: ignore[call-overload, index]  # JSON
    for part in ("call", "decision"):
        assert listed[part]["arguments"] is None  # type: ignore[call-overload, index]  # JSON
        assert listed[part]["omitted"]["head"].startswith('{"text": "xxx')  # type: ignore[call-overload, index, union-attr]  # JSON
        assert listed[part]["digest"] == whole[part]["digest"]  # type: ignore[call-overload, index]  # JSON
    assert listed["call"]["omitted"]["size"] == size  # type: ignore[call-overload, index]  # JSON


def test_a_decision_as_json_says_who_made_it_and_how_that_is_known() -> None:
    reviewer = Reviewer(
        name="robot",
        via=Via.API_TOKEN,
        kind=ReviewerKind.SERVICE,
        display_name="Robby",
        credential="5e0",
        hub_server="ada/gpu",
    )
    asked = a_request()

    decision = request_to_json(asked.decide(a_decision(asked, reviewer=reviewer)))["decision"]

    assert isinstance(decision, dict)
    told = {
        name: decision[name]
        for name in ("reviewer", "reviewer_kind", "reviewer_name", "via", "credential", "hub_server", "arguments")
    }
    assert told == {
        "reviewer": "robot",
        "reviewer_kind": "service",
        "reviewer_name": "Robby",
        "via": "api_token",
        "credential": "5e0",
        "hub_server": "ada/gpu",
        "arguments": None,
    }


def test_what_a_notebook_keeps_is_the_call_that_ran_and_what_the_code_had_asked_for() -> None:
    asked = a_request(call=a_call(arguments={"order_id": 7, "note": "x"}))
    edited = asked.decide(a_decision(asked, arguments={"order_id": 8, "note": "x"}))

    assert request_to_json(asked, saves=True)["saved"] is None
    assert request_to_json(edited)["saved"] is None
    assert request_to_json(edited, saves=True)["saved"] == {
        "call": "shop.delete_order(order_id=8, note='x')",
        "replaced": "order_id=7",
    }
    as_asked = request_to_json(asked.decide(a_decision(asked)), saves=True)["saved"]
    assert as_asked == {"call": "shop.delete_order(order_id=7, note='x')", "replaced": None}


def test_what_a_notebook_keeps_of_arguments_that_are_no_longer_kept_has_none() -> None:
    call = replace(a_call(), arguments={}, omitted=Omission(size=20_000, head='{"text": "lorem'))
    asked = a_request(call=call)
    edited = asked.decide(a_decision(asked, arguments={"order_id": 8}))

    lapsed = request_to_json(asked.lapse(Lapse.TIMED_OUT), saves=True)["saved"]
    assert lapsed == {"call": "shop.delete_order(…)", "replaced": None}
    assert request_to_json(edited, saves=True)["saved"] == {
        "call": "shop.delete_order(order_id=8)",
        "replaced": None,
    }
