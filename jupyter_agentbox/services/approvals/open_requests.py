"""The requests of this process that wait or run: held in memory, and changed in the store before anything else.

The store is the truth: a change counts when the store took it, by compare-and-set, and only then is it announced and
acted on.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from weakref import WeakValueDictionary

from jupyter_agentbox.core.approvals import ApprovalRequest, OutcomeState, Status
from jupyter_agentbox.core.grants import Grant
from jupyter_agentbox.core.ports import Announcer, ApprovalStore
from jupyter_agentbox.core.tools import Activity
from jupyter_agentbox.exceptions import (
    ApprovalCancelledError,
    InvalidTransitionError,
    TooManyRequestsError,
    UnknownApprovalError,
)
from jupyter_agentbox.services.grants.manager import GrantManager


@dataclass(slots=True, eq=False, kw_only=True)
class OpenRequest:
    """A request that waits or runs, with what belongs to it until it ends.

    Attributes
    ----------
    request : ApprovalRequest
        The request as it is now.
    settled : Future or None
        Has it once it is no longer pending; ``None`` if it never waited.
    trust_key : str
        The trust key of its server when it began to wait.
    activity : Activity or None
        What was said while its call runs.
    is_kept : bool
        Whether it waits for its caller to come back: the process that opened it is gone.
    """

    request: ApprovalRequest
    settled: asyncio.Future[ApprovalRequest] | None = None
    trust_key: str = ""
    activity: Activity | None = None
    is_kept: bool = False


class OpenRequests:
    """Holds the requests of this process that are pending or running, so that waiting costs no query.

    Parameters
    ----------
    store : ApprovalStore
        Where requests are kept.
    announcer : Announcer
        Who tells the pages.
    grants : GrantManager
        Learns of a grant in the step in which its request is decided.
    most_pending : int or None
        The largest number of pending requests per kernel; ``None`` for no limit.
    """

    def __init__(
        self, *, store: ApprovalStore, announcer: Announcer, grants: GrantManager, most_pending: int | None = None
    ) -> None:
        self._store = store
        self._announcer = announcer
        self._grants = grants
        self._most_pending = most_pending
        self._open: dict[str, OpenRequest] = {}
        self._pending: Counter[str | None] = Counter()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._open

    def __iter__(self) -> Iterator[OpenRequest]:
        return iter(self._open.values())

    def find(self, request_id: str) -> OpenRequest | None:
        """Return what is open under an id; ``None`` if nothing of this process is."""
        return self._open.get(request_id)

    def get(self, request_id: str) -> ApprovalRequest | None:
        """Return an open request as it is now; ``None`` if it is not open, or not this process's."""
        found = self._open.get(request_id)
        return None if found is None else found.request

    def trust_key(self, request_id: str) -> str:
        """Return the trust key of a request's server when it began to wait; empty if it is not open any more."""
        found = self._open.get(request_id)
        return "" if found is None else found.trust_key

    def running(self, request_id: str) -> ApprovalRequest | None:
        """Return a request whose call runs here; ``None`` if it does not."""
        request = self.get(request_id)
        return request if request is not None and request.outcome_state is OutcomeState.RUNNING else None

    def pending(self) -> list[ApprovalRequest]:
        """Return the requests that wait for a person, oldest first."""
        return [one.request for one in self._open.values() if one.request.status is Status.PENDING]

    def pending_of(self, kernel_id: str | None) -> tuple[ApprovalRequest, ...]:
        """Return the pending requests of a kernel, oldest first; ``None`` is for calls that come from none."""
        return tuple(request for request in self.pending() if request.call.origin.kernel_id == kernel_id)

    @contextmanager
    def counted(self, request: ApprovalRequest) -> Iterator[None]:
        """Count a request, from before it is in the store; it counts until it is no longer pending.

        Raises
        ------
        TooManyRequestsError
            If the kernel already has the largest allowed number of pending requests.
        """
        kernel_id = request.call.origin.kernel_id
        if request.status is not Status.PENDING:
            yield
            return
        if self._most_pending is not None and self._pending[kernel_id] >= self._most_pending:
            raise TooManyRequestsError(
                f"this kernel already has {self._most_pending} pending requests, the most that are allowed."
                f" `{request.call.qualified_name}` did not run. Approve or reject some requests first."
            )
        self._pending[kernel_id] += 1
        try:
            yield
        except BaseException:
            self._uncount(kernel_id)
            raise

    def add(self, request: ApprovalRequest) -> None:
        """Hold a request that is in the store, and counted."""
        if request.status is not Status.PENDING:
            self._open[request.id] = OpenRequest(request=request)
            return
        settled: asyncio.Future[ApprovalRequest] = asyncio.get_running_loop().create_future()
        trust_key = self._grants.trust_key(request.call.server)
        self._open[request.id] = OpenRequest(request=request, settled=settled, trust_key=trust_key)

    def keep(self, request: ApprovalRequest) -> None:
        """Let a request that another process opened wait here, until its caller is back."""
        self._pending[request.call.origin.kernel_id] += 1
        self.add(request)
        self._open[request.id].is_kept = True
        self._announcer.approval_changed(request)

    def turn(self, request_id: str) -> asyncio.Lock:
        """Return what lets changes of a pending request come one after the other: none is written over another."""
        return self._turns.setdefault(request_id, asyncio.Lock())

    async def write(self, before: ApprovalRequest, after: ApprovalRequest, *, grant: Grant | None = None) -> None:
        """Store, remember and announce a change. Who asked for it may go away meanwhile; it is done as a whole.

        Raises
        ------
        InvalidTransitionError
            If the request is not as it was before: another change came first.
        UnknownApprovalError, StorageError
        """
        await asyncio.shield(self.write_through(before, after, grant))

    async def write_through(self, before: ApprovalRequest, after: ApprovalRequest, grant: Grant | None = None) -> None:
        """Store, remember and announce a change. Not to be cancelled half way.

        Raises
        ------
        InvalidTransitionError, UnknownApprovalError, StorageError
            As for `write`.
        """
        if not await self.try_write(before, after, grant):
            raise await self.changed_meanwhile(before)
        if grant is not None:
            self._grants.remember(grant)  # in the same step: should the kernel end now, it ends the grant, too
        self.apply(after)

    async def try_write(self, before: ApprovalRequest, after: ApprovalRequest, grant: Grant | None = None) -> bool:
        """Store a change if the request is as it was before, and return whether it was; `apply` comes next.

        Raises
        ------
        StorageError
        """
        return await self._store.replace_if(after, status=before.status, outcome=before.outcome_state, grant=grant)

    def apply(self, request: ApprovalRequest) -> None:
        """Remember and announce a change that the store took."""
        self._remember(request)
        self._announcer.approval_changed(request)

    async def changed_meanwhile(self, believed: ApprovalRequest) -> InvalidTransitionError:
        """Believe what is stored where it is not what we believed, and return what to tell whose change came too late.

        Raises
        ------
        UnknownApprovalError, StorageError
        """
        return _changed(believed, await self._present(believed))

    async def _present(self, believed: ApprovalRequest) -> ApprovalRequest:
        """Return what is stored where it is not what we believed, and believe that."""
        try:
            present = await self._store.get(believed.id)
        except UnknownApprovalError:
            self.forget(believed.id)
            raise
        if present.decision is not None and present.decision.edited_digest:
            # It was kept, though its writer does not know: what the store has of the arguments cannot run.
            self.forget(believed.id)
            return present
        present = replace(present, call=believed.call)
        self._remember(present)
        is_voted = len(present.votes) > len(believed.votes)
        if not is_voted and (present.status, present.outcome_state) == (believed.status, believed.outcome_state):
            self.forget(believed.id)  # the store does not take it from us: another server process adopted it
        return present

    def _remember(self, request: ApprovalRequest) -> None:
        known = self._open.get(request.id)
        if known is None:
            return
        if known.request.status is Status.PENDING and request.status is not Status.PENDING:
            self._uncount(request.call.origin.kernel_id)
            if known.settled is not None:
                known.settled.set_result(request)
        known.request = request
        if not request.is_open:
            self.forget(request.id)

    def forget(self, request_id: str) -> None:
        """Let go of a request. Who waits for it is told that it is no longer this server's, unless it was settled."""
        known = self._open.pop(request_id, None)
        if known is None:
            return
        if known.request.status is Status.PENDING:
            self._uncount(known.request.call.origin.kernel_id)
        settled = known.settled
        if settled is not None and not settled.done():
            text = f"request `{request_id}` no longer belongs to this server; its call did not run"
            settled.set_exception(ApprovalCancelledError(text, request_id=request_id))
            settled.exception()  # looks at the error, should nobody be left who waits

    def _uncount(self, kernel_id: str | None) -> None:
        self._pending[kernel_id] -= 1
        if self._pending[kernel_id] <= 0:
            del self._pending[kernel_id]


def _changed(believed: ApprovalRequest, present: ApprovalRequest) -> InvalidTransitionError:
    """Return what to tell whose change came too late."""
    if present.status is not believed.status:
        text = f"is no longer {believed.status.value}: it is `{present.status.value}`"
    elif len(present.votes) > len(believed.votes):
        text = "was not changed: another person approved it at the same moment. Look at it again, then answer"
    else:
        text = f"was not changed: it is `{present.status.value}`"
    return InvalidTransitionError(f"request `{believed.id}` {text}", request_id=believed.id)
