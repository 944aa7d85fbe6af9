"""The audit trail of this server: records events in one or more chains."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TypeAlias

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.audit_trail import AuditEvent, WhenDown, has_long_arguments
from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.exceptions import AuditError

from .chain import AuditChain
from .deliveries import Receipt

log = logging.getLogger(__name__)

#: A record's fields, for each chain: the site's sinks and the user's own may get different ones.
Fields: TypeAlias = Sequence[JsonObject]
#: A record's number in each chain.
Numbers: TypeAlias = Sequence[int]


class AuditTrail:
    """Records the same events in each chain.

    Parameters
    ----------
    chains : sequence of AuditChain
        The chains.
    when_down : WhenDown
        What happens to calls while a sink is down.
    patience : float
        How long a call waits for its record to be accepted, in seconds.
    last_patience : float
        How long a stopping server waits for all records to be accepted, in seconds.
    """

    def __init__(
        self, chains: Sequence[AuditChain], *, when_down: WhenDown, patience: float, last_patience: float
    ) -> None:
        self._chains = tuple(chains)
        self._when_down = when_down
        self._patience = patience
        self._last_patience = last_patience
        self._deliveries = [delivery for chain in chains for delivery in chain.deliveries]
        self._late: Sequence[asyncio.Future[None]] = ()

    @property
    def waiting(self) -> Sequence[int]:
        """The number of records that each sink has not accepted yet."""
        return [delivery.waiting for delivery in self._deliveries]

    @property
    def problem(self) -> str:
        """Why no call can run now, because its record would not be accepted; empty if one can."""
        for delivery in self._deliveries:
            if delivery.is_full:
                return f"records for {delivery.name} cannot be stored on this server's disk"
            if delivery.is_stuck and self._when_down is WhenDown.DENY:
                return f"{delivery.name} accepts no records"
        return "" if all(future.done() for future in self._late) else "an audit sink accepts records too late"

    def start(self) -> None:
        """Start the chains."""
        for chain in self._chains:
            chain.start({"when_down": self._when_down.value})

    async def aclose(self) -> None:
        """End the chains, and wait briefly for the sinks. The next server delivers the rest."""
        await asyncio.gather(*(chain.aclose(self._last_patience) for chain in self._chains))

    async def fields(self, request: ApprovalRequest) -> Fields:
        """Return a record's fields for a request."""
        if has_long_arguments(request):
            # In a thread: reading millions of values would block the loop.
            return await asyncio.to_thread(self._fields_of, request)
        return self._fields_of(request)

    def note(self, event: AuditEvent, fields: Fields) -> None:
        """Record an event of a request, given the request's `fields`."""
        for chain, said in zip(self._chains, fields, strict=True):
            chain.add(event, said)

    def note_grants(self, ids: Sequence[str], why: str) -> None:
        """Record that grants ended."""
        for chain in self._chains:
            chain.add(AuditEvent.GRANT_ENDED, {"grants": list(ids), "reason": why})

    async def announce(self, event: AuditEvent, request: ApprovalRequest) -> Numbers:
        """Record an event that is about to happen; return the record's numbers once it may happen.

        Raises
        ------
        AuditError
            A sink does not accept it, so it must not happen; that is recorded, too.
        """
        fields = await self.fields(request)
        added = [chain.add(event, said) for chain, said in zip(self._chains, fields, strict=True)]
        numbers = [number for number, _ in added]
        far_enough = [self._far_enough(receipt) for _, receipts in added for receipt in receipts]
        try:
            async with asyncio.timeout(self._patience):
                await asyncio.gather(*map(asyncio.shield, far_enough))
        except (OSError, TimeoutError) as error:
            self._late = far_enough
            self.revoke(numbers, request, "an audit sink did not accept the record")
            what = ", ".join(delivery.name for delivery in self._deliveries)
            raise AuditError(
                f"nothing ran, because the record of this call was neither accepted by {what} nor, where that suffices,"
                " stored on this server's disk. Ask your administrator.",
                request_id=request.id,
            ) from error
        return numbers

    def revoke(self, numbers: Numbers, request: ApprovalRequest, why: str) -> None:
        """Record that a recorded event did not take effect."""
        for chain, number in zip(self._chains, numbers, strict=True):
            chain.add(AuditEvent.REVOKED, {"request_id": request.id, "revoked": number, "reason": why})

    def _far_enough(self, receipt: Receipt) -> asyncio.Future[None]:
        return receipt.delivered if self._when_down is WhenDown.DENY else receipt.kept

    def _fields_of(self, request: ApprovalRequest) -> Fields:
        return [chain.fields(request) for chain in self._chains]
