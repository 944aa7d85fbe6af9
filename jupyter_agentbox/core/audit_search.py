"""Search criteria for records of calls, and the format of the results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from .approval_json import call_to_json, decision_to_json, evaluation_to_json, outcome_to_json
from .approvals import Answer, ApprovalRequest, OutcomeState, Status
from .calls import JsonObject, JsonValue
from .changes import WHOEVER, is_change
from .local_calls import needs_approvers
from .signatures import signature
from .times import json_time


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery:
    """Criteria for records; ``None`` or empty matches any.

    Parameters
    ----------
    since, until : datetime or None
        Range of the request time: inclusive start, exclusive end.
    server, tool : str or None
        Names, or patterns with ``*``, ``?`` and ``[...]``, ignoring case. A tool with a dot may also be
        ``server.tool``.
    reviewer : str or None
        Who decided: a part of the words for them, ignoring case, a `Via` value such as ``api_token``, or ``rule``.
    kernel_id, notebook_path, thread_id : str or None
        The call's origin. In the record of the Hub service, `kernel_id` is the name of the user who made the call.
    answered_by : str or None
        The name of a user who gave the decision, or one of several approvals. Only the Hub service has the latter.
    answers, statuses, outcomes : tuple
        The answers, the request statuses and the call outcomes.
    text : str
        Words that must all occur in names, arguments, reasons or errors, ignoring case.
    limit : int
        Page size, 1 to 500.
    cursor : str or None
        The `next` of the previous page.
    """

    since: datetime | None = None
    until: datetime | None = None
    server: str | None = None
    tool: str | None = None
    reviewer: str | None = None
    kernel_id: str | None = None
    notebook_path: str | None = None
    thread_id: str | None = None
    answered_by: str | None = None
    answers: tuple[Answer, ...] = ()
    statuses: tuple[Status, ...] = ()
    outcomes: tuple[OutcomeState, ...] = ()
    text: str = ""
    limit: int = 100
    cursor: str | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """The words of `text`."""
        return tuple(self.text.casefold().split())

    @property
    def reads_records(self) -> bool:
        """Whether a record must be read to tell whether it matches."""
        return bool(self.words) or self.answered_by is not None

    def accepts(self, request: ApprovalRequest) -> bool:
        """Whether a record matches those criteria for which it must be read."""
        is_answered = self.answered_by is None or has_answered(request, self.answered_by)
        return is_answered and has_words(request, self.words)

    @property
    def page_size(self) -> int:
        """`limit`, kept within 1 to 500."""
        return min(max(self.limit, 1), 500)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPage:
    """A page of records, newest first.

    Parameters
    ----------
    records : tuple of ApprovalRequest
        May be fewer than requested, or none, even if more follow: a search that reads records stops after a while.
    next : str or None
        Cursor of the next page; ``None`` on the last.
    searched_until : datetime or None
        How far back this page searched, if there is a next one.
    """

    records: tuple[ApprovalRequest, ...]
    next: str | None = None
    searched_until: datetime | None = None


def has_answered(request: ApprovalRequest, user: str) -> bool:
    """Whether a user gave the decision on a request, or one of several approvals."""
    return any(one.reviewer.name == user and one.reviewer != WHOEVER for one in request.answers)


def has_words(request: ApprovalRequest, words: Iterable[str]) -> bool:
    """Whether all words are in the request's names, arguments, reasons or errors, or in its call as lists show it."""
    text = _searched(request).casefold()
    return all(word in text for word in words)


def _searched(request: ApprovalRequest) -> str:
    call, decision, rule = request.call, request.decision, request.evaluation.rule
    parts = [f"{call.server}.{call.tool}", call.origin.notebook_path or "", request.id, _signature(request)]
    parts.append(_plain(call.arguments) if call.omitted is None else call.omitted.head)
    if rule is not None:
        parts += [str(rule), rule.reason]
    for one in request.answers:
        parts += [one.reason, one.reviewer.name, one.reviewer.display_name]
    if decision is not None and decision.arguments is not None:
        parts.append(_plain(decision.arguments))
    if request.outcome is not None:
        parts.append(request.outcome.error)
    return "\n".join(parts)


def _plain(arguments: Mapping[str, JsonValue]) -> str:
    """Return arguments as JSON without escapes for quotes and backslashes, as people would type them."""
    return json.dumps(dict(arguments), ensure_ascii=False).replace('\\"', '"').replace("\\\\", "\\")


def decided_by(request: ApprovalRequest) -> str:
    """Return who or what decided, for people; empty if undecided. One rejection is enough; all approvals count."""
    decision = request.decision
    if decision is not None:
        approvals = request.votes if decision.answer.allows else ()
        names = [one.reviewer.in_words for one in approvals]
        who = f"{', '.join(names)} and {decision.reviewer.in_words}" if names else decision.reviewer.in_words
        return who if decision.rule is None else f"rule {decision.rule} of {who}"
    if request.evaluation.grant is not None:
        return request.evaluation.grant.granter.in_words
    if approved_by := _approved_at_hub(request):
        return f"{' and '.join(approved_by)}, at the Hub"
    if request.status in (Status.APPROVED, Status.REJECTED):
        return f"rule {request.evaluation.rule}" if request.evaluation.rule is not None else "rule"
    return ""


def _approved_at_hub(request: ApprovalRequest) -> tuple[str, ...]:
    """Return who approved a call that this server asks nobody about, because a rule has the Hub ask a group."""
    review = request.outcome.review if request.outcome is not None else None
    return review.approved_by if review is not None and needs_approvers(request.evaluation) else ()


def record_to_json(request: ApprovalRequest) -> JsonObject:
    """Return a record as `GET audit` sends it: the request without its tool, plus the fields of lists."""
    decision = request.decision
    answer = decision_to_json(decision, request.effective_call.digest, is_listed=True) if decision else None
    return {
        "id": request.id,
        "status": request.status.value,
        "signature": _signature(request),
        "call": call_to_json(request.call, is_listed=True),
        "evaluation": evaluation_to_json(request.evaluation),
        "created_at": json_time(request.created_at),
        "ended_at": json_time(request.ended_at),
        "decided_by": decided_by(request) or None,
        "decision": answer,
        "outcome": None if request.outcome is None else outcome_to_json(request.outcome),
        "seconds": seconds_of(request),
    }


def seconds_of(request: ApprovalRequest) -> float | None:
    """Return the call's duration in seconds; ``None`` if it did not run, has not ended, or records a change."""
    outcome = request.outcome
    if outcome is None or outcome.started_at is None or outcome.finished_at is None or request.has_not_run:
        return None
    if is_change(request.call):  # recorded once it was made, which nobody timed
        return None
    return max(0.0, round((outcome.finished_at - outcome.started_at).total_seconds(), 3))


def _signature(request: ApprovalRequest) -> str:
    call = request.effective_call
    return signature(call.tool, call.arguments) if call.omitted is None else signature(call.tool, {})[:-1] + "…)"
