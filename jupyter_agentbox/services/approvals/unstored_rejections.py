"""Rejections that took effect although the store could not be written: a rejected call needs no record to be safe."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace

from jupyter_agentbox.core.approvals import ApprovalRequest, Status
from jupyter_agentbox.core.ports import ApprovalPage, ApprovalQuery, Clock
from jupyter_agentbox.exceptions import InvalidTransitionError, StorageError, UnknownApprovalError

from .open_requests import OpenRequests

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Rejection:
    """What the store has, and what it has to get."""

    before: ApprovalRequest
    after: ApprovalRequest


class UnstoredRejections:
    """Keeps rejections until the store takes them. If this process ends first, the next one closes the requests.

    Parameters
    ----------
    requests : OpenRequests
        Tells the callers, and writes the rejections.
    clock : Clock
        Source of the time.
    """

    def __init__(self, requests: OpenRequests, *, clock: Clock) -> None:
        self._requests = requests
        self._clock = clock
        self._kept: dict[str, _Rejection] = {}
        self._turn = asyncio.Lock()

    def add(self, before: ApprovalRequest, after: ApprovalRequest) -> None:
        """Let a rejection take effect: its caller is told, and nobody can decide otherwise."""
        log.error("request %s was rejected; that will be recorded as soon as the store can be written", after.id)
        self._kept[after.id] = _Rejection(before, after)
        self._requests.settle(after)

    def get(self, request_id: str) -> ApprovalRequest | None:
        """Return a request whose rejection is not stored yet."""
        kept = self._kept.get(request_id)
        return None if kept is None else kept.after

    async def store(self) -> None:
        """Try to store them. Reads begin with this."""
        if not self._kept:
            return
        async with self._turn:
            for rejection in list(self._kept.values()):
                try:
                    await self._store(rejection)
                except (InvalidTransitionError, UnknownApprovalError) as error:
                    log.info("a rejection was not stored: %s", error)
                except StorageError as error:
                    log.debug("rejections still wait for the store: %s", error)
                    return
                del self._kept[rejection.after.id]

    async def _store(self, rejection: _Rejection) -> None:
        try:
            await self._requests.write(rejection.before, rejection.after)
        except InvalidTransitionError:
            present = await self._requests.stored(rejection.after.id)
            if present.status is not Status.APPROVED or not present.is_open:
                raise
            # Somebody allowed it at the same moment, and the store took that, but its caller had been told already.
            await self._requests.write(present, present.record_not_run(at=self._clock.now()))

    def shown_in(self, page: ApprovalPage, query: ApprovalQuery) -> ApprovalPage:
        """Return a page of the store with these requests as they are by now."""
        if not self._kept:
            return page
        present = (self.get(request.id) or request for request in page.approvals)
        fits = tuple(request for request in present if not query.statuses or request.status in query.statuses)
        return replace(page, approvals=fits)
