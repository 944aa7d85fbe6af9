"""REST: list approval requests, read one, decide one or many."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from jupyter_server.auth.decorator import authorized
from tornado import web

from jupyter_agentbox.core.approval_json import request_to_json, summary_to_json
from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, Status
from jupyter_agentbox.core.calls import JsonObject, JsonValue, is_long
from jupyter_agentbox.core.grants import NEVER_GRANTED
from jupyter_agentbox.core.ports import ApprovalQuery
from jupyter_agentbox.exceptions import (
    AgentBoxError,
    InvalidDecisionError,
    InvalidRequestError,
    InvalidTransitionError,
    NotAuthorizedError,
    StaleDigestError,
    StorageError,
    UnknownApprovalError,
)
from jupyter_agentbox.services.grants.handlers import AUTH_RESOURCE as GRANTS
from jupyter_agentbox.services.grants.terms import terms_from_json
from jupyter_agentbox.services.handlers import AgentBoxHandler, status_code_of
from jupyter_agentbox.services.json_answers import answer_text
from jupyter_agentbox.services.reviewers import reviewer_of

from .decisions import DecisionManager
from .manager import ApprovalManager
from .verdicts import Verdict

AUTH_RESOURCE: Final = "jupyter_agentbox:approvals"
#: The resource that a request to add a server also changes.
_SERVERS: Final = "jupyter_agentbox:servers"
MAX_LIMIT: Final = 500
MAX_REASON: Final = 4_000
MAX_DECISIONS: Final = 500
_FIELDS: Final = {"decision", "digest", "arguments", "reason", "tell", "grant"}


def verdict_from_json(body: JsonObject) -> Verdict:
    """Parse a decision's body. The session, never the body, determines the reviewer.

    Raises
    ------
    InvalidDecisionError
        If a field is missing, unknown, or of the wrong type.
    """
    unknown = sorted(set(body) - _FIELDS)
    if unknown:
        raise InvalidDecisionError(f"unknown field `{unknown[0]:.80}`; a decision has {', '.join(sorted(_FIELDS))}")
    answers = [answer.value for answer in Answer]
    decision, digest, reason, arguments = (body.get(name) for name in ("decision", "digest", "reason", "arguments"))
    if not isinstance(decision, str) or decision not in answers:
        raise InvalidDecisionError(f"`decision` must be one of {', '.join(answers)}")
    if not isinstance(digest, str):
        raise InvalidDecisionError("`digest` must be the digest of the call that the person saw")
    if reason is not None and (not isinstance(reason, str) or len(reason) > MAX_REASON):
        raise InvalidDecisionError(f"`reason` must be a string of at most {MAX_REASON} characters")
    if arguments is not None and not isinstance(arguments, dict):
        raise InvalidDecisionError("`arguments` must be a JSON object")
    answer = Answer(decision)
    tell = _tell_from_json(body.get("tell"), answer)
    if body.get("grant") is not None and not answer.is_lasting:
        raise InvalidDecisionError("`grant` goes with `allow_always` and `reject_always` only")
    terms = None if body.get("grant") is None else terms_from_json(body["grant"])
    return Verdict(answer=answer, digest=digest, reason=reason or "", tell=tell, arguments=arguments, grant=terms)


def _tell_from_json(tell: JsonValue, answer: Answer) -> bool:
    if tell is not None and not isinstance(tell, bool):
        raise InvalidDecisionError("`tell` must be true or false")
    if tell is not None and not answer.allows:
        raise InvalidDecisionError("`tell` goes with an answer that allows: code is always told why it was rejected")
    return tell is True


def request_in_brief(request: ApprovalRequest) -> JsonObject:
    """Return the part of a request that is shown to somebody who may change but not read it."""
    return {"id": request.id, "status": request.status.value}


def _is_id(value: JsonValue) -> bool:
    return isinstance(value, str) and bool(value)


def named_from_json(entry: JsonValue) -> tuple[str, JsonObject]:
    """Split an entry of a batch into the request's id and the body of a single decision.

    Raises
    ------
    InvalidDecisionError
        If it has no id.
    """
    if not isinstance(entry, dict) or not _is_id(entry.get("id")):
        raise InvalidDecisionError("each decision must be a JSON object whose `id` is a request's")
    return str(entry["id"]), {name: value for name, value in entry.items() if name != "id"}


class ApprovalsAPIHandler(AgentBoxHandler):
    """Base of the handlers of approval requests."""

    auth_resource = AUTH_RESOURCE

    @property
    def approvals(self) -> ApprovalManager:
        """The manager of approval requests."""
        return self.services.approvals

    @property
    def decisions(self) -> DecisionManager:
        """The manager of decisions."""
        return self.services.decisions

    async def check_rights(self, request_id: str, verdict: Verdict) -> None:
        """Reject an answer that also decides what comes later, if the client may only decide this request.

        Raises
        ------
        NotAuthorizedError
        UnknownApprovalError
        """
        if verdict.answer.is_lasting:
            await self.require_write(GRANTS, "a lasting answer")
        if verdict.answer.allows and not await self.may_write(_SERVERS):
            call = (await self.approvals.get(request_id)).call
            if (call.server, call.tool) in NEVER_GRANTED:
                await self.require_write(_SERVERS, f"allowing `{call.qualified_name}`")

    def to_json(self, request: ApprovalRequest) -> JsonObject:
        """Return the request with its call's progress and log messages."""
        activity = self.services.running_calls.activity_of(request.id)
        return request_to_json(request, activity, mark=self.mark_of(request), saves=self.services.saves_arguments)

    def listed(self, request: ApprovalRequest) -> JsonObject:
        """Return the request without long arguments, for a client that already has them."""
        activity = self.services.running_calls.activity_of(request.id)
        return request_to_json(
            request, activity, mark=self.mark_of(request), is_listed=True, saves=self.services.saves_arguments
        )

    def mark_of(self, request: ApprovalRequest) -> str | None:
        """Return whether the tool's definition is new to the people who decide."""
        if request.status is not Status.PENDING:
            return None
        return self.services.seen_tools.marks(request.call.server, (request.tool,)).get(request.tool.name)


