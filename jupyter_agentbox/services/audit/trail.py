"""The audit trail of this server: seals events as records and has them delivered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.audit_trail import (
    ArgumentsKept,
    AuditEvent,
    TrailEnd,
    WhenDown,
    has_long_arguments,
    record_time,
    request_fields,
)
from jupyter_agentbox.core.calls import JsonObject, JsonValue
from jupyter_agentbox.core.ports import Clock
from jupyter_agentbox.core.redaction import Redaction
from jupyter_agentbox.exceptions import AuditError

from .deliveries import Delivery, Receipt

log = logging.getLogger(__name__)


class AuditTrail:
    """Makes the records of one server, each with the previous one's hash, and passes them to deliveries.

    Parameters
    ----------
    deliveries : sequence of Delivery
        One per sink.
    chain : str
        Unique id of this server's chain.
    whose : mapping
        Fields of every record that identify the server.
    clock : Clock
        Source of the time.
    redaction : Redaction
        Detects secrets.
    when_down : WhenDown
        What happens to calls while a sink is down.
    arguments : ArgumentsKept
        Which arguments records contain.
    patience : float
        How long a call waits for its record to be accepted, in seconds.
    last_patience : float
        How long a stopping server waits for all records to be accepted, in seconds.
    """

    def __init__(
        self,
        deliveries: Sequence[Delivery],
        *,
        chain: str,
        whose: Mapping[str, JsonValue],
        clock: Clock,
        redaction: Redaction,
        when_down: WhenDown,
        arguments: ArgumentsKept,
        patience: float,
        last_patience: float,
    ) -> None:
        self._deliveries = tuple(deliveries)
        self._whose: JsonObject = {**whose, "chain": chain}
        self._clock = clock
        self._redaction = redaction
        self._when_down = when_down
        self._arguments = arguments
        self._patience = patience
        self._last_patience = last_patience
        self._link = TrailEnd()

    def start(self) -> None:
        """Start the chain."""
        for delivery in self._deliveries:
            delivery.start()
        self._add(AuditEvent.STARTED, {"when_down": self._when_down.value, "arguments_kept": self._arguments.value})

    async def aclose(self) -> None:
        """End the chain, and wait briefly for the sinks. The next server delivers the rest."""
        self._add(AuditEvent.STOPPED, {})
        await asyncio.gather(*(delivery.aclose(self._last_patience) for delivery in self._deliveries))

    async def fields(self, request: ApprovalRequest) -> JsonObject:
        """Return a record's fields for a request."""
        if has_long_arguments(request):
            # In a thread: reading millions of values would block the loop.
            return await asyncio.to_thread(self._fields_of, request)
        return self._fields_of(request)

    def note(self, event: AuditEvent, fields: Mapping[str, JsonValue]) -> None:
        """Record an event of a request, given the request's `fields`."""
        self._add(event, fields)

    def note_grants(self, ids: Sequence[str], why: str) -> None:
        """Record that grants ended."""
        self._add(AuditEvent.GRANT_ENDED, {"grants": list(ids), "reason": why})

    async def announce(self, event: AuditEvent, request: ApprovalRequest) -> int:
        """Record an event that is about to happen; return the record's number once it may happen.

        Raises
        ------
        AuditError
            A sink does not accept it, so it must not happen; that is recorded, too.
        """
        sequence, receipts = self._add(event, await self.fields(request))
        try:
            async with asyncio.timeout(self._patience):
                await asyncio.gather(*(self._far_enough(receipt) for receipt in receipts))
        except (OSError, TimeoutError) as error:
            self.revoke(sequence, request, "an audit sink did not accept the record")
            what = ", ".join(delivery.name for delivery in self._deliveries)
            raise AuditError(
                f"nothing ran, because the record of this call was neither accepted by {what} nor, where that suffices,"
                " stored on this server's disk. Ask your administrator.",
                request_id=request.id,
            ) from error
        return sequence

    def revoke(self, sequence: int, request: ApprovalRequest, why: str) -> None:
        """Record that a recorded event did not take effect."""
        self._add(AuditEvent.REVOKED, {"request_id": request.id, "revoked": sequence, "reason": why})

    def _far_enough(self, receipt: Receipt) -> asyncio.Future[None]:
        future = receipt.delivered if self._when_down is WhenDown.DENY else receipt.kept
        return asyncio.shield(future)

    def _fields_of(self, request: ApprovalRequest) -> JsonObject:
        return request_fields(request, self._arguments, self._redaction)

    def _add(self, event: AuditEvent, fields: Mapping[str, JsonValue]) -> tuple[int, Sequence[Receipt]]:
        record = {**self._whose, **fields, "event": event.value, "time": record_time(self._clock.now())}
        self._link, line = self._link.then(record)
        return self._link.sequence, [delivery.put(line) for delivery in self._deliveries]
