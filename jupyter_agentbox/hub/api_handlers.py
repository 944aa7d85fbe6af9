"""REST API of the Hub service: requests, decisions, the record, health and metrics."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST
from tornado import web

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.audit_csv import csv_header, record_to_csv
from jupyter_agentbox.core.audit_search import AuditQuery, record_to_json
from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.otlp import log_record
from jupyter_agentbox.exceptions import AgentBoxError, InvalidDecisionError, StorageError
from jupyter_agentbox.services.approvals.handlers import MAX_DECISIONS, named_from_json, verdict_from_json
from jupyter_agentbox.services.audit.filters import FILTERS, read_filters, text_parameter
from jupyter_agentbox.services.json_answers import answer_text

from .callers import asker_of
from .exports import ExportFormat, ExportHandler, otlp_line
from .handlers import HubServiceHandler, JsonHandler, client_message, status_of_error
from .reviews import ReviewFilter, ReviewRequest, persons_to_json, summary_of

_MOST_OWN: Final = 100
#: How many waiting requests are summarized for JupyterLab. Of the others, only their number is sent.
_MOST_WAITING: Final = 50


class RequestsHandler(JsonHandler):
    """The waiting requests that the caller may see, and the newest of the caller's own requests."""

    async def get(self) -> None:
        """List requests."""
        reviews = self.parts.reviews
        given = {name: self.get_query_argument(name, "") for name in ("asked_by", "server", "tool")}
        pending = await reviews.pending(self.caller, ReviewFilter(**given))
        own = await reviews.own(self.caller, limit=_MOST_OWN) if self.caller.is_user else ()
        self.finish_json({"pending": _listed(pending), "own": _listed(own)})


class WaitingHandler(JsonHandler):
    """Summaries of the requests that wait for the caller. Their JupyterLab shows them, with links to the pages here."""

    def initialize(self, public_url: str) -> None:
        """Store the service's public URL."""
        self._public_url = public_url

    async def get(self) -> None:
        """List the requests. They cannot be decided with a token."""
        waiting = await self.parts.reviews.for_answer(self.caller)
        shown = [summary_of(request) for request in waiting[:_MOST_WAITING]]
        self.finish_json({"url": self._public_url, "total": len(waiting), "requests": shown})


class RequestHandler(JsonHandler):
    """One request."""

    async def get(self, request_id: str) -> None:
        """Read a request."""
        self.finish_json((await self.parts.reviews.get(request_id, self.caller)).to_json())


class DecisionHandler(JsonHandler):
    """A person's decision on a request. Who decides is never taken from the body."""

    async def post(self, request_id: str) -> None:
        """Decide a request, or approve it as one of several approvers."""
        given = self.json_object()
        breaks_glass = given.pop("break_glass", False)
        if not isinstance(breaks_glass, bool):
            raise InvalidDecisionError("`break_glass` must be true or false")
        verdict = verdict_from_json(given)
        decided = await self.parts.reviews.decide(request_id, verdict, caller=self.caller, breaks_glass=breaks_glass)
        self.finish_json(decided.to_json())


class DecisionsHandler(JsonHandler):
    """A person's decisions on several requests."""

    async def post(self) -> None:
        """Apply each decision on its own, and return the results in the same order."""
        given = self.json_object()
        entries = given.get("decisions")
        if set(given) != {"decisions"} or not isinstance(entries, list) or len(entries) > MAX_DECISIONS:
            raise InvalidDecisionError(f"`decisions` must be a list of at most {MAX_DECISIONS} decisions")
        named = [named_from_json(entry) for entry in entries]
        verdicts = [(request_id, verdict_from_json(rest)) for request_id, rest in named]
        decided = await self.parts.reviews.decide_all(verdicts, caller=self.caller)
        self.finish_json({"decisions": [_answered(one) for one in decided]})


class AuditHandler(ExportHandler):
    """The record of the calls of central tools, for auditors."""

    async def get(self) -> None:
        """Send all records that match the filters, newest first: as JSON Lines, CSV or OpenTelemetry logs."""
        self.check_may_read_record()
        form, query = self.read_format(FORMATS), self._query()
        await self.send_file("agentbox-record", form, self._pages(query))

    def _query(self) -> AuditQuery:
        self.check_parameters(AUDIT_FILTERS)
        try:
            return read_record_filters(self)
        except ValueError as error:
            raise self.bad_query(str(error)) from None

    async def _pages(self, query: AuditQuery) -> AsyncIterator[Sequence[ApprovalRequest]]:
        async for page in self.parts.audit.export(query):
            yield page.records


class PolicyHandler(JsonHandler):
    """The signed policy for the caller's local tools."""

    async def get(self) -> None:
        """Send the policy, or 304 if the caller already has it, as its `ETag` says."""
        signer = self.parts.policy.signer
        if signer is None:
            raise web.HTTPError(404, "the policy has no `local`, so it has no rules for users' own tools")
        if not self.caller.is_user:
            raise web.HTTPError(403, "a policy is for a user, but this token belongs to a service")
        self.set_header("Content-Type", "application/json")
        self.finish(signer.signed_for(self.caller.name))