class ApprovalsHandler(ApprovalsAPIHandler):
    """All approval requests, newest first."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """List a page of approval requests."""
        try:
            is_summary = self._is_summary()
            page = await self.approvals.list(self._query())
        except ValueError as error:
            raise self.bad_query(str(error)) from None
        if is_summary:
            summaries: list[JsonValue] = [summary_to_json(one) for one in page.approvals]
            self.finish_json({"approvals": summaries, "next": page.next, **self._at_hub()})
            return
        activity = {request.id: self.services.running_calls.activity_of(request.id) for request in page.approvals}
        saves = self.services.saves_arguments

        def to_text() -> str:
            listed = [
                request_to_json(one, activity[one.id], mark=self.mark_of(one), is_listed=True, saves=saves)
                for one in page.approvals
            ]
            return answer_text({"approvals": listed, "next": page.next})

        # In a thread: serializing a page of requests would block the loop.
        self.finish_text(await asyncio.to_thread(to_text))

    def _at_hub(self) -> JsonObject:
        """Return the running calls that wait at the Hub, with the first page only: pages poll it anyway."""
        ids: list[JsonValue] = [*self.services.running_calls.at_hub()]
        return {} if self.get_query_argument("cursor", "") else {"at_hub": ids}

    def _is_summary(self) -> bool:
        value = self.get_query_argument("summary", "false")
        if value not in {"true", "false"}:
            raise ValueError("`summary` must be `true` or `false`")
        return value == "true"

    def _query(self) -> ApprovalQuery:
        names = [name for value in self.get_query_arguments("status") for name in value.split(",") if name]
        limit = self.get_query_argument("limit", "100")
        if not limit.isdecimal() or not 1 <= int(limit) <= MAX_LIMIT:
            raise ValueError(f"`limit` must be a number from 1 to {MAX_LIMIT}")
        ids = [id for value in self.get_query_arguments("ids") for id in value.split(",") if id]
        if len(ids) > MAX_LIMIT:
            raise ValueError(f"`ids` may name {MAX_LIMIT} requests at most")
        return ApprovalQuery(
            ids=tuple(ids),
            statuses=tuple(Status(name) for name in names),
            kernel_id=self.get_query_argument("kernel_id", "") or None,
            notebook_path=self.get_query_argument("notebook_path", "") or None,
            limit=int(limit),
            cursor=self.get_query_argument("cursor", "") or None,
        )


class ApprovalHandler(ApprovalsAPIHandler):
    """One approval request."""

    @web.authenticated
    @authorized
    async def get(self, request_id: str) -> None:
        """Read an approval request, with all stored arguments."""
        request = await self.approvals.get(request_id)
        if is_long(request.call.arguments):
            self.finish_text(await asyncio.to_thread(lambda: answer_text(self.to_json(request))))
        else:
            self.finish_json(self.to_json(request))


class AnswerHandler(ApprovalsAPIHandler):
    """Base for actions on an approval request; the response to a conflict contains its current state."""

    _conflict: ApprovalRequest | None = None

    async def answer(self, request_id: str, take: Callable[[], Awaitable[ApprovalRequest]]) -> None:
        """Respond with the request after the action, or in brief if the client may not read it."""
        may_read = await self.may_read(AUTH_RESOURCE)
        try:
            request = await take()
        except (InvalidTransitionError, StaleDigestError):
            if may_read:
                self._conflict = await self.approvals.get(request_id)
            raise
        self.finish_json(self.listed(request) if may_read else request_in_brief(request))

    def error_details(self, error: AgentBoxError) -> JsonObject:
        """Add the request's current state to a conflict, for the page to show."""
        details: dict[str, Any] = super().error_details(error)
        if self._conflict is not None:
            details["approval"] = self.listed(self._conflict)
        return details


