from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta, timezone

import pytest

from jupyter_agentbox.core.approvals import (
    INITIAL,
    OUTCOME_TRANSITIONS,
    TRANSITIONS,
    Answer,
    ApprovalRequest,
    Lapse,
    Outcome,
    OutcomeState,
    Status,
    comment_for,
    json_time,
    reason_for,
    request_to_json,
    summary_to_json,
)
from jupyter_agentbox.core.calls import LONG
from jupyter_agentbox.core.policy import Effect, Evaluation, Rule
from jupyter_agentbox.core.reviewers import Reviewer, ReviewerKind, Via
from jupyter_agentbox.core.tools import Activity, Progress
from jupyter_agentbox.exceptions import InvalidDecisionError, InvalidTransitionError, StaleDigestError
from tests.samples import NOON, a_call, a_decision, a_request


def step(request: ApprovalRequest, cause: Answer | Lapse) -> ApprovalRequest:
    return request.lapse(cause) if isinstance(cause, Lapse) else request.decide(a_decision(request, cause))


@pytest.mark.parametrize("cause", [*Answer, *Lapse])
@pytest.mark.parametrize("status", Status)
def test_a_status_changes_as_the_table_says_and_in_no_other_way(status: Status, cause: Answer | Lapse) -> None:
    request = replace(a_request(), status=status)

    if (status, cause) in TRANSITIONS:
        assert step(request, cause).status is TRANSITIONS[status, cause]
    else:
        with pytest.raises(InvalidTransitionError) as caught:
            step(request, cause)
        assert caught.value.request_id == request.id


def test_only_pending_requests_can_change() -> None:
    assert {status for status, _ in TRANSITIONS} == {Status.PENDING}
    assert [status for status in Status if not status.is_final] == [Status.PENDING]


def test_every_cause_ends_a_pending_request() -> None:
    assert {cause for _, cause in TRANSITIONS} == {*Answer, *Lapse}


@pytest.mark.parametrize("after", OutcomeState)
@pytest.mark.parametrize("before", [None, *OutcomeState])
@pytest.mark.parametrize("status", Status)
def test_an_outcome_changes_as_the_table_says_and_only_of_an_approved_call(
    status: Status, before: OutcomeState | None, after: OutcomeState
) -> None:
    request = replace(a_request(), status=status, outcome=Outcome(state=before) if before else None)

    if status is Status.APPROVED and (before, after) in OUTCOME_TRANSITIONS:
        assert request.with_outcome(Outcome(state=after)).outcome_state is after
    else:
        with pytest.raises(InvalidTransitionError):
            request.with_outcome(Outcome(state=after))


def test_an_outcome_that_has_ended_never_changes() -> None:
    assert {before for before, _ in OUTCOME_TRANSITIONS} == {None, OutcomeState.RUNNING}


@pytest.mark.parametrize("status", Status)
def test_only_a_pending_request_waits_longer(status: Status) -> None:
    request = replace(a_request(), status=status)
    later = NOON + timedelta(hours=1)

    if status is Status.PENDING:
        assert request.extend(later, by="ada") == replace(request, expires_at=later, extended_by="ada")
    else:
        with pytest.raises(InvalidTransitionError):
            request.extend(later, by="ada")


@pytest.mark.parametrize("effect", Effect)
def test_only_a_request_that_waits_for_a_person_can_expire(effect: Effect) -> None:
    request = a_request(evaluation=Evaluation(effect=effect))

    assert request.status is INITIAL[effect]
    assert (request.expires_at is not None) is (request.status is Status.PENDING)


@pytest.mark.parametrize(
    ("status", "outcome", "expected"),
    [
        (Status.PENDING, None, True),
        (Status.APPROVED, None, True),
        (Status.APPROVED, OutcomeState.RUNNING, True),
        (Status.APPROVED, OutcomeState.SUCCEEDED, False),
        (Status.REJECTED, None, False),
        (Status.ORPHANED, None, False),
    ],
)
def test_a_request_is_open_until_nothing_is_left_to_do(
    status: Status, outcome: OutcomeState | None, expected: bool
) -> None:
    request = replace(a_request(), status=status, outcome=Outcome(state=outcome) if outcome else None)

    assert request.is_open is expected


def test_a_decision_about_other_arguments_is_refused() -> None:
    request = a_request()

    with pytest.raises(StaleDigestError):
        request.decide(a_decision(request, digest="0" * 64))


def test_a_rejection_cannot_edit_the_arguments() -> None:
    request = a_request()

    with pytest.raises(InvalidDecisionError):
        request.decide(a_decision(request, Answer.REJECT_ONCE, arguments={}))


def test_what_runs_is_the_edited_call_and_the_asked_one_is_kept() -> None:
    request = a_request()

    decided = request.decide(a_decision(request, arguments={"order_id": 8}))

    assert decided.effective_call == request.call.with_arguments({"order_id": 8})
    assert decided.call == request.call
    assert decided.effective_call.digest != request.call.digest


def test_without_edits_what_runs_is_what_was_asked() -> None:
    request = a_request()

    assert request.effective_call is request.call
    assert request.decide(a_decision(request)).effective_call is request.call


@pytest.mark.parametrize("answer", Answer)
def test_the_four_answers_say_what_they_mean(answer: Answer) -> None:
    assert answer.allows is answer.value.startswith("allow")
    assert answer.is_lasting is answer.value.endswith("always")


def test_the_reason_of_a_rejection_is_the_persons_or_the_rules() -> None:
    rule = Rule(server="shop", tool="*", effect=Effect.DENY, reason="no shopping")
    denied = a_request(evaluation=Evaluation(effect=Effect.DENY, rule=rule))
    asked = a_request()

    assert reason_for(asked.decide(a_decision(asked, Answer.REJECT_ONCE, reason="too many"))) == "too many"
    assert reason_for(denied) == "no shopping"
    assert reason_for(replace(denied, evaluation=Evaluation(effect=Effect.DENY, rule=replace(rule, reason="")))) == (
        "user: deny shop.*"
    )
    assert reason_for(asked) == ""


def test_times_are_sent_in_utc_with_milliseconds() -> None:
    assert json_time(None) is None
    assert json_time(NOON.astimezone(timezone(timedelta(hours=2)))) == "2026-05-01T12:00:00.000Z"


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
        "reason": "",
        "tell": False,
        "decided_at": "2026-05-01T12:00:00.000Z",
        "arguments": {"order_id": 8},
        "omitted": None,
        "digest": running.effective_call.digest,
        "grant": None,
    }
    assert value["outcome"] == {
        "state": "running",
        "started_at": "2026-05-01T12:00:00.000Z",
        "finished_at": None,
        "error": "",
        "questions": [],
        "progress": {"progress": 1, "total": 2, "message": "half"},
        "messages": [],
    }


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


@pytest.mark.parametrize(
    ("answer", "tell", "comment"),
    [
        (Answer.ALLOW_ONCE, True, "mind the stock"),
        (Answer.ALLOW_ALWAYS, True, "mind the stock"),
        (Answer.ALLOW_ONCE, False, ""),
        (Answer.REJECT_ONCE, True, ""),
    ],
)
def test_the_code_gets_a_comment_that_an_answer_that_allows_has_for_it(
    answer: Answer, tell: bool, comment: str
) -> None:
    asked = a_request()

    assert comment_for(asked) == ""
    assert comment_for(asked.decide(a_decision(asked, answer, reason="mind the stock", tell=tell))) == comment
