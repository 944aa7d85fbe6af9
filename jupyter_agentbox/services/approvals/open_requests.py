"""Pending and running requests of this process: cached in memory, and changed in the store first.

The store is authoritative: a change takes effect once the store has accepted it, by compare-and-set, and only then is
announced and acted on.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from weakref import WeakValueDictionary

from jupyter_agentbox.core.approvals import ApprovalRequest, OutcomeState, Status
from jupyter_agentbox.core.grants import Grant
from jupyter_agentbox.core.local_calls import needs_approvers
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
    """A pending or running request, with its state until it ends.

    Attributes
    ----------
    request : ApprovalRequest
        The request's current state.
    settled : Future or None
        Resolves to it once it is no longer pending; ``None`` if it never was.
    trust_key : str
        The server's trust key when it became pending.
    activity : Activity or None
        Progress and log messages of the running call.
    is_kept : bool
        Whether it waits for its caller to return, because the process that opened it is gone.
    """

    request: ApprovalRequest
    settled: asyncio.Future[ApprovalRequest] | None = None
    trust_key: str = ""
    activity: Activity | None = None
    is_kept: bool = False

    @property
    def waits_at_hub(self) -> bool:
        """Whether the call is running, and its server, the Hub service, still asks people."""
        review = None if self.activity is None else self.activity.review
        is_running = self.request.outcome_state is OutcomeState.RUNNING
        return is_running and review is not None and review.status == Status.PENDING.value


class OpenRequests:
    """Holds this process's pending and running requests, so that waiting needs no queries.

    Parameters
    ----------
    store : ApprovalStore
        Stores the requests.
    announcer : Announcer
        Notifies pages.
    grants : GrantManager
        Told of a grant atomically with the decision that gives it.
    most_pending : int or None
        Maximum number of pending requests per kernel; ``None`` for no limit.
    approvals_start_calls : bool
        Whether an approval also starts its call, in one write. Otherwise the caller starts it, if they are still there.

    Attributes
    ----------
    approvals_start_calls : bool
        The constructor's argument.
    """

    def __init__(
        self,
        *,
        store: ApprovalStore,
        announcer: Announcer,
        grants: GrantManager,
        most_pending: int | None = None,
        approvals_start_calls: bool = True,
    ) -> None:
        self.approvals_start_calls = approvals_start_calls
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
        """Return this process's open request with an id, if any."""
        return self._open.get(request_id)

    def get(self, request_id: str) -> ApprovalRequest | None:
        """Return the current state of an open request; ``None`` if it is not open, or not this process's."""
        found = self._open.get(request_id)
        return None if found is None else found.request

    def trust_key(self, request_id: str) -> str:
        """Return the trust key of a request's server when it was opened; empty if it is no longer open."""
        found = self._open.get(request_id)
        return "" if found is None else found.trust_key

    def server_key(self, server: str) -> str:
        """Return a server's present trust key."""
        return self._grants.trust_key(server)

    def has_same_server(self, request: ApprovalRequest) -> bool:
        """Whether an open request's server still has the entry that it had when the request was opened."""
        return self.trust_key(request.id) == self.server_key(request.call.server)

    def running(self, request_id: str) -> ApprovalRequest | None:
        """Return a request whose call is running here, if any."""
        request = self.get(request_id)
        return request if request is not None and request.outcome_state is OutcomeState.RUNNING else None

    def pending(self) -> list[ApprovalRequest]:
        """Return the pending requests, oldest first."""
        return [one.request for one in self._open.values() if one.request.status is Status.PENDING]

    def pending_of(self, kernel_id: str | None) -> tuple[ApprovalRequest, ...]:
        """Return a kernel's pending requests, oldest first; ``None`` stands for calls from outside kernels."""
        return tuple(request for request in self.pending() if request.call.origin.kernel_id == kernel_id)

    @contextmanager
    def counted(self, request: ApprovalRequest) -> Iterator[None]:
        """Count a request against its kernel's limit, from before it is stored until it is no longer pending.

        Raises
        ------
        TooManyRequestsError
            If the kernel has reached its limit of pending requests.
        """
        kernel_id = request.call.origin.kernel_id
        if request.status is not Status.PENDING:
            yield
            return
        if self._most_pending is not None and self._pending[kernel_id] >= self._most_pending:
            who = "this kernel already has" if kernel_id is not None else "programs outside kernels already have"
            raise TooManyRequestsError(
                f"{who} {self._most_pending} pending requests, the most that are allowed."
                f" `{request.call.qualified_name}` did not run. Approve or reject some requests first."
            )
        self._pending[kernel_id] += 1
        try:
            yield
        except BaseException:
            self._uncount(kernel_id)
            raise

    def add(self, request: ApprovalRequest, *, trust_key: str | None = None) -> None:
        """Hold a request that is stored and counted, with the trust key that its server had if that was looked up."""
        is_pending = request.status is Status.PENDING
        # A call that a rule or a grant allows runs at once: nobody decides about a server that could be exchanged.
        is_decided = request.decision is not None or needs_approvers(request.evaluation)
        if trust_key is None:
            trust_key = self.server_key(request.call.server) if is_pending or is_decided else ""
        if not is_pending:
            self._open[request.id] = OpenRequest(request=request, trust_key=trust_key)
            return
        settled: asyncio.Future[ApprovalRequest] = asyncio.get_running_loop().create_future()
        self._open[request.id] = OpenRequest(request=request, settled=settled, trust_key=trust_key)

    def keep(self, request: ApprovalRequest) -> None:
        """Keep a request opened by another process, pending or approved but not run, until its caller returns."""
        if request.status is Status.PENDING:
            self._pending[request.call.origin.kernel_id] += 1
        self.add(request)
        self._open[request.id].is_kept = True
        self._announcer.approval_changed(request)

    def as_running(self, request: ApprovalRequest, *, at: datetime) -> ApprovalRequest:
        """Return an approved request as running if its approval also starts its call."""
        return request.running_if_approved(at=at) if self.approvals_start_calls else request

    def turn(self, request_id: str) -> asyncio.Lock:
        """Return the lock that serializes changes of a pending request, so that none is overwritten."""
        return self._turns.setdefault(request_id, asyncio.Lock())

    async def write(self, before: ApprovalRequest, after: ApprovalRequest, *, grant: Grant | None = None) -> None:
        """Store, cache and announce a change, to completion even if its caller is cancelled.

        Raises
        ------
        InvalidTransitionError
            If the request is not in the state `before`: another change came first.
        UnknownApprovalError, StorageError
        """
        await asyncio.shield(self.write_through(before, after, grant))

    async def write_through(self, before: ApprovalRequest, after: ApprovalRequest, grant: Grant | None = None) -> None:
        """Store, cache and announce a change. Must not be cancelled halfway.

        Raises
        ------
        InvalidTransitionError, UnknownApprovalError, StorageError
            As for `write`.
        """
        if not await self.try_write(before, after, grant):
            raise await self.changed_meanwhile(before)
        if grant is not None:
            self._grants.remember(grant)  # without awaiting: if the kernel ends now, that ends the grant, too
        self.apply(after)

    async def try_write(self, before: ApprovalRequest, after: ApprovalRequest, grant: Grant | None = None) -> bool:
        """Store a change if the request is in the state `before`; return whether it was stored. Call `apply` next.

        Raises
        ------
        StorageError
        """
        return await self._store.replace_if(after, status=before.status, outcome=before.outcome_state, grant=grant)

    def apply(self, request: ApprovalRequest) -> None:
        """Cache and announce a stored change."""
        self._remember(request)
        self._announcer.approval_changed(request)

    def settle(self, request: ApprovalRequest) -> None:
        """Tell the caller of a request that it has ended, although the store could not be told yet."""
        self._remember(request)

    async def stored(self, request_id: str) -> ApprovalRequest:
        """Return what the store has of a request.

        Raises
        ------
        UnknownApprovalError, StorageError
        """
        return await self._store.get(request_id)

    async def changed_meanwhile(self, believed: ApprovalRequest) -> InvalidTransitionError:
        """Refresh a request whose cached state is outdated, and return the error for the late change.

        Raises
        ------
        UnknownApprovalError, StorageError
        """
        return _changed(believed, await self._present(believed))

    async def _present(self, believed: ApprovalRequest) -> ApprovalRequest:
        """Return the stored state of a request whose cached state is outdated, and cache it."""
        try:
            present = await self._store.get(believed.id)
        except UnknownApprovalError:
            self.forget(believed.id)
            raise
        if present.decision is not None and present.decision.edited_digest:
            # It was stored, though its writer does not know: the stored arguments, redacted, cannot run.
            self.forget(believed.id)
            return present
        present = replace(present, call=believed.call)
        self._remember(present)
        is_voted = len(present.votes) > len(believed.votes)
        if not is_voted and (present.status, present.outcome_state) == (believed.status, believed.outcome_state):
            self.forget(believed.id)  # the store refuses our change: another server process adopted it
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
        """Drop a request. Waiters are told that it is no longer this server's, unless it is already settled."""
        known = self._open.pop(request_id, None)
        if known is None:
            return
        if known.request.status is Status.PENDING:
            self._uncount(known.request.call.origin.kernel_id)
        settled = known.settled
        if settled is not None and not settled.done():
            settled.set_exception(no_longer_here(request_id))
            settled.exception()  # retrieves the error if nobody is left waiting

    def _uncount(self, kernel_id: str | None) -> None:
        self._pending[kernel_id] -= 1
        if self._pending[kernel_id] <= 0:
            del self._pending[kernel_id]


def no_longer_here(request_id: str) -> ApprovalCancelledError:
    """Return the error for a request that this process has dropped, and that another one may have by now."""
    text = f"request `{request_id}` no longer belongs to this server; its call did not run"
    return ApprovalCancelledError(text, request_id=request_id)


def _changed(believed: ApprovalRequest, present: ApprovalRequest) -> InvalidTransitionError:
    """Return the error for a change that came too late."""
    if present.status is not believed.status:
        text = f"is no longer {believed.status.value}: it is `{present.status.value}`"
    elif len(present.votes) > len(believed.votes):
        text = "was not changed: another person approved it at the same moment. Look at it again, then answer"
    else:
        text = f"was not changed: it is `{present.status.value}`"
    return InvalidTransitionError(f"request `{believed.id}` {text}", request_id=believed.id)
