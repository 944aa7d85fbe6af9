"""What server processes left that are gone: closed here, or kept until its caller is back."""

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
        Gives them to this process.
    requests : OpenRequests
        Holds what is kept, and writes what is closed.
    clock : Clock
        The time.
    keeps : callable
        Whether a pending request goes on waiting here, until its caller is back.

    Attributes
    ----------
    keeps : callable
        What was given.
    looked : Event
        Set at the end of the next look, and then replaced by another.
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

    async def recover(self) -> None:
        """Close, once, the requests of server processes that are gone: pending ones orphaned, running ones failed.

        Everything that reads the store waits for this, so that nobody is shown a request that nobody waits for.

        Raises
        ------
        StorageError
            If the store cannot be read or written; the next use tries again.
        """
        if self._recovery is None or _has_failed(self._recovery):
            self._recovery = asyncio.ensure_future(self.look())
            self._recovery.add_done_callback(_has_failed)  # looks at the error, should nobody be left who waits
        await asyncio.shield(self._recovery)

    def look_again(self, seconds: float, is_due: Callable[[], bool] = lambda: True) -> None:
        """Look every so many seconds, if it is due, whether a server is gone by now: a start cannot tell everywhere."""
        work = self._look_again(seconds, is_due)
        self._looking = in_background(work, what="looking for what servers left that are gone")

    def stop_looking(self) -> None:
        """Look no more."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    @property
    def is_looking(self) -> bool:
        """Whether it looks again and again."""
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
        """Close or keep what is this process's by now; what the store does not take is left for the next look.

        Raises
        ------
        StorageError
        """
        self._left.update({request.id: request for request in await self._store.adopt_abandoned()})
        for request in list(self._left.values()):
            if self._left.pop(request.id, None) is None:
                continue  # another look closes it
            try:
                await self._close(request)
            except (StorageError, asyncio.CancelledError):
                self._left[request.id] = request
                raise
            except (InvalidTransitionError, UnknownApprovalError) as error:
                log.info("what a server left that is gone was closed by another: %s", error)

    async def _close(self, request: ApprovalRequest) -> None:
        now = self._clock.now()
        if request.status is not Status.PENDING:
            error = "the Jupyter server stopped while the call was running; it may have had an effect"
            await self._requests.write(request, request.record(OutcomeState.FAILED, at=now, error=error))
        elif not request.is_over(now) and self.keeps(request):
            self._requests.keep(request)
        else:
            await self._requests.write(request, request.lapse(Lapse.KERNEL_LOST, at=now))


def _has_failed(work: asyncio.Future[None]) -> bool:
    return work.done() and (work.cancelled() or work.exception() is not None)
