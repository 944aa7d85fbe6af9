"""Approval requests as rows, without loss."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, Decision, Outcome, OutcomeState, Status
from jupyter_agentbox.core.approvers import approvers_from_json
from jupyter_agentbox.core.askers import asker_from_json
from jupyter_agentbox.core.calls import HEAD, Omission, Origin, ToolCall
from jupyter_agentbox.core.hub_reviews import review_from_json
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.pagination import microseconds
from jupyter_agentbox.core.policy import Effect, Evaluation, GrantLimit, Layer, Rule
from jupyter_agentbox.core.reported_origins import origin_from_json
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import StorageError

from .grant_rows import (
    grant_use_from_json,
    grant_use_to_json,
    reviewer_from_json,
    reviewer_to_json,
    void_grant_from_json,
    void_grant_to_json,
)
from .json_text import dump_json, text_key
from .question_rows import question_from_json, question_to_json

#: Characters of a text that searches compare.
SEARCHED: Final = 100

#: What `progress` has if, and only if, the request was answered: in a text its quotes would be escaped, and arguments,
#: which could have such a key, are in `progress` only as part of an answer.
DECIDED: Final = b'"decision":{"answer":'
#: What `request` has if its long arguments were left out, and seldom otherwise.
OMITTED: Final = b'"omitted_sha256":'
#: Before it, `progress` has what was said of the request, and behind it, in the end, what became of the call.
OUTCOME: Final = b',"outcome":'


def search_key(value: str | None) -> str | None:
    """Return the beginning of a text that searches look for: an index has no room for a long one."""
    return None if value is None else text_key(value[:SEARCHED])[:SEARCHED]


def tool_row(tool: ToolDescription) -> dict[str, Any]:
    """Return the row of `agentbox_tools`."""
    description = dump_json(tool.to_json())
    return {"digest": hashlib.sha256(description).hexdigest(), "description": description}


def tool_from_row(description: bytes) -> ToolDescription:
    """Return the tool of a row.

    Raises
    ------
    StorageError
    """
    try:
        return ToolDescription(**json.loads(description))
    except (TypeError, ValueError) as error:
        raise StorageError(f"a tool description in the approval store is damaged: {error}") from error


def arguments_row(request: ApprovalRequest) -> dict[str, Any]:
    """Return the row of a new request's long arguments.

    Raises
    ------
    StorageError
    """
    data = dump_json(dict(request.call.arguments))
    return {"id": text_key(request.id), "size": len(data), "closed_at": None, "arguments": data}


def arguments_digest(request: bytes) -> str | None:
    """Return the SHA-256 of the long arguments that a request's row omits; ``None`` if it omits none."""
    found = json.loads(request).get("omitted_sha256")
    return str(found) if found is not None else None


def with_arguments(request: ApprovalRequest, data: bytes) -> ApprovalRequest:
    """Return a request with its arguments, which its row omits.

    Raises
    ------
    StorageError
        If they are damaged.
    """
    try:
        arguments = json.loads(data)
    except ValueError as error:
        raise StorageError(f"arguments in the approval store are damaged: {error!r}") from error
    return replace(request, call=replace(request.call, arguments=arguments, omitted=None))


def new_row(
    request: ApprovalRequest,
    *,
    tool_digest: str,
    owner: str,
    long_arguments: Mapping[str, Any] | None = None,
    is_redacted: bool = False,
) -> dict[str, Any]:
    """Return the row of a new request. Of long arguments, whose row is given, it has only the digest and the beginning.

    The digest of a call with redacted arguments is stored, too, because it cannot be computed from them.

    Raises
    ------
    StorageError
        If the request contains what cannot be stored: NaN, a time without a zone, arguments that are not JSON.
    """
    origin = request.call.origin
    arguments: dict[str, Any] = {"arguments": dict(request.call.arguments)}
    if is_redacted:
        arguments["digest"] = request.call.digest
    if long_arguments is not None:
        data = long_arguments["arguments"]
        head = data[: 4 * HEAD].decode("utf-8", "ignore")[:HEAD]
        arguments = {
            "arguments": {},
            "omitted": {"size": len(data), "head": head},
            "omitted_sha256": hashlib.sha256(data).hexdigest(),
            "digest": request.call.digest,
        }
    try:
        return {
            **progress_row(request, owner=owner),
            "created_at": microseconds(request.created_at),
            "kernel_id": None if origin.kernel_id is None else text_key(origin.kernel_id),
            "notebook_path": None if origin.notebook_path is None else text_key(origin.notebook_path),
            "tool_digest": tool_digest,
            "server": search_key(request.call.server),
            "tool": search_key(request.call.tool),
            "thread_id": search_key(origin.thread_id),
            "request": dump_json(
                {
                    "id": request.id,
                    "server": request.call.server,
                    "tool": request.call.tool,
                    **arguments,
                    "kernel_id": origin.kernel_id,
                    "notebook_path": origin.notebook_path,
                    "cell_id": origin.cell_id,
                    "thread_id": origin.thread_id,
                    "turn_id": origin.turn_id,
                    "isolation": origin.isolation.value,
                    **({"has_own_settings": True} if origin.has_own_settings else {}),
                    **({} if origin.person is None else {"person": origin.person}),
                    **({"askers": [asker.to_json() for asker in origin.askers]} if origin.askers else {}),
                    **({} if origin.groups is None else {"groups": sorted(origin.groups)}),
                    **({} if origin.reported is None else {"reported": origin.reported.to_json()}),
                    "created_at": request.created_at.isoformat(),
                }
            ),
        }
    except TypeError as error:
        raise StorageError(
            f"approval request `{request.id}` cannot be stored: {error}", request_id=request.id
        ) from error


