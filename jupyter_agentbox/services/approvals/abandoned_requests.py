"""Open requests of server processes that are gone: closed here, or kept until their caller returns."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from jupyter_agentbox.background import in_background
from jupyter_agentbox.core.approvals import ApprovalRequest, Lapse, OutcomeState, Status
from jupyter_agentbox.core.ports import ApprovalStore, Clock
from jupyter_agentbox.exceptions import InvalidTransitionError, StorageError, UnknownApprovalError

from .open_requests import OpenRequests

log = logging.getLogger(__name__)


class AbandonedRequests:
    """Finds the open requests of server processes that are gone, and closes or keeps each.

    Parameters
    ----------
    store : ApprovalStore
        Transfers them to this process.
    requests : OpenRequests
        Holds those that are kept, and writes those that are closed.
    clock : Clock
        Source of the time.
    keeps : callable
        Returns whether a request that has not run is kept here until its caller returns.

    Attributes
    ----------
    keeps : callable
        The constructor's argument.
    looked : Event
        Set at the end of the next scan, and then replaced by a new event.
    """

    def __init__(
        self, *, store: ApprovalStore, requests: OpenRequests, clock: Clock, keeps: Callable[[ApprovalRequest], bool]
    ) -> None:
        self._store = store
        self._requests = requests
        self._clock = clock
        self.keeps = keeps
        self._left: dict[str, ApprovalRequest] = {}
        self._recovery: asyncio.Future[None] | None = None
        self._looking: asyncio.Task[None] | None = None
        self.looked = asyncio.Event()

    def add(self, request: ApprovalRequest) -> None:
        """Let the next scan close or keep a request of this process whose end could not be stored."""
        self._left[request.id] = request

    async def recover(self) -> None:
        """Close or keep, once, the requests of server processes that are gone.

        Every read of the store waits for this, so that nobody sees a request for which nobody waits.

        Raises
        ------
        StorageError
            If the store cannot be read or written; the next use retries.
        """
        if self._recovery is None or _has_failed(self._recovery):
            self._recovery = asyncio.ensure_future(self.look())
            self._recovery.add_done_callback(_has_failed)  # retrieves the error if nobody is left waiting
        await asyncio.shield(self._recovery)

    def look_again(self, seconds: float, is_due: Callable[[], bool] = lambda: True) -> None:
        """Scan periodically, whenever due, for servers that are gone: at startup this cannot always be determined."""
        work = self._look_again(seconds, is_due)
        self._looking = in_background(work, what="looking for what servers left that are gone")

    def stop_looking(self) -> None:
        """Stop the periodic scan."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    @property
    def is_looking(self) -> bool:
        """Whether the periodic scan is running."""
        return self._looking is not None

    async def _look_again(self, seconds: float, is_due: Callable[[], bool]) -> None:
        while True:
            await asyncio.sleep(seconds)
            if not is_due():
                continue
            try:
                await self.look()
            except StorageError as error:
                log.warning("what servers left that are gone cannot be looked for: %s", error)
            self.looked.set()
            self.looked = asyncio.Event()

    async def look(self) -> None:
        """Close or keep requests that this process now owns; those that cannot be stored are left for the next scan.

        Raises
        ------
        StorageError
        """
        self._left.update({request.id: request for request in await self._store.adopt_abandoned()})
        for request in list(self._left.values()):
            if self._left.pop(request.id, None) is None:
                continue  # another scan is closing it
            try:
                await self._close(request)
            except (StorageError, asyncio.CancelledError):
                self._left[request.id] = request
                raise
            except (InvalidTransitionError, UnknownApprovalError) as error:
                log.info("what a server left that is gone was closed by another: %s", error)

    async def _close(self, request: ApprovalRequest) -> None:
        now = self._clock.now()
        if request.outcome is not None:
            error = "the Jupyter server stopped while the call was running; it may have had an effect"
            await self._requests.write(request, request.record(OutcomeState.FAILED, at=now, error=error))
        elif not request.is_over(now) and self.keeps(request):
            self._requests.keep(request)
        elif request.status is Status.PENDING:
            await self._requests.write(request, request.lapse(Lapse.KERNEL_LOST, at=now))
        else:
            await self._requests.write(request, request.record_not_run(at=now))


def _has_failed(work: asyncio.Future[None]) -> bool:
    return work.done() and (work.cancelled() or work.exception() is not None)
