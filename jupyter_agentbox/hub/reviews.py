"""Who may see and decide a request, and how many people have to approve it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from weakref import WeakValueDictionary

from jupyter_agentbox.core.approval_json import request_to_json
from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, Status
from jupyter_agentbox.core.approvers import Approvers
from jupyter_agentbox.core.audit_search import has_answered
from jupyter_agentbox.core.calls import JsonObject, ToolCall, is_long
from jupyter_agentbox.core.hub_reviews import HubReview
from jupyter_agentbox.core.ports import ApprovalQuery, Clock
from jupyter_agentbox.core.reviewers import Via
from jupyter_agentbox.core.times import json_time
from jupyter_agentbox.exceptions import (
    AgentBoxError,
    InvalidDecisionError,
    NeedsPersonError,
    NotAnApproverError,
    UnknownApprovalError,
)
from jupyter_agentbox.services.approvals.decisions import DecisionManager
from jupyter_agentbox.services.approvals.manager import ApprovalManager
from jupyter_agentbox.services.approvals.verdicts import Verdict

from .callers import Caller, asker_of
from .policy_in_force import PolicyInForce

#: The number of requests read from the store at a time.
_PAGE: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewRequest:
    """A request, with what one caller may do with it.

    Parameters
    ----------
    request : ApprovalRequest
        The request.
    refusal : str
        Why the caller cannot allow it; empty if they can.
    may_reject : bool
        Whether the caller can reject it. Even a person who has approved it can, until others have approved it, too.
    may_break_glass : bool
        Whether the caller can allow it alone in an emergency.
    """

    request: ApprovalRequest
    refusal: str
    may_reject: bool
    may_break_glass: bool = False

    def to_json(self, *, is_listed: bool = False) -> JsonObject:
        """Return it in the format of the service's REST API."""
        return {
            **request_to_json(self.request, is_listed=is_listed),
            **persons_to_json(self.request),
            "may_decide": not self.refusal,
            "may_reject": self.may_reject,
            "may_break_glass": self.may_break_glass,
            "refusal": self.refusal or None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewFilter:
    """A filter for requests. Each text is a part of a name, ignoring case; an empty one matches all.

    Parameters
    ----------
    asked_by : str
        The user whose code made the call.
    server, tool : str
        The server and the tool.
    """

    asked_by: str = ""
    server: str = ""
    tool: str = ""

    def matches(self, request: ApprovalRequest) -> bool:
        """Whether a request passes the filter."""
        call = request.call
        pairs = ((self.asked_by, asker_of(request)), (self.server, call.server), (self.tool, call.tool))
        return all(wanted.casefold() in name.casefold() for wanted, name in pairs)

    def to_json(self) -> dict[str, str]:
        """Return the filter's texts, without empty ones."""
        wanted = {"asked_by": self.asked_by, "server": self.server, "tool": self.tool}
        return {name: text for name, text in wanted.items() if text}


def persons_to_json(request: ApprovalRequest) -> JsonObject:
    """Return who made the call and from where, who has to approve it, and the approvals so far."""
    approvers, reported = approvers_of(request), request.call.origin.reported
    return {
        "asked_by": asker_of(request),
        "reported": None if reported is None else {**reported.to_json()},
        "approvers": None if approvers is None else approvers.to_json(),
        "votes": [
            {
                "reviewer": vote.reviewer.name,
                "via": vote.reviewer.via.value,
                "credential": vote.reviewer.credential or None,
                "decided_at": json_time(vote.decided_at),
                "reason": vote.reason,
            }
            for vote in request.votes
        ],
    }


def summary_of(request: ApprovalRequest) -> JsonObject:
    """Return a request's summary for lists outside the service, without arguments and reasons."""
    return {
        "id": request.id,
        "asked_by": asker_of(request),
        "server": request.call.server,
        "tool": request.call.tool,
        "created_at": json_time(request.created_at),
        "expires_at": json_time(request.expires_at),
    }


def approvers_of(request: ApprovalRequest) -> Approvers | None:
    """Return who has to approve a request; ``None`` if it is the user whose code made the call."""
    rule = request.evaluation.rule
    return None if rule is None else rule.approvers


def server_review(request: ApprovalRequest, now: datetime, url: str) -> HubReview:
    """Return the state of a request's review, as sent to its caller."""
    approvers, decision, status = approvers_of(request), request.decision, request.status
    approved_by = [vote.reviewer.name for vote in request.votes]
    if decision is not None and decision.answer.allows:
        approved_by.append(decision.reviewer.name)
    is_rejected = decision is not None and not decision.answer.allows
    return HubReview(
        status=Status.CANCELLED.value if request.has_not_run else status.value,
        groups=tuple(sorted(deciding_groups(request, now))),
        count=1 if approvers is None else approvers.count,
        approved_by=tuple(approved_by),
        expires_at=request.expires_at if status is Status.PENDING else None,
        rejected_by=decision.reviewer.name if decision is not None and is_rejected else "",
        reason=decision.reason if decision is not None and is_rejected else "",
        url=f"{url}requests/{request.id}",
    )


#: No filter.
EVERYTHING: Final = ReviewFilter()


class ReviewManager:
    """Takes people's decisions, as the approvers named in a request's rule require.

    Parameters
    ----------
    approvals : ApprovalManager
        Stores the requests and knows the waiting ones.
    decisions : DecisionManager
        Applies the decisions of people who may decide.
    policy : PolicyInForce
        Names the groups whose members may see every request.
    why_otherwise : callable
        Returns why the current policy lets nobody allow a request any more; empty if it can be allowed.
    clock : Clock
        The time.
    """

    def __init__(
        self,
        *,
        approvals: ApprovalManager,
        decisions: DecisionManager,
        policy: PolicyInForce,
        why_otherwise: Callable[[ApprovalRequest], str],
        clock: Clock,
    ) -> None:
        self._why_otherwise = why_otherwise
        self._clock = clock
        self._approvals = approvals
        self._decisions = decisions
        self._policy = policy
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def now(self) -> datetime:
        """The time."""
        return self._clock.now()

    def is_auditor(self, caller: Caller) -> bool:
        """Whether the policy makes the caller an auditor, who may see all requests, waiting ones too."""
        return caller.is_in(self._policy.current.auditors)

    def may_read_record(self, caller: Caller) -> bool:
        """Whether the caller may read all records: an auditor, or whoever has the scope for that alone."""
        return caller.may_audit or self.is_auditor(caller)

    async def get(self, request_id: str, caller: Caller) -> ReviewRequest:
        """Return a request that the caller may see.

        Raises
        ------
        UnknownApprovalError
            If there is none, or the caller may not see it.
        StorageError
        """
        request = await self._approvals.get(request_id)
        if not self.may_see(request, caller):
            raise UnknownApprovalError(f"no approval request `{request_id}`", request_id=request_id)
        return self._reviewed(request, caller)

    async def get_own(self, request_id: str, caller: Caller) -> ApprovalRequest:
        """Return a request of the caller's own code.

        Raises
        ------
        UnknownApprovalError
            If there is none, or it is another user's.
        StorageError
        """
        request = await self._approvals.get(request_id)
        if not caller.is_user or asker_of(request) != caller.name:
            raise UnknownApprovalError(f"no approval request `{request_id}` of yours", request_id=request_id)
        return request

    async def review_of(self, request_id: str, url: str) -> HubReview:
        """Return the state of a request's review, as sent to the caller of the tool.

        Parameters
        ----------
        request_id : str
            The request.
        url : str
            The service's public URL.

        Raises
        ------
        UnknownApprovalError
            If there is no such request.
        StorageError
        """
        return server_review(await self._approvals.get(request_id), self.now, url)

    async def pending(self, caller: Caller, wanted: ReviewFilter = EVERYTHING) -> Sequence[ReviewRequest]:
        """Return the waiting requests that pass the filter and that the caller may see, newest first.

        Raises
        ------
        StorageError
        """
        waiting = await self._approvals.waiting()
        seen = [one for one in waiting if wanted.matches(one) and self.may_see(one, caller)]
        return [self._reviewed(one, caller) for one in await self._shortened(seen)]

    async def for_answer(self, caller: Caller) -> Sequence[ApprovalRequest]:
        """Return the requests that the caller can decide, oldest first.

        Raises
        ------
        StorageError
        """
        waiting = await self._approvals.waiting()
        wanted = [one for one in waiting if self.may_see(one, caller) and not self._reviewed(one, caller).refusal]
        return sorted(wanted, key=lambda one: (one.created_at, one.id))

    async def _shortened(self, requests: Sequence[ApprovalRequest]) -> Sequence[ApprovalRequest]:
        """Return the requests with long arguments cut off, as the store keeps them: cutting them here takes long."""
        long = [one.id for one in requests if is_long(one.call.arguments)]
        stored: dict[str, ToolCall] = {}
        for start in range(0, len(long), _PAGE):
            page = await self._approvals.list(ApprovalQuery(ids=tuple(long[start : start + _PAGE]), limit=_PAGE))
            stored |= {one.id: one.call for one in page.approvals}
        return [replace(one, call=stored[one.id]) if one.id in stored else one for one in requests]

    async def own(self, caller: Caller, *, limit: int) -> Sequence[ReviewRequest]:
        """Return the newest of the caller's own requests.

        Raises
        ------
        StorageError
        """
        page = await self._approvals.list(ApprovalQuery(kernel_id=caller.name, limit=limit))
        return [self._reviewed(one, caller) for one in page.approvals]

    async def decide(
        self, request_id: str, verdict: Verdict, *, caller: Caller, breaks_glass: bool = False
    ) -> ReviewRequest:
        """Apply the caller's decision. A rejection ends the request, as does the last approval needed.

        Parameters
        ----------
        request_id : str
            The request.
        verdict : Verdict
            The decision.
        caller : Caller
            The person who decides.
        breaks_glass : bool
            Whether the caller allows the request alone in an emergency.

        Raises
        ------
        NotAnApproverError
            If the caller may not decide it.
        NeedsPersonError
            If the caller has no login session of a browser.
        InvalidDecisionError
            If the answer is neither ``allow_once`` nor ``reject_once``, edits arguments, lacks a required reason, or
            is the person's second approval.
        UnknownApprovalError, InvalidTransitionError, StaleDigestError, StorageError
            As for `DecisionManager.decide`.
        """
        if caller.via is not Via.BROWSER:
            raise NeedsPersonError(
                "only a person who is logged in with a browser can decide: a token is not enough."
                " The request is unchanged.",
                request_id=request_id,
            )
        if verdict.answer.is_lasting or verdict.arguments is not None:
            raise InvalidDecisionError(
                "here a request can only be allowed once, as it is, or rejected", request_id=request_id
            )
        if breaks_glass and not verdict.answer.allows:
            raise InvalidDecisionError(
                "`break_glass` goes only with an answer that allows the request", request_id=request_id
            )
        turn = self._turns.setdefault(request_id, asyncio.Lock())
        await self._policy.look()  # a policy that the administrator has just written applies to this decision, too
        async with turn:  # approvals that come at the same time are counted one after the other
            return self._reviewed(await self._decide(request_id, verdict, caller, breaks_glass), caller)

    async def decide_all(
        self, verdicts: Sequence[tuple[str, Verdict]], *, caller: Caller
    ) -> tuple[ReviewRequest | AgentBoxError, ...]:
        """Apply the caller's decisions on several requests, each as in `decide`. A refused one does not stop others.

        Returns
        -------
        tuple of ReviewRequest or AgentBoxError
            For each decision, in order, the changed request, or the error for which it is unchanged.
        """

        async def take(request_id: str, verdict: Verdict) -> ReviewRequest | AgentBoxError:
            try:
                return await self.decide(request_id, verdict, caller=caller)
            except AgentBoxError as error:
                return error

        return tuple(await asyncio.gather(*(take(request_id, verdict) for request_id, verdict in verdicts)))

    async def _decide(self, request_id: str, verdict: Verdict, caller: Caller, breaks_glass: bool) -> ApprovalRequest:
        reviewed = await self.get(request_id, caller)
        request = reviewed.request
        if request.status is Status.PENDING:
            self._check(reviewed, verdict, breaks_glass)
        if breaks_glass:
            reviewer = replace(caller.reviewer, via=Via.BREAK_GLASS)
            return await self._decisions.decide(request_id, verdict, reviewer=reviewer)
        approvers = approvers_of(request)
        if verdict.answer is Answer.ALLOW_ONCE and approvers is not None and len(request.votes) + 1 < approvers.count:
            return await self._decisions.endorse(request_id, verdict, reviewer=caller.reviewer)
        return await self._decisions.decide(request_id, verdict, reviewer=caller.reviewer)

    def _check(self, reviewed: ReviewRequest, verdict: Verdict, breaks_glass: bool) -> None:
        """Raise an error if the caller may not decide a pending request this way."""
        request, approvers = reviewed.request, approvers_of(reviewed.request)
        may_answer = not reviewed.refusal or (reviewed.may_reject and not verdict.answer.allows)
        if breaks_glass and not reviewed.may_break_glass:
            raise NotAnApproverError("you may not break the glass for this request", request_id=request.id)
        if not breaks_glass and not may_answer:
            raise NotAnApproverError(reviewed.refusal, request_id=request.id)
        if (breaks_glass or (approvers is not None and approvers.needs_reason)) and not verdict.reason.strip():
            raise InvalidDecisionError(
                "this decision needs a reason. Nothing was decided: add a reason, and send it again.",
                request_id=request.id,
            )
        if verdict.answer.allows and (why := self._why_otherwise(request)):
            raise NotAnApproverError(
                f"{why}: the request can only be rejected, and then the code can ask again", request_id=request.id
            )

    def may_see(self, request: ApprovalRequest, caller: Caller) -> bool:
        """Whether the caller may see a request as it is now, and on its page."""
        if self.is_auditor(caller):
            return True
        if caller.may_audit and not request.is_open:  # an open one has what the record omits
            return True
        if caller.is_user and (asker_of(request) == caller.name or has_answered(request, caller.name)):
            return True
        return caller.is_in(deciding_groups(request, self.now)) or _is_glass_breaker(request, caller)

    def _reviewed(self, request: ApprovalRequest, caller: Caller) -> ReviewRequest:
        refusal = _refusal(request, caller, self.now)
        has_approved = not refusal and any(vote.reviewer.name == caller.name for vote in request.votes)
        return ReviewRequest(
            request=request,
            refusal="you have approved it already; another person has to approve it, too" if has_approved else refusal,
            may_reject=not refusal,
            may_break_glass=request.status is Status.PENDING and _is_glass_breaker(request, caller),
        )


def _is_glass_breaker(request: ApprovalRequest, caller: Caller) -> bool:
    """Whether the caller may allow the request alone in an emergency."""
    approvers = approvers_of(request)
    return approvers is not None and bool(approvers.break_glass) and caller.is_in(frozenset({approvers.break_glass}))


def deciding_groups(request: ApprovalRequest, now: datetime) -> frozenset[str]:
    """Return the groups whose members may decide a request, or could when it ended."""
    approvers = approvers_of(request)
    ended = request.decision.decided_at if request.decision is not None else request.lapsed_at
    waited = ((ended or now) - request.created_at).total_seconds()
    return frozenset() if approvers is None else approvers.groups_after(waited)


#: How a request ended, in words, by status.
ENDS: Final[Mapping[Status, str]] = {
    Status.APPROVED: "was approved",
    Status.REJECTED: "was rejected",
    Status.EXPIRED: "has expired",
    Status.CANCELLED: "was withdrawn: the code that made it no longer waits",
    Status.ORPHANED: "has ended, because the kernel or server that made it has ended",
}


def _refusal(request: ApprovalRequest, caller: Caller, now: datetime) -> str:
    """Return why the caller may not decide a request; empty if they may."""
    approvers, is_asker = approvers_of(request), caller.is_user and asker_of(request) == caller.name
    if request.status is not Status.PENDING:
        return f"this request {ENDS[request.status]}"
    if approvers is None:
        return "" if is_asker else "only the person whose code made this request may decide"
    groups = deciding_groups(request, now)
    if not caller.is_in(groups):
        return f"only members of the group {' or '.join(sorted(groups))} may decide"
    if is_asker and not approvers.self_counts:
        return "your own code made this request, so another person has to decide"
    return ""
