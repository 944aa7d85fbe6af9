"""The Hub service's metrics for Prometheus, labeled with servers and statuses, never with arguments or users."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from http import HTTPStatus
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from jupyter_agentbox.core.approvals import ApprovalRequest, Status
from jupyter_agentbox.core.audit_search import seconds_of
from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.local_calls import is_local
from jupyter_agentbox.core.policy import Effect
from jupyter_agentbox.core.questions import QuestionAction
from jupyter_agentbox.metrics import RUN_BUCKETS, STORE_BUCKETS, WAIT_BUCKETS
from jupyter_agentbox.services.audit.senders import DeliveryResult
from jupyter_agentbox.storage.group_commit import Operation

from .forwarding import SinkState

#: What a server is told that asked a question -> the label.
_QUESTION_OUTCOMES: Final = {
    QuestionAction.ACCEPT: "accepted",
    QuestionAction.DECLINE: "declined",
    QuestionAction.CANCEL: "cancelled",
}


class ErrorKind(str, Enum):
    """The kind of a counted error."""

    RESPONSE = "response"
    """A response to an HTTP request with a status of 500 or more."""

    HUB = "hub"
    """A request to the Hub that it did not answer: who somebody is, or who is in a group."""


class Metrics:
    """Counts requests as they change; an `Announcer`."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._opened = self._counter("requests", "Calls of central tools.", "server", "effect")
        self._pending = self._gauge("pending", "Requests waiting for a decision.")
        self._settled = self._counter("settled", "Requests that waited, by their final status.", "status")
        self._waits = self._histogram("wait_seconds", "How long requests waited.", WAIT_BUCKETS)
        self._votes = self._counter("votes", "Approvals after which a request still needed others.")
        self._decisions = self._counter(
            "decisions", "Answers by people, also those that did not suffice alone.", "decision", "via"
        )
        self._ended = self._counter("calls", "Calls that ran, by outcome.", "server", "outcome")
        self._runs = self._histogram("tool_seconds", "How long tools ran.", RUN_BUCKETS, "server")
        self._stores = self._histogram(
            "store_seconds", "How long operations of the database took, waiting included.", STORE_BUCKETS, "operation"
        )
        self._questions = self._counter(
            "questions", "Questions of central servers to users, by outcome.", "server", "outcome"
        )
        self._reported = self._counter(
            "reported_records", "Records that users' servers reported, by outcome.", "outcome"
        )
        self._missing = self._gauge("missing_records", "Records missing between reported ones.")
        self._errors = self._counter("errors", "What failed, here or at the Hub.", "kind")
        for kind in ErrorKind:
            self._errors.labels(kind.value)
        self._add_sinks()
        self._add_policy()
        self._open: dict[str, ApprovalRequest] = {}

    def text(
        self,
        *,
        missing_records: int,
        policy: JsonObject,
        group_problems: int | None = None,
        sinks: Sequence[SinkState] = (),
    ) -> bytes:
        """Return all metrics in Prometheus' text format."""
        self._group_problems.set(math.nan if group_problems is None else group_problems)
        for sink in sinks:
            self._waiting.labels(sink.number).set(sink.waiting)
            self._waiting_seconds.labels(sink.number).set(sink.seconds)
        self._policy.clear()
        self._policy.labels(policy["version"], policy["local_version"] or "").set(1)
        self._is_current.set(bool(policy["is_current"]))
        self._missing.set(missing_records)
        self._pending.set(sum(request.status is Status.PENDING for request in self._open.values()))
        return generate_latest(self.registry)

    def take_over(self, request: ApprovalRequest) -> None:
        """Add a request that has not run and that an earlier process of this service has counted already."""
        self._open[request.id] = request

    def approval_changed(self, request: ApprovalRequest) -> None:
        """Count a new or changed request."""
        before = self._open.pop(request.id, None)
        if request.is_open:
            self._open[request.id] = request
        if before is None and (request.is_open or request.evaluation.effect is Effect.DENY):
            self._opened.labels(_server(request), request.evaluation.effect.value).inc()
        if before is not None and before.status is Status.PENDING:
            self._count_answer(before, request)
        self._count_ended(request)

    def responded(self, status: int) -> None:
        """Count a response to an HTTP request if its status is that of an error of the service."""
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            self._errors.labels(ErrorKind.RESPONSE.value).inc()

    def hub_failed(self) -> None:
        """Count a request to the Hub that it did not answer."""
        self._errors.labels(ErrorKind.HUB.value).inc()

    def question_ended(self, server: str, action: QuestionAction) -> None:
        """Count a question of a central server, by what the server is told."""
        self._questions.labels(server, _QUESTION_OUTCOMES[action]).inc()

    def stored(self, operation: Operation, seconds: float) -> None:
        """Count an operation of the database."""
        self._stores.labels(operation.value).observe(seconds)

    def reported(self, outcome: str, records: int) -> None:
        """Count records that users' servers reported."""
        if records:
            self._reported.labels(outcome).inc(records)

    def forwarded(self, sink: int, result: DeliveryResult, records: int) -> None:
        """Count records that an audit sink, given by its number, accepted or refused."""
        self._forwarded.labels(sink, result.value).inc(records)

    def sink_failed(self, sink: int) -> None:
        """Count a failed attempt to send records to an audit sink."""
        self._sink_failures.labels(sink).inc()

    def servers_changed(self) -> None:
        """Count nothing: a server's status is not a metric."""

    def grants_changed(self) -> None:
        """Count nothing: there are no grants here."""

    def _add_sinks(self) -> None:
        """Add the metrics of audit sinks."""
        self._forwarded = self._counter(
            "audit_records", "Records that an audit sink accepted, or refused for good.", "sink", "result"
        )
        self._sink_failures = self._counter(
            "audit_failures", "Attempts to send records that an audit sink did not accept.", "sink"
        )
        self._waiting = self._gauge("audit_lag_records", "Records that an audit sink has not accepted yet.", "sink")
        self._waiting_seconds = self._gauge(
            "audit_lag_seconds", "How long the oldest of these records has waited.", "sink"
        )

    def _add_policy(self) -> None:
        """Add the metrics of the policy file."""
        self._policy = self._gauge(
            "policy",
            "Always 1; the labels are the version of the policy file in force and of its part for users' own servers.",
            "version",
            "local_version",
        )
        self._is_current = self._gauge(
            "policy_is_current",
            "1 if the policy file is in force; 0 if it cannot be used and an earlier version is in force.",
        )
        self._group_problems = self._gauge(
            "group_problems",
            "Rules with groups of approvers that the Hub does not have, or that have too few members; NaN if unknown.",
        )

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"agentbox_hub_{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"agentbox_hub_{name}", text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: Sequence[float], *labels: str) -> Histogram:
        return Histogram(f"agentbox_hub_{name}", text, labels, buckets=buckets, registry=self.registry)

    def _count_answer(self, before: ApprovalRequest, request: ApprovalRequest) -> None:
        for decision in request.answers[len(before.answers) :]:
            self._decisions.labels(decision.answer.value, decision.reviewer.via.value).inc()
        if request.status is Status.PENDING:
            self._votes.inc(len(request.votes) - len(before.votes))
            return
        self._settled.labels(request.status.value).inc()
        ended = request.decision.decided_at if request.decision is not None else request.lapsed_at
        if ended is not None:
            self._waits.observe(max(0.0, (ended - request.created_at).total_seconds()))

    def _count_ended(self, request: ApprovalRequest) -> None:
        if request.outcome is None or request.outcome.finished_at is None or request.has_not_run:
            return
        if is_local(request.call):  # it runs on the user's server
            return
        self._ended.labels(request.call.server, request.outcome.state.value).inc()
        seconds = seconds_of(request)
        if seconds is not None:
            self._runs.labels(request.call.server).observe(seconds)


def _server(request: ApprovalRequest) -> str:
    """Return the label for the server: one for all of users' own, whose names users choose."""
    return "local" if is_local(request.call) else request.call.server
