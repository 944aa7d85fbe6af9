"""The approval broker: opens requests, expires them, wakes waiting callers, and records outcomes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from datetime import datetime

from jupyter_agentbox.background import in_background
from jupyter_agentbox.core.approvals import ApprovalRequest, Lapse, OutcomeState, Status
from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.hub_reviews import HubReview
from jupyter_agentbox.core.policy import Effect, Evaluation
from jupyter_agentbox.core.ports import Announcer, ApprovalPage, ApprovalQuery, ApprovalStore, Clock, Ids
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.core.waiting_times import WaitingTimes
from jupyter_agentbox.exceptions import AuditError, InvalidTransitionError, StorageError, UnknownApprovalError
from jupyter_agentbox.services.grants.manager import GrantManager, GrantSpentError
from jupyter_agentbox.services.policies.manager import PolicyManager

from .abandoned_requests import AbandonedRequests
from .open_requests import OpenRequests, no_longer_here
from .unstored_ends import UnstoredEnds
from .verdicts import Answered

log = logging.getLogger(__name__)


class ApprovalManager:
    """Owns the requests of this server process, from the call to its end.

    Parameters
    ----------
    store : ApprovalStore
        Stores the requests.
    announcer : Announcer
        Notifies pages.
    clock : Clock
        Source of the time.
    ids : Ids
        Generates request ids.
    waiting_times : WaitingTimes
        How long a request waits for a person.
    policies : PolicyManager
        Has the version of the Hub service's policy.
    grants : GrantManager
        Counts the uses of grants.
    most_pending : int or None
        Maximum number of pending requests per kernel; ``None`` for no limit.
    keeps : callable
        Returns whether a request of a process that is gone, pending or approved but not run, is kept here until its
        caller returns. ``None`` if none is; then an approval also starts its call.

    Attributes
    ----------
    requests : OpenRequests
        The pending and running requests.
    unstored : UnstoredEnds
        Rejections and ends of calls that the store has not taken yet.
    abandoned : AbandonedRequests
        Scans for requests of servers that are gone.
    """

    def __init__(
        self,
        *,
        store: ApprovalStore,
        announcer: Announcer,
        clock: Clock,
        ids: Ids,
        waiting_times: WaitingTimes,
        policies: PolicyManager,
        grants: GrantManager,
        most_pending: int | None = None,
        keeps: Callable[[ApprovalRequest], bool] | None = None,
    ) -> None:
        self._store = store
        self._announcer = announcer
        self._clock = clock
        self._ids = ids
        self._waiting_times = waiting_times
        self._policies = policies
        self._grants = grants
        self.requests = OpenRequests(
            store=store,
            announcer=announcer,
            grants=grants,
            most_pending=most_pending,
            approvals_start_calls=keeps is None,
        )
        self.unstored = UnstoredEnds(self.requests, clock=clock)
        self.abandoned = AbandonedRequests(
            store=store, requests=self.requests, clock=clock, keeps=keeps or (lambda _: False)
        )
        self._recordings: set[asyncio.Future[None]] = set()

    def now(self) -> datetime:
        """Return the current time, by the clock used for requests."""
        return self._clock.now()

    async def open(
        self,
        call: ToolCall,
        tool: ToolDescription,
        evaluation: Evaluation,
        answered: Answered | None = None,
        *,
        asked_at: datetime | None = None,
        trust_key: str | None = None,
    ) -> ApprovalRequest:
        """Store and announce a new request. One that is allowed is stored as running: its call starts at once.

        Parameters
        ----------
        call, tool, evaluation
            What is asked for, and what the policy says.
        answered : tuple of Verdict and Reviewer, optional
            The answer, if there is one before anybody is asked. It never waits for a person then.
        asked_at : datetime, optional
            When the call came, by `now`. Requests that wait are in the order in which their calls came, although one
            may be looked at for longer than the next.
        trust_key : str, optional
            The server's trust key before anybody answered; by default, the present one.

        Raises
        ------
        StorageError
            If it cannot be kept; then nobody is asked and nothing runs.
        CancelledError
            If the caller is gone; the request is withdrawn.
        TooManyRequestsError
            If the kernel already has the largest allowed number of pending requests; nothing is stored.
        GrantSpentError
            If the grant that answers it has no use left; nothing is stored.
        """
        now = self._clock.now()
        waits = evaluation.effect is Effect.ASK and answered is None
        created_at = asked_at if waits and asked_at is not None else now
        request = ApprovalRequest.open(
            id=self._ids.new(),
            call=call,
            tool=tool,
            evaluation=self._policies.stamped(evaluation),
            created_at=created_at,
            expires_at=self._waiting_times.end(evaluation, created_at=created_at, now=now),
        )
        if answered is not None:
            verdict, reviewer = answered
            request = request.decide(verdict.by(reviewer, at=now))
        request = request.running_if_approved(at=now)
        with self.requests.counted(request):
            try:
                is_kept = await self._store.add(request)
            except asyncio.CancelledError:
                await asyncio.shield(self._take_back(request))
                raise
            self._count_use(request, is_kept=is_kept)
            if request.status is not Status.REJECTED:
                self.requests.add(request, trust_key=trust_key)
        self._announcer.approval_changed(request)
        return request

    def _count_use(self, request: ApprovalRequest, *, is_kept: bool) -> None:
        grant = request.evaluation.grant
        if grant is None:
            return
        if not is_kept:
            self._grants.spent(grant)
            raise GrantSpentError
        self._grants.used(grant, request.created_at)

    async def _take_back(self, request: ApprovalRequest) -> None:
        """Withdraw a request that is on its way to the disk, and that nobody was told of."""
        if not request.is_open:
            return
        now = self._clock.now()
        if request.status is Status.PENDING:
            withdrawn = request.lapse(Lapse.WITHDRAWN, at=now)
        else:
            withdrawn = request.record_not_run(at=now)
        try:
            # The store keeps the order: this is written after the request, or not at all.
            if await self.requests.try_write(request, withdrawn):
                self._announcer.approval_changed(withdrawn)
        except StorageError:
            log.exception("the withdrawal of request %s could not be stored", request.id)

    async def settled(self, request_id: str) -> ApprovalRequest:
        """Wait until the request is no longer pending and return it. Lets it lapse when its time is over.

        Raises
        ------
        ApprovalCancelledError
            It was lost from the store, or is another server's by now.
        UnknownApprovalError, StorageError
        """
        found = self.requests.find(request_id)
        if found is None or found.settled is None:
            return await self.find(request_id)
        while not found.settled.done():
            seconds = found.request.seconds_left(self._clock.now())
            if not (await asyncio.wait([found.settled], timeout=seconds))[0]:
                await self._expire(found.request)
        return found.settled.result()

    def record_meanwhile(self, recording: Coroutine[object, object, None]) -> None:
        """Store the end of a call in the background. Reads wait for it."""
        task = in_background(recording, what="recording how a call ended")
        self._recordings.add(task)
        task.add_done_callback(self._recordings.discard)

    async def recorded(self) -> None:
        """Wait until the ends of calls that are being stored are stored, if the store can be written."""
        if self._recordings:
            await asyncio.wait(set(self._recordings))
        await self.unstored.store()

    async def get(self, request_id: str) -> ApprovalRequest:
        """Return a request.

        Raises
        ------
        UnknownApprovalError, StorageError
        """
        await self.recorded()
        return await self.find(request_id)

    async def find(self, request_id: str) -> ApprovalRequest:
        """Return a request as `get` does, but without the end of its call if that is still being stored.

        Raises
        ------
        UnknownApprovalError, StorageError
        """
        await self.unstored.store()
        request = self.requests.get(request_id) or self.unstored.get(request_id)
        if request is not None:
            return request
        await self.abandoned.recover()
        return await self._store.get(request_id)

    async def list(self, query: ApprovalQuery) -> ApprovalPage:
        """Return a page of requests, newest first.

        Raises
        ------
        ValueError
            If the cursor is invalid.
        StorageError
        """
        await self.recorded()
        await self.abandoned.recover()
        page = self.unstored.shown_in(await self._store.list(query), query)
        return replace(page, approvals=tuple(self._as_asked(request) for request in page.approvals))

    def _as_asked(self, request: ApprovalRequest) -> ApprovalRequest:
        """Return a listed request with the call as shown for decision: the store has no secrets.

        Lists omit long arguments; `get` returns them.
        """
        known = self.requests.get(request.id)
        return request if known is None or request.call.omitted is not None else replace(request, call=known.call)

    async def lapse(self, request_id: str, lapse: Lapse) -> ApprovalRequest:
        """End a pending request without an answer.

        Raises
        ------
        UnknownApprovalError, InvalidTransitionError, StorageError
        """
        return await asyncio.shield(self._lapse(request_id, lapse))

    async def _lapse(self, request_id: str, lapse: Lapse) -> ApprovalRequest:
        async with self.requests.turn(request_id):
            request = await self.find(request_id)
            lapsed = request.lapse(lapse, at=self._clock.now())
            await self.requests.write_through(request, lapsed)
            return lapsed

    async def _expire(self, request: ApprovalRequest) -> None:
        present = self.requests.get(request.id) or request  # it may have been extended
        if present.is_over(self._clock.now()):
            try:
                await self.lapse(request.id, Lapse.TIMED_OUT)
            except (InvalidTransitionError, UnknownApprovalError) as error:
                log.debug("request %s ended at the last moment: %s", request.id, error)

    async def orphan(self, kernel_id: str | None = None) -> None:
        """Orphan the pending requests of a kernel that is gone, or of all kernels."""
        await self.unstored.store()
        lost = self.requests.pending() if kernel_id is None else self.requests.pending_of(kernel_id)
        await asyncio.gather(*(self.orphan_request(request.id) for request in lost))

    async def orphan_request(self, request_id: str) -> None:
        """Orphan a pending request whose caller is gone; it may have ended at the same moment."""
        try:
            await self.lapse(request_id, Lapse.KERNEL_LOST)
        except (InvalidTransitionError, UnknownApprovalError) as error:
            log.debug("request %s ended while its kernel was stopping: %s", request_id, error)
        except StorageError:
            # The next server to start recognizes it by its dead owner.
            log.exception("request %s could not be marked as orphaned", request_id)

    def abandon(self, request_id: str) -> None:
        """Forget a request for which nobody waits and whose end could not be stored: it can no longer be decided.

        The next scan for what servers left that are gone closes it, here or at the next server to start.
        """
        request = self.requests.get(request_id)
        self.requests.forget(request_id)
        if request is not None and request.outcome is None:
            self.abandoned.add(request)

    async def reject(self, request: ApprovalRequest, rejected: ApprovalRequest) -> None:
        """Store a rejection; if that is impossible, it takes effect nevertheless, and is stored later.

        Not in the Hub service, where another process may have the request next, and let it be approved.

        Raises
        ------
        InvalidTransitionError
            If the request is not in the state `request`: another change came first.
        AuditError
            If the site wants each decision to be recorded elsewhere first, and it was not.
        UnknownApprovalError, StorageError
        """
        try:
            await self.requests.write(request, rejected)
        except AuditError:
            raise
        except StorageError:
            if not self.requests.approvals_start_calls or self.requests.get(request.id) is not request:
                raise
            self.unstored.add(request, rejected)

    async def record(
        self, request_id: str, state: OutcomeState, error: str = "", review: HubReview | None = None
    ) -> ApprovalRequest:
        """Record the outcome of an approved call, later if that is impossible now. Must not be cancelled halfway.

        Parameters
        ----------
        request_id : str
            The call's request.
        state : OutcomeState
            How it ended.
        error : str
            Why it failed.
        review : HubReview, optional
            What its server says of the persons it asked; without it, what it said of them last is kept.

        Raises
        ------
        InvalidTransitionError
            If the call is not approved, or has ended.
        UnknownApprovalError, StorageError
        """
        request = await self.find(request_id)
        found = self.requests.find(request_id)
        if review is None and found is not None and found.activity is not None:
            review = found.activity.review
        changed = request.record(state, at=self._clock.now(), error=error, review=review)
        try:
            await self.requests.write_through(request, changed)
        except StorageError:
            self.unstored.add(request, changed)
        return changed

    async def start(self, request_id: str) -> ApprovalRequest:
        """Record that an approved call begins to run, unless its approval recorded it. On return, it is on disk.

        Raises
        ------
        ApprovalCancelledError
            If this process has left the request to the next one.
        InvalidTransitionError
            If the call is not approved, or has ended.
        UnknownApprovalError, StorageError
        """
        return await asyncio.shield(self._start(request_id))

    async def _start(self, request_id: str) -> ApprovalRequest:
        async with self.requests.turn(request_id):
            request = self.requests.get(request_id)
            if request is None:
                raise no_longer_here(request_id)
            if request.outcome is not None:
                return request
            running = request.record(OutcomeState.RUNNING, at=self._clock.now())
            await self.requests.write_through(request, running)
            return running

    async def record_not_run(self, request_id: str) -> None:
        """Record that an approved call did not run. Must not be cancelled halfway.

        Raises
        ------
        InvalidTransitionError
            If the call is not approved, or has ended.
        UnknownApprovalError, StorageError
        """
        async with self.requests.turn(request_id):
            try:
                await self._write_not_run(request_id)
            except InvalidTransitionError as error:
                # Its start may be stored although the store reported an error. By now that is known here.
                log.debug("trying again: %s", error)
                await self._write_not_run(request_id)

    async def _write_not_run(self, request_id: str) -> None:
        request = await self.find(request_id)
        await self.requests.write_through(request, request.record_not_run(at=self._clock.now()))

    def holds(self, request_id: str) -> bool:
        """Whether a request is open and owned by this process."""
        return request_id in self.requests

    async def waiting(self) -> Sequence[ApprovalRequest]:
        """Return this process's pending requests, newest first, complete and from memory, without a query.

        Raises
        ------
        StorageError
            If it is unknown what another process left here.
        """
        await self.abandoned.recover()
        return sorted(self.requests.pending(), key=lambda request: (request.created_at, request.id), reverse=True)
