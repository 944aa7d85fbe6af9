"""Rejections and ends of calls that are known here, although the store could not be written.

A rejected call needs no record to be safe. A call that has ended is on record as running, and would stay so.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, replace

from jupyter_agentbox.background import in_background
from jupyter_agentbox.core.approvals import ApprovalRequest, Status
from jupyter_agentbox.core.ports import ApprovalPage, ApprovalQuery, Clock
from jupyter_agentbox.exceptions import InvalidTransitionError, StorageError, UnknownApprovalError

from .open_requests import OpenRequests

log = logging.getLogger(__name__)

#: Seconds between two attempts. Reads of requests do not wait for the next one.
_RETRY_INTERVAL = 5.0


@dataclass(frozen=True, slots=True)
class _End:
    """What the store has, and what it has to get."""

    before: ApprovalRequest
    after: ApprovalRequest


class UnstoredEnds:
    """Keeps ends until the store takes them. If this process ends first, the next one closes the requests.

    Parameters
    ----------
    requests : OpenRequests
        Tells the callers, and writes the ends.
    clock : Clock
        Source of the time.
    retry_interval : float
        Seconds between two attempts.
    """

    def __init__(self, requests: OpenRequests, *, clock: Clock, retry_interval: float = _RETRY_INTERVAL) -> None:
        self._requests = requests
        self._clock = clock
        self._retry_interval = retry_interval
        self._kept: dict[str, _End] = {}
        self._turn = asyncio.Lock()
        self._retrying: asyncio.Task[None] | None = None

    def add(self, before: ApprovalRequest, after: ApprovalRequest) -> None:
        """Let an end take effect: its caller is told, and nobody can decide otherwise."""
        what = "it was rejected" if after.status is Status.REJECTED else "its call has ended"
        log.error("request %s: %s, which will be recorded as soon as the store can be written", after.id, what)
        self._kept[after.id] = _End(before, after)
        self._requests.settle(after)
        if self._retrying is None or self._retrying.done():
            self._retrying = in_background(self._retry(), what="storing ends of requests")

    def get(self, request_id: str) -> ApprovalRequest | None:
        """Return a request whose end is not stored yet."""
        kept = self._kept.get(request_id)
        return None if kept is None else kept.after

    async def store(self) -> None:
        """Try to store them. Reads begin with this."""
        if not self._kept:
            return
        async with self._turn:
            for end in list(self._kept.values()):
                try:
                    await self._store(end)
                except (InvalidTransitionError, UnknownApprovalError) as error:
                    log.info("the end of a request was not stored: %s", error)
                except StorageError as error:
                    log.debug("ends of requests still wait for the store: %s", error)
                    return
                del self._kept[end.after.id]

    def stop(self) -> None:
        """Stop trying."""
        if self._retrying is not None:
            self._retrying.cancel()

    async def _retry(self) -> None:
        while self._kept:
            await asyncio.sleep(self._retry_interval)
            await self.store()

    async def _store(self, end: _End) -> None:
        try:
            await self._requests.write(end.before, end.after)
        except InvalidTransitionError:
            if end.after.status is not Status.REJECTED:
                raise
            present = await self._requests.stored(end.after.id)
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
