"""A request store that decides and starts nothing before the service's audit sinks have the record of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from jupyter_agentbox.core.approvals import ApprovalRequest, OutcomeState, Status
from jupyter_agentbox.core.audit_trail import AuditEvent, event_of
from jupyter_agentbox.core.grants import Grant
from jupyter_agentbox.core.ports import ApprovalPage, ApprovalQuery, ApprovalStore
from jupyter_agentbox.services.audit.announced_writes import write_announced
from jupyter_agentbox.storage.outbox import Outbox, Outgoing

from .forwarding import NOT_RUN, NOTHING_DONE, RecordForwarder


class AnnouncingStore:
    """An `ApprovalStore` for sites that want no decision and no call without its record at the audit sinks.

    The record goes first, so the sinks may have more than happened, but never less: if the store then does not take the
    change, another record revokes the first. Whatever neither decides nor starts anything is stored as usual, and its
    record is sent later: the end of a call must not wait for a sink.

    Parameters
    ----------
    store : ApprovalStore
        The underlying store.
    outbox : Outbox
        Makes the records.
    forwarder : RecordForwarder
        Sends them.
    """

    def __init__(self, store: ApprovalStore, *, outbox: Outbox, forwarder: RecordForwarder) -> None:
        self._store = store
        self._outbox = outbox
        self._forwarder = forwarder

    async def add(self, request: ApprovalRequest) -> bool:
        """Store a new request.

        Raises
        ------
        AuditError
            It would start a call, and an audit sink does not accept the record; the request is not stored.
        StorageError
        """
        write = partial(self._store.add, request)
        if request.status is Status.APPROVED and request.is_open:
            return await self._write_announced(request, await self._outbox.of_new(request), write)
        return await write()

    async def replace_if(
        self, request: ApprovalRequest, *, status: Status, outcome: OutcomeState | None, grant: Grant | None = None
    ) -> bool:
        """Write a request if the stored one has this status and outcome state.

        Raises
        ------
        AuditError
            It would decide something or start a call, and an audit sink does not accept the record; nothing is written.
        StorageError
        """
        write = partial(self._store.replace_if, request, status=status, outcome=outcome, grant=grant)
        if _decides_or_starts(request, event_of(request, status, outcome)):
            record = await self._outbox.of_change(request, status, outcome)
            is_start = status is Status.APPROVED
            return await self._write_announced(request, record, write, otherwise=NOT_RUN if is_start else NOTHING_DONE)
        return await write()

    async def get(self, request_id: str) -> ApprovalRequest:
        """Return a request."""
        return await self._store.get(request_id)

    async def list(self, query: ApprovalQuery) -> ApprovalPage:
        """Return a page of requests, newest first."""
        return await self._store.list(query)

    async def adopt_abandoned(self) -> Sequence[ApprovalRequest]:
        """Take over and return the open requests of service processes that are gone."""
        return await self._store.adopt_abandoned()

    async def _write_announced(
        self,
        request: ApprovalRequest,
        record: Outgoing,
        write: Callable[[], Awaitable[bool]],
        *,
        otherwise: str = NOTHING_DONE,
    ) -> bool:
        with self._forwarder.changing():
            sequence = await self._forwarder.announce(record, request.id, otherwise=otherwise)
            return await write_announced(
                partial(self._write, request, write),
                revoke=lambda: self._forwarder.revoke(sequence, request.id, "the store did not take it"),
            )

    async def _write(self, request: ApprovalRequest, write: Callable[[], Awaitable[bool]]) -> bool:
        with self._outbox.announced(request):
            return await write()


def _decides_or_starts(request: ApprovalRequest, event: AuditEvent) -> bool:
    """Whether a change is a decision, one of several approvals, or the start of a call."""
    return event is AuditEvent.DECIDED or (event is AuditEvent.CHANGED and bool(request.votes))