def progress_row(request: ApprovalRequest, *, owner: str) -> dict[str, Any]:
    """Return the columns that change during a request's life.

    Raises
    ------
    StorageError
    """
    state, decision = request.outcome_state, request.decision
    return {
        "id": text_key(request.id),
        "answer": decision.answer.value if decision else None,
        "via": decision.reviewer.via.value if decision else None,
        "reviewer": search_key(decision.reviewer.name) if decision else None,
        "reviewer_name": search_key(decision.reviewer.display_name or None) if decision else None,
        "status": request.status.value,
        "outcome_state": state.value if state else None,
        "owner": owner if request.is_open else None,
        "progress": dump_json(
            {
                "evaluation": _evaluation_to_json(request.evaluation),
                "expires_at": _time_to_json(request.expires_at),
                "extended_by": request.extended_by,
                **({"votes": [_decision_to_json(vote) for vote in request.votes]} if request.votes else {}),
                "decision": _decision_to_json(request.decision),
                **({"lapsed_at": _time_to_json(request.lapsed_at)} if request.lapsed_at is not None else {}),
                "outcome": _outcome_to_json(request.outcome),
            }
        ),
    }


def request_from_row(*, request: bytes, progress: bytes, status: str, tool: ToolDescription | None) -> ApprovalRequest:
    """Return the request of a row; `tool` is ``None`` if its description is lost.

    Raises
    ------
    StorageError
        If the row is damaged.
    """
    if tool is None:
        raise StorageError("a request in the approval store has lost its tool description")
    try:
        asked, since = json.loads(request), json.loads(progress)
        return ApprovalRequest(
            id=asked["id"],
            call=ToolCall(
                server=asked["server"],
                tool=asked["tool"],
                arguments=asked["arguments"],
                omitted=Omission(**asked["omitted"]) if "omitted" in asked else None,
                known_digest=asked.get("digest", ""),
                origin=Origin(
                    kernel_id=asked["kernel_id"],
                    notebook_path=asked["notebook_path"],
                    cell_id=asked["cell_id"],
                    thread_id=asked["thread_id"],
                    turn_id=asked.get("turn_id"),  # rows of before have none
                    isolation=Isolation(asked.get("isolation", Isolation.NONE)),  # rows of before have none
                    has_own_settings=asked.get("has_own_settings", False),
                    person=asked.get("person"),
                    askers=tuple(map(asker_from_json, asked.get("askers", ()))),
                    groups=None if asked.get("groups") is None else frozenset(asked["groups"]),
                    reported=origin_from_json(asked.get("reported")),  # rows of before have none
                ),
            ),
            tool=tool,
            evaluation=_evaluation_from_json(since["evaluation"]),
            created_at=datetime.fromisoformat(asked["created_at"]),
            expires_at=_time_from_json(since["expires_at"]),
            extended_by=since.get("extended_by", ""),  # rows of before have none
            status=Status(status),
            votes=tuple(map(_vote_from_json, since.get("votes", ()))),
            decision=_decision_from_json(since["decision"]),
            outcome=_outcome_from_json(since["outcome"]),
            lapsed_at=_time_from_json(since.get("lapsed_at")),  # rows of before have none
        )
    except (KeyError, TypeError, ValueError) as error:
        raise StorageError(f"a request in the approval store is damaged: {error!r}") from error