class DecisionHandler(AnswerHandler):
    """A decision on an approval request."""

    @web.authenticated
    @authorized
    async def post(self, request_id: str) -> None:
        """Decide an approval request."""
        verdict = verdict_from_json(self.json_object())
        reviewer = await reviewer_of(self, AUTH_RESOURCE)
        await self.check_rights(request_id, verdict)
        await self.answer(request_id, lambda: self.decisions.decide(request_id, verdict, reviewer=reviewer))


class ExtensionHandler(AnswerHandler):
    """An extension of an approval request."""

    @web.authenticated
    @authorized
    async def post(self, request_id: str) -> None:
        """Extend an approval request's waiting time."""
        if self.json_object():
            raise InvalidRequestError("the body must be `{}`")
        reviewer = await reviewer_of(self, AUTH_RESOURCE)
        await self.answer(request_id, lambda: self.decisions.extend(request_id, reviewer=reviewer))


class DecisionsHandler(ApprovalsAPIHandler):
    """Decisions on several approval requests."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Decide each request as if its decision came alone, and respond for each, in order."""
        entries = self._entries()
        reviewer = await reviewer_of(self, AUTH_RESOURCE)
        may_read = await self.may_read(AUTH_RESOURCE)
        verdicts = [(id, await self._verdict(id, body)) for id, body in entries]
        readable = ((id, verdict) for id, verdict in verdicts if isinstance(verdict, Verdict))
        taken = iter(await self.decisions.decide_all(tuple(readable), reviewer=reviewer))
        answers: list[JsonValue] = [
            await self._answer(id, next(taken) if isinstance(verdict, Verdict) else verdict, may_read=may_read)
            for id, verdict in verdicts
        ]
        self.finish_json({"decisions": answers})

    async def _verdict(self, id: str, body: JsonObject) -> Verdict | AgentBoxError:
        """Parse a decision; if it is refused, return the error."""
        try:
            verdict = verdict_from_json(body)
            await self.check_rights(id, verdict)
        except (InvalidDecisionError, NotAuthorizedError, UnknownApprovalError) as error:
            return error
        return verdict

    def _entries(self) -> list[tuple[str, JsonObject]]:
        body = self.json_object()
        entries = body.get("decisions")
        if set(body) != {"decisions"} or not isinstance(entries, list):
            raise InvalidDecisionError('the body must be `{"decisions": [decision, …]}`')
        if len(entries) > MAX_DECISIONS:
            raise InvalidDecisionError(f"`decisions` may have {MAX_DECISIONS} entries at most")
        return [named_from_json(entry) for entry in entries]

    async def _answer(self, id: str, taken: ApprovalRequest | AgentBoxError, *, may_read: bool) -> JsonObject:
        if isinstance(taken, ApprovalRequest):
            return {**request_in_brief(taken), "code": 200, "reason": None, "message": "", "parameter": None}
        return {
            "id": id,
            "status": await self._status_of(id) if may_read else None,
            "code": status_code_of(taken),
            "reason": taken.code,
            "message": str(taken),
            "parameter": None,
            **super().error_details(taken),
        }

    async def _status_of(self, id: str) -> str | None:
        try:
            return (await self.approvals.get(id)).status.value
        except (UnknownApprovalError, StorageError):
            return None


_ID = r"(?P<request_id>[A-Za-z0-9_-]+)"

default_handlers = [
    (r"/jupyter-agentbox/approvals/?", ApprovalsHandler),
    (r"/jupyter-agentbox/approvals/decisions/?", DecisionsHandler),
    (rf"/jupyter-agentbox/approvals/{_ID}/?", ApprovalHandler),
    (rf"/jupyter-agentbox/approvals/{_ID}/decision/?", DecisionHandler),
    (rf"/jupyter-agentbox/approvals/{_ID}/extend/?", ExtensionHandler),
]
