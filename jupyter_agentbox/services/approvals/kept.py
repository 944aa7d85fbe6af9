"""Requests that wait for their caller to come back: the process in which they were opened is gone."""

from __future__ import annotations

from jupyter_agentbox.core.approvals import ApprovalRequest, OutcomeState, Status
from jupyter_agentbox.exceptions import UnknownApprovalError

from .manager import ApprovalManager


class KeptRequests:
    """Gives kept requests to who comes back for them, gives up others, and leaves some to the next process.

    Parameters
    ----------
    approvals : ApprovalManager
        Holds them.
    """

    def __init__(self, approvals: ApprovalManager) -> None:
        self._approvals = approvals

    def all(self) -> tuple[ApprovalRequest, ...]:
        """Return what a process left that is gone, and nobody has come back for."""
        return tuple(one.request for one in self._approvals.requests if one.is_kept)

    async def take(self, request_id: str) -> ApprovalRequest:
        """Return a request whose caller is back, once: who has it may run its call when it is approved.

        Where it shows only after a while that a process is gone, this waits for it.

        Returns
        -------
        ApprovalRequest
            If it was kept: pending, or running because it was approved meanwhile. Else as it ended.

        Raises
        ------
        UnknownApprovalError
            There is none, or somebody has it.
        StorageError
        """
        while True:
            looked = self._approvals.abandoned.looked
            request = await self._approvals.get(request_id)
            found = self._approvals.requests.find(request_id)
            if found is not None and found.is_kept:
                found.is_kept = False
                return found.request
            if not request.is_open:
                return request
            if found is not None or not self._approvals.abandoned.is_looking:
                raise UnknownApprovalError(f"somebody has request `{request_id}`", request_id=request_id)
            await looked.wait()

    async def give_up(self, request_id: str) -> None:
        """Close a kept request that nobody has come back for; one that somebody has by now stays as it is.

        Raises
        ------
        StorageError
        """
        approvals = self._approvals
        found = approvals.requests.find(request_id)
        if found is None or not found.is_kept:
            return
        found.is_kept = False
        try:
            if found.request.status is Status.PENDING:
                await approvals.orphan_request(request_id)
            if approvals.requests.running(request_id) is not None:
                # It was approved, perhaps in this moment, and nobody will run it.
                await approvals.record(request_id, OutcomeState.CANCELLED)
        finally:
            if request_id in approvals.requests:  # its end could not be stored: the next time, perhaps
                found.is_kept = True

    def leave(self) -> frozenset[str]:
        """Let go of what waits and another process can keep, and return the ids. It stays pending in the store."""
        left = [one for one in self._approvals.requests.pending() if self._approvals.abandoned.keeps(one)]
        for request in left:
            self._approvals.abandon(request.id)
        return frozenset(request.id for request in left)
