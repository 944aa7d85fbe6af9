"""Approval requests as JSON, for the REST API and for the record."""

from __future__ import annotations

import json
from collections.abc import Mapping

from .approvals import ApprovalRequest, Decision, Outcome, Status
from .calls import JsonObject, JsonValue, Omission, ToolCall, is_long
from .grant_json import grant_use_to_json, void_grant_to_json
from .look_alikes import look_alikes, look_alikes_to_json
from .policy import Evaluation
from .signatures import replaced, signature
from .text import one_line
from .times import json_time
from .tools import Activity


def request_to_json(
    request: ApprovalRequest,
    activity: Activity | None = None,
    *,
    mark: str | None = None,
    is_listed: bool = False,
    saves: bool = False,
) -> JsonObject:
    """Return the request as the REST API sends it.

    Parameters
    ----------
    request : ApprovalRequest
        The request to serialize.
    activity : Activity or None
        Progress and log messages of the running call.
    mark : str or None
        ``"new"`` or ``"changed"`` if the tool's definition is not the one that a person last looked at.
    is_listed : bool
        Whether it is part of a list, which omits long arguments.
    saves : bool
        Whether notebooks may have its arguments.
    """
    call, decision, outcome = request.call, request.decision, request.outcome
    shown = call_to_json(call, is_listed=is_listed)
    seen = call.arguments if shown["arguments"] is not None else {}
    return {
        "id": request.id,
        "status": request.status.value,
        "call": {
            **shown,
            "look_alikes": look_alikes_to_json(look_alikes(server=call.server, tool=call.tool, arguments=seen)),
        },
        "tool": {
            "title": request.tool.title,
            "description": request.tool.description,
            "annotations": request.tool.annotations,
            "input_schema": request.tool.input_schema,
            # Nobody sees it before a call, unless it is what voids a lasting answer.
            **({} if request.evaluation.voided is None else {"output_schema": request.tool.output_schema}),
            "mark": mark,
        },
        "evaluation": evaluation_to_json(request.evaluation),
        "created_at": json_time(request.created_at),
        "expires_at": json_time(request.expires_at),
        "extended_by": request.extended_by or None,
        "ended_at": json_time(request.ended_at),
        "decision": None
        if decision is None
        else decision_to_json(decision, request.effective_call.digest, is_listed=is_listed),
        "outcome": None if outcome is None else {**outcome_to_json(outcome), **(activity or Activity()).to_json()},
        "saved": _saved_to_json(request) if saves and request.status is not Status.PENDING else None,
    }


def _saved_to_json(request: ApprovalRequest) -> JsonObject:
    """Return what a notebook keeps of the arguments: the call that ran, and what an edit replaced."""
    call, decision = request.call, request.decision
    edited = None if decision is None else decision.arguments
    whole = call.omitted is None or edited is not None
    shown = signature(call.qualified_name, call.arguments if edited is None else edited)
    asked = "" if edited is None or call.omitted is not None else replaced(call.arguments, edited)
    return {"call": shown if whole else f"{one_line(call.qualified_name)}(…)", "replaced": asked or None}


def summary_to_json(request: ApprovalRequest) -> JsonObject:
    """Return the request's id and status, which pages poll."""
    call = request.call
    return {
        "id": request.id,
        "status": request.status.value,
        "server": call.server,
        "tool": call.tool,
        "digest": call.digest,
        "kernel_id": call.origin.kernel_id,
        "notebook_path": call.origin.notebook_path,
        "cell_id": call.origin.cell_id,
        "created_at": json_time(request.created_at),
        "expires_at": json_time(request.expires_at),
        "ended_at": json_time(request.ended_at),
    }


def call_to_json(call: ToolCall, *, is_listed: bool) -> JsonObject:
    """Return the call and where it came from as the REST API sends it."""
    arguments, omitted = arguments_to_json(call.arguments, call.omitted, is_listed=is_listed)
    return {
        "server": call.server,
        "tool": call.tool,
        "arguments": arguments,
        "omitted": omitted,
        "digest": call.digest,
        "kernel_id": call.origin.kernel_id,
        "notebook_path": call.origin.notebook_path,
        "cell_id": call.origin.cell_id,
        "thread_id": call.origin.thread_id,
        "turn_id": call.origin.turn_id,
        "isolation": call.origin.isolation.value,
        "has_own_settings": call.origin.has_own_settings,
        "person": call.origin.person,
        "asked_by": call.origin.asked_by,
        "askers": [{**asker.to_json()} for asker in call.origin.askers],
    }


def evaluation_to_json(evaluation: Evaluation) -> JsonObject:
    """Return the evaluation as the REST API sends it, with the grant that gave the effect or would have given it."""
    return {
        **evaluation.to_json(),
        "grant": None if evaluation.grant is None else grant_use_to_json(evaluation.grant),
        "voided": None if evaluation.voided is None else void_grant_to_json(evaluation.voided),
    }


def outcome_to_json(outcome: Outcome) -> JsonObject:
    """Return the outcome as the REST API sends it."""
    return {
        "state": outcome.state.value,
        "started_at": json_time(outcome.started_at),
        "finished_at": json_time(outcome.finished_at),
        "error": outcome.error,
        "questions": [record.to_json() for record in outcome.questions],
        "review": None if outcome.review is None else outcome.review.to_json(),
    }


def arguments_to_json(
    arguments: Mapping[str, JsonValue], omission: Omission | None, *, is_listed: bool
) -> tuple[JsonObject | None, JsonObject | None]:
    """Return the arguments, or their placeholder."""
    if omission is None and is_listed and is_long(arguments):
        omission = Omission.of(json.dumps(dict(arguments), ensure_ascii=False))
    return (dict(arguments), None) if omission is None else (None, omission.to_json())


def decision_to_json(decision: Decision, digest: str, *, is_listed: bool) -> JsonObject:
    """Return the decision as the REST API sends it, with the digest of the call that runs."""
    reviewer = decision.reviewer
    edited: tuple[JsonObject | None, JsonObject | None] = None, None
    if decision.arguments is not None:
        edited = arguments_to_json(decision.arguments, None, is_listed=is_listed)
    return {
        "decision": decision.answer.value,
        "reviewer": reviewer.name,
        "reviewer_kind": reviewer.kind.value,
        "reviewer_name": reviewer.display_name or None,
        "via": reviewer.via.value,
        "credential": reviewer.credential or None,
        "hub_server": reviewer.hub_server or None,
        "token_note": reviewer.token_note or None,
        "reason": decision.reason,
        "tell": decision.tell,
        "decided_at": json_time(decision.decided_at),
        "arguments": edited[0],
        "omitted": edited[1],
        "digest": digest,
        "grant": None if decision.grant is None else grant_use_to_json(decision.grant),
        "rule": None if decision.rule is None else decision.rule.named(),
    }