def _time_to_json(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def _time_from_json(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _evaluation_to_json(evaluation: Evaluation) -> dict[str, Any]:
    return {
        "effect": evaluation.effect.value,
        "model_may_allow": evaluation.model_may_allow,
        "rule": None if evaluation.rule is None else _rule_to_json(evaluation.rule),
        "grant": None if evaluation.grant is None else grant_use_to_json(evaluation.grant),
        "voided": None if evaluation.voided is None else void_grant_to_json(evaluation.voided),
        **({} if evaluation.policy_version is None else {"policy_version": evaluation.policy_version}),
    }


def _evaluation_from_json(value: Mapping[str, Any]) -> Evaluation:
    rule = value["rule"]
    grant, voided = value.get("grant"), value.get("voided")  # rows of before have neither
    return Evaluation(
        effect=Effect(value["effect"]),
        model_may_allow=value.get("model_may_allow", False),
        rule=None if rule is None else _rule_from_json(rule),
        grant=None if grant is None else grant_use_from_json(grant),
        voided=None if voided is None else void_grant_from_json(voided),
        policy_version=value.get("policy_version"),
    )


def _rule_to_json(rule: Rule) -> dict[str, Any]:
    return {
        "server": rule.server,
        "tool": rule.tool,
        "effect": rule.effect.value,
        "layer": rule.layer.value,
        "reason": rule.reason,
        "kernel_id": rule.kernel_id,
        "file": rule.file,
        "line": rule.line,
        **({} if rule.approvers is None else {"approvers": rule.approvers.to_json()}),
        **({} if rule.grants is GrantLimit.NEVER else {"grants": rule.grants.value}),
    }


def _rule_from_json(rule: Mapping[str, Any]) -> Rule:
    approvers = rule.get("approvers")
    return Rule(
        **{
            **_names(rule),
            "effect": Effect(rule["effect"]),
            "layer": Layer(rule["layer"]),
            "approvers": None if approvers is None else approvers_from_json(approvers),
            "grants": GrantLimit(rule.get("grants", GrantLimit.NEVER)),
        }
    )


def _names(rule: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a rule's fields with server and tool; older rows have one pattern, split at its first dot."""
    if "server" in rule:
        return rule
    server, _, tool = str(rule["tool"]).partition(".")
    return {**rule, "server": server, "tool": tool or server}


def _decision_to_json(decision: Decision | None) -> dict[str, Any] | None:
    if decision is None:
        return None
    return {
        "answer": decision.answer.value,
        "digest": decision.digest,
        "reviewer": reviewer_to_json(decision.reviewer),
        "decided_at": decision.decided_at.isoformat(),
        "reason": decision.reason,
        **({"tell": True} if decision.tell else {}),
        "arguments": None if decision.arguments is None else dict(decision.arguments),
        **({"edited_digest": decision.edited_digest} if decision.edited_digest else {}),
        "grant": None if decision.grant is None else grant_use_to_json(decision.grant),
        **({} if decision.rule is None else {"rule": _rule_to_json(decision.rule)}),
    }


def _decision_from_json(value: Mapping[str, Any] | None) -> Decision | None:
    return None if value is None else _vote_from_json(value)


def _vote_from_json(value: Mapping[str, Any]) -> Decision:
    grant, rule = value.get("grant"), value.get("rule")  # rows of before have neither
    return Decision(
        **{
            **value,
            "grant": None if grant is None else grant_use_from_json(grant),
            "rule": None if rule is None else _rule_from_json(rule),
            "answer": Answer(value["answer"]),
            "reviewer": reviewer_from_json(value["reviewer"]),
            "decided_at": datetime.fromisoformat(value["decided_at"]),
        }
    )


def _outcome_to_json(outcome: Outcome | None) -> dict[str, Any] | None:
    if outcome is None:
        return None
    return {
        "state": outcome.state.value,
        "started_at": _time_to_json(outcome.started_at),
        "finished_at": _time_to_json(outcome.finished_at),
        "error": outcome.error,
        **({"questions": [question_to_json(one) for one in outcome.questions]} if outcome.questions else {}),
        **({} if outcome.review is None else {"review": outcome.review.to_json()}),
    }


def _outcome_from_json(value: Mapping[str, Any] | None) -> Outcome | None:
    if value is None:
        return None
    return Outcome(
        state=OutcomeState(value["state"]),
        started_at=_time_from_json(value["started_at"]),
        finished_at=_time_from_json(value["finished_at"]),
        error=value["error"],
        questions=tuple(question_from_json(one) for one in value.get("questions", ())),  # rows of before have none
        review=review_from_json(value.get("review")),
    )
