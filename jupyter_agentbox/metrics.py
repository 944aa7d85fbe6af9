"""The server's metrics for Prometheus, on Jupyter's own metrics page. They contain no names that a user chose."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from enum import Enum

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric

from jupyter_agentbox.core.approvals import ApprovalRequest, Status
from jupyter_agentbox.core.audit_search import seconds_of
from jupyter_agentbox.core.policy import Effect
from jupyter_agentbox.core.ports import Announcer
from jupyter_agentbox.core.tools import ServerStatus

#: Upper bounds of the histograms' buckets, in seconds: how long tools run, the store takes, and requests wait.
RUN_BUCKETS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600)
STORE_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
WAIT_BUCKETS = (1, 5, 15, 30, 60, 300, 900, 3600, 14_400, 86_400)


class ServerMetrics:
    """An `Announcer` that counts what it passes on to another one.

    Parameters
    ----------
    announcer : Announcer
        The announcer to pass everything on to.
    """

    def __init__(self, announcer: Announcer) -> None:
        self._announcer = announcer
        self._registry = CollectorRegistry()
        self._requests = self._counter("requests", "Tool calls, by the effect of the rules.", "effect")
        self._pending = Gauge("agentbox_pending", "Requests waiting for a decision.", registry=self._registry)
        self._decisions = self._counter("decisions", "Decisions by people and programs.", "decision", "via")
        self._settled = self._counter("settled", "Requests that waited, by their final status.", "status")
        self._waits = self._histogram("wait_seconds", "How long requests waited.", WAIT_BUCKETS)
        self._calls = self._counter("calls", "Calls that ran, by outcome.", "outcome")
        self._runs = self._histogram("tool_seconds", "How long tools ran.", RUN_BUCKETS)
        self._stores = self._histogram(
            "store_seconds",
            "How long operations of the approval store took, waiting included.",
            STORE_BUCKETS,
            "operation",
        )
        self._open: dict[str, ApprovalRequest] = {}
        self._servers: Callable[[], Sequence[ServerStatus]] = tuple
        self._waiting_records: Callable[[], Sequence[int]] = tuple

    def publish(
        self, servers: Callable[[], Sequence[ServerStatus]], *, waiting_records: Callable[[], Sequence[int]]
    ) -> None:
        """Add the metrics to Jupyter's metrics page.

        Parameters
        ----------
        servers : callable
            Returns the MCP servers at the time of a request for the metrics.
        waiting_records : callable
            Returns how many records each audit sink has not accepted yet.
        """
        self._servers = servers
        self._waiting_records = waiting_records
        REGISTRY.register(self)

    def withdraw(self) -> None:
        """Remove the metrics from the page."""
        with suppress(KeyError):  # the server ended before it had started
            REGISTRY.unregister(self)

    def describe(self) -> Iterable[Metric]:
        """Claim no names, because one process may have several servers, as in tests."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Return the current metrics."""
        self._pending.set(sum(request.status is Status.PENDING for request in self._open.values()))
        yield from self._registry.collect()
        servers = GaugeMetricFamily("agentbox_servers", "Configured MCP servers.", labels=["state"])
        for state, count in Counts(status.state.value for status in self._servers()).items():
            servers.add_metric([state], count)
        yield servers
        waiting = GaugeMetricFamily(
            "agentbox_audit_waiting_records", "Records that an audit sink has not accepted yet.", labels=["sink"]
        )
        for number, count in enumerate(self._waiting_records(), start=1):
            waiting.add_metric([str(number)], count)
        yield waiting

    def approval_changed(self, request: ApprovalRequest) -> None:
        """Count a new or changed request."""
        self._announcer.approval_changed(request)
        before = self._open.pop(request.id, None)
        if request.is_open:
            self._open[request.id] = request
        if before is None and (request.is_open or request.evaluation.effect is Effect.DENY):
            self._requests.labels(request.evaluation.effect.value).inc()
        if before is not None and before.status is Status.PENDING and request.status is not Status.PENDING:
            self._count_answer(request)
        self._count_end(request)

    def stored(self, operation: Enum, seconds: float) -> None:
        """Count an operation of the approval store."""
        self._stores.labels(operation.value).observe(seconds)

    def servers_changed(self) -> None:
        """Announce that an MCP server's status or the configuration has changed."""
        self._announcer.servers_changed()

    def questions_changed(self) -> None:
        """Announce a new question of an MCP server, or the end of one."""
        self._announcer.questions_changed()

    def grants_changed(self) -> None:
        """Announce that a grant was created or used, or has ended."""
        self._announcer.grants_changed()

    def _count_answer(self, request: ApprovalRequest) -> None:
        self._settled.labels(request.status.value).inc()
        decision = request.decision
        if decision is not None:
            self._decisions.labels(decision.answer.value, decision.reviewer.via.value).inc()
        ended = request.lapsed_at if decision is None else decision.decided_at
        if ended is not None:
            self._waits.observe(max(0.0, (ended - request.created_at).total_seconds()))

    def _count_end(self, request: ApprovalRequest) -> None:
        if request.outcome is None or request.outcome.finished_at is None or request.has_not_run:
            return
        self._calls.labels(request.outcome.state.value).inc()
        seconds = seconds_of(request)
        if seconds is not None:
            self._runs.observe(seconds)

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"agentbox_{name}", meaning, labels, registry=self._registry)

    def _histogram(self, name: str, meaning: str, buckets: Sequence[float], *labels: str) -> Histogram:
        return Histogram(f"agentbox_{name}", meaning, labels, registry=self._registry, buckets=buckets)
