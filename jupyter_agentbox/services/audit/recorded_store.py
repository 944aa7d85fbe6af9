"""A request store whose changes are recorded in the audit trail; a call is recorded before it may run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from jupyter_agentbox.core.approvals import ApprovalRequest, OutcomeState, Status
from jupyter_agentbox.core.audit_trail import AuditEvent, event_of, first_event_of
from jupyter_agentbox.core.grant_uses import Void
from jupyter_agentbox.core.grants import Grant
from jupyter_agentbox.core.ports import ApprovalPage, ApprovalQuery, ApprovalStore, GrantStore

from .announced_writes import write_announced
from .trail import AuditTrail


class RequestStore(ApprovalStore, GrantStore, Protocol):
    """Storage of requests and grants."""


class RecordedStore:
    """An `ApprovalStore` and `GrantStore` that records what it writes.

    Whatever lets a call run is recorded first, so the trail may say more than happened, but never less: if the store
    then refuses it, another record revokes the first.

    Parameters
    ----------
    store : RequestStore
        The underlying store.
    trail : callable
        Returns the audit trail, or ``None`` if there is none.
    trail_for_running : callable, optional
        The same for calls about to run; may raise `AuditError`.
    """

    def __init__(
        self,
        store: RequestStore,
        trail: Callable[[], AuditTrail | None],
        trail_for_running: Callable[[], AuditTrail | None] | None = None,
    ) -> None:
        self._store = store
        self._trail = trail
        self._trail_for_running = trail_for_running or trail

    async def add(self, request: ApprovalRequest) -> bool:
        """Store a new request.

        Raises
        ------
        AuditError
            A record that must precede the call cannot be made; the request is not stored.
        StorageError
        """
        if request.status is Status.APPROVED and request.is_open:
            return await self._let_run(request, lambda: self._store.add(request))
        return await self._write_and_note(first_event_of(request), request, lambda: self._store.add(request))

    async def replace_if(
        self, request: ApprovalRequest, *, status: Status, outcome: OutcomeState | None, grant: Grant | None = None
    ) -> bool:
        """Write a request if the stored one has this status and outcome state.

        Raises
        ------
        AuditError
            A record that must precede the call cannot be made; the request is not written.
        StorageError
        """

        async def write() -> bool:
            return await self._store.replace_if(request, status=status, outcome=outcome, grant=grant)

        event = event_of(request, status, outcome)
        if event is AuditEvent.DECIDED and request.status is Status.APPROVED:
            return await self._let_run(request, write)
        return await self._write_and_note(event, request, write)

    async def _let_run(self, request: ApprovalRequest, write: Callable[[], Awaitable[bool]]) -> bool:
        trail = self._trail_for_running()
        if trail is None:
            return await write()
        numbers = await trail.announce(AuditEvent.DECIDED, request)
        return await write_announced(write, revoke=lambda: trail.revoke(numbers, request, "the store did not take it"))

    async def _write_and_note(
        self, event: AuditEvent, request: ApprovalRequest, write: Callable[[], Awaitable[bool]]
    ) -> bool:
        before = self._trail()
        fields = None if before is None else await before.fields(request)  # first: what is written is noted at once
        is_written = await write()
        trail = self._trail() if is_written else None
        if trail is not None:
            trail.note(event, fields if fields is not None and trail is before else await trail.fields(request))
        return is_written

    def _note_grants(self, ids: Sequence[str], why: str) -> None:
        if (trail := self._trail()) is not None:
            trail.note_grants(ids, why)

    async def get(self, request_id: str) -> ApprovalRequest:
        """Return a request."""
        return await self._store.get(request_id)

    async def list(self, query: ApprovalQuery) -> ApprovalPage:
        """Return a page of requests, newest first."""
        return await self._store.list(query)

    async def adopt_abandoned(self) -> Sequence[ApprovalRequest]:
        """Take over and return the open requests of server processes that are gone."""
        return await self._store.adopt_abandoned()

    async def grants(self) -> Sequence[Grant]:
        """Return the grants."""
        return await self._store.grants()

    async def end_grants(self, ids: Sequence[str]) -> None:
        """Delete grants."""
        await self._store.end_grants(ids)
        if ids:
            self._note_grants(ids, "ended")

    async def void_grant(self, grant_id: str, void: Void) -> None:
        """Mark a grant as void, with the reason."""
        await self._store.void_grant(grant_id, void)
        self._note_grants([grant_id], void.value)
