"""A chain of audit records: seals what happened, and has it delivered to the sinks that get these records."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.audit_trail import ArgumentsKept, AuditEvent, TrailEnd, record_time, request_fields
from jupyter_agentbox.core.calls import JsonObject, JsonValue
from jupyter_agentbox.core.ports import Clock
from jupyter_agentbox.core.redaction import Redaction

from .deliveries import Delivery, Receipt


class AuditChain:
    """Makes records, each with the previous one's hash, and passes them to deliveries.

    Parameters
    ----------
    deliveries : sequence of Delivery
        One per sink.
    id : str
        The chain's unique id.
    whose : mapping
        Fields of every record that identify the server.
    clock : Clock
        Source of the time.
    redaction : Redaction
        Detects secrets.
    arguments : ArgumentsKept
        Which arguments records contain.

    Attributes
    ----------
    deliveries : tuple of Delivery
        The deliveries.
    """

    def __init__(
        self,
        deliveries: Sequence[Delivery],
        *,
        id: str,
        whose: Mapping[str, JsonValue],
        clock: Clock,
        redaction: Redaction,
        arguments: ArgumentsKept,
    ) -> None:
        self.deliveries = tuple(deliveries)
        self._whose: JsonObject = {**whose, "chain": id}
        self._clock = clock
        self._redaction = redaction
        self._arguments = arguments
        self._link = TrailEnd()

    def start(self, fields: Mapping[str, JsonValue]) -> None:
        """Start the chain with a record of its settings, some of which are given."""
        for delivery in self.deliveries:
            delivery.start()
        self.add(AuditEvent.STARTED, {**fields, "arguments_kept": self._arguments.value})

    async def aclose(self, patience: float) -> None:
        """End the chain, and wait up to this many seconds for each sink. The next server delivers the rest."""
        self.add(AuditEvent.STOPPED, {})
        await asyncio.gather(*(delivery.aclose(patience) for delivery in self.deliveries))

    def fields(self, request: ApprovalRequest) -> JsonObject:
        """Return a record's fields for a request."""
        return request_fields(request, self._arguments, self._redaction)

    def add(self, event: AuditEvent, fields: Mapping[str, JsonValue]) -> tuple[int, Sequence[Receipt]]:
        """Record an event; return the record's number, and what became of it at each sink."""
        record = {**self._whose, **fields, "event": event.value, "time": record_time(self._clock.now())}
        self._link, line = self._link.then(record)
        return self._link.sequence, [delivery.put(line) for delivery in self.deliveries]