class MetricsHandler(JsonHandler):
    """Metrics in Prometheus' format."""

    async def get(self) -> None:
        """Send them to anyone who may use this service."""
        missing = await self.parts.reports.missing()
        forwarder = self.parts.forwarder
        sinks = () if forwarder is None else await forwarder.states()
        self.set_header("Content-Type", CONTENT_TYPE_LATEST)
        self.finish(
            self.parts.metrics.text(
                missing_records=missing,
                policy=self.parts.policy.to_json(),
                group_problems=self.parts.approver_groups.problem_count,
                sinks=sinks,
            )
        )


class LiveHandler(HubServiceHandler):
    """Whether the process is alive."""

    def get(self) -> None:
        """Answer."""
        self.finish({"status": "ok"})


class ReadyHandler(HubServiceHandler):
    """Whether calls can run, that is, whether the database can be read and written."""

    async def get(self) -> None:
        """Send 200 if it can, and 503 if it cannot."""
        try:
            since = await self.parts.is_ready()
        except StorageError:
            self.set_status(503)
            self.finish({"status": "the database cannot be used"})
        else:
            policy, forwarder = self.parts.policy.to_json(), self.parts.forwarder
            down = [] if forwarder is None else forwarder.down()
            stops_calls = forwarder is not None and forwarder.stops_calls
            self.finish(
                {
                    "status": "ok",
                    "database_held_since": since,
                    "policy": policy,
                    "group_problems": self.parts.approver_groups.problem_count,
                    "audit_sinks_down": down,
                    "audit_stops_calls": stops_calls,
                }
            )


def _to_json(record: ApprovalRequest) -> JsonObject:
    return {**record_to_json(record), **persons_to_json(record)}


def _json_lines(records: Sequence[ApprovalRequest]) -> str:
    return "".join(f"{answer_text(_to_json(record))}\n" for record in records)


def _csv_lines(records: Sequence[ApprovalRequest]) -> str:
    return "".join(record_to_csv(record, persons_to_json(record)) for record in records)


def _otlp_line(records: Sequence[ApprovalRequest]) -> str:
    return otlp_line([_log_record(record) for record in records])


def _log_record(record: ApprovalRequest) -> JsonObject:
    """Return a record as an OpenTelemetry log, with the attributes of reported records."""
    call, decision, outcome = record.call, record.decision, record.outcome
    fields: JsonObject = {
        "user": asker_of(record),
        "request_id": record.id,
        "server": call.server,
        "tool": call.tool,
        "call_digest": call.digest,
        "asked_by": asker_of(record),
        "status": record.status.value,
        "evaluation": record.evaluation.to_json(),
        "outcome": None if outcome is None else {"state": outcome.state.value},
    }
    if decision is not None:
        reviewer = decision.reviewer
        fields["decision"] = {"answer": decision.answer.value, "reviewer": reviewer.name, "via": reviewer.via.value}
    return log_record(
        fields,
        body=answer_text(_to_json(record)),
        made_at=record.created_at,
        observed_at=record.ended_at or record.created_at,
    )


#: The filters of the record. Its calls have neither a notebook nor a thread, of which only users' servers know.
AUDIT_FILTERS: Final = (
    *("user", "answered_by"),
    *(name for name in FILTERS if name not in {"notebook_path", "thread_id"}),
)


def read_record_filters(handler: web.RequestHandler) -> AuditQuery:
    """Read the filters of the record from the parameters of a request.

    Raises
    ------
    ValueError
        If the value of one is invalid. The message says which, and what is valid.
    """
    return replace(
        read_filters(handler),
        kernel_id=text_parameter(handler, "user"),
        answered_by=text_parameter(handler, "answered_by"),
    )


#: The formats of the record, by name.
FORMATS: Final[Mapping[str, ExportFormat[ApprovalRequest]]] = {
    "jsonl": ExportFormat(media="application/jsonl", suffix="jsonl", write=_json_lines),
    "csv": ExportFormat(
        media="text/csv; charset=utf-8",
        suffix="csv",
        write=_csv_lines,
        header=csv_header(("asked_by", "reported", "approvers", "votes")),
    ),
    "otlp": ExportFormat(media="application/jsonl", suffix="jsonl", write=_otlp_line),
}


def _answered(decided: ReviewRequest | AgentBoxError) -> JsonObject:
    if isinstance(decided, AgentBoxError):
        return {"status": status_of_error(decided), "message": client_message(decided), "reason": decided.code}
    return {"status": 200, "request": decided.to_json(is_listed=True)}


def _listed(requests: Sequence[ReviewRequest]) -> list[object]:
    return [request.to_json(is_listed=True) for request in requests]
