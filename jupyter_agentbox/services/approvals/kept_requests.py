"""Kept requests: they wait for their caller to return, because the process that opened them is gone."""

from __future__ import annotations

from contextlib import suppress

from jupyter_agentbox.core.approvals import ApprovalRequest, Status
from jupyter_agentbox.exceptions import InvalidTransitionError, UnknownApprovalError

from .manager import ApprovalManager


class KeptRequests:
    """Returns kept requests to their callers, closes others, and leaves some to the next process.

    Parameters
    ----------
    approvals : ApprovalManager
        Holds them.
    """

    def __init__(self, approvals: ApprovalManager) -> None:
        self._approvals = approvals

    def all(self) -> tuple[ApprovalRequest, ...]:
        """Return all kept requests that no caller has claimed."""
        return tuple(one.request for one in self._approvals.requests if one.is_kept)

    async def take(self, request_id: str) -> ApprovalRequest:
        """Claim a request for its returned caller, once: the caller may run the call when it is approved.

        If it takes a while to detect that a process is gone, this waits for it.

        Returns
        -------
        ApprovalRequest
            If kept: pending, or approved but not run. Otherwise as it ended.

        Raises
        ------
        UnknownApprovalError
            There is none, or it is already claimed.
        StorageError
        """
        while True:
            looked = self._approvals.abandoned.looked
            request = await self._approvals.get(request_id)
            found = self._approvals.requests.find(request_id)
            if found is not None and found.is_kept:
                if found.request.status is Status.APPROVED and not self._approvals.abandoned.keeps(found.request):
                    await self.give_up(request_id)  # the rules have changed since it was approved
                    continue
                found.is_kept = False
                return found.request
            if not request.is_open:
                return request
            if found is not None or not self._approvals.abandoned.is_looking:
                raise UnknownApprovalError(f"somebody has request `{request_id}`", request_id=request_id)
            await looked.wait()

    async def give_up(self, request_id: str) -> None:
        """Close a kept request unless a caller has claimed it meanwhile.

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
            present = approvals.requests.get(request_id)
            if present is not None and present.status is Status.APPROVED:  # perhaps just now, and nobody will run it
                with suppress(InvalidTransitionError, UnknownApprovalError):  # it has ended
                    await approvals.record_not_run(request_id)
        finally:
            if request_id in approvals.requests:  # its end could not be stored; perhaps next time
                found.is_kept = True

    def leave(self) -> frozenset[str]:
        """Release the requests that another process can keep, which have not run, and return their ids."""
        requests = self._approvals.requests
        waiting = [one.request for one in requests if one.request.outcome is None]
        # What is about to start or to end here does so.
        left = [one for one in waiting if not requests.turn(one.id).locked() and self._approvals.abandoned.keeps(one)]
        for request in left:
            requests.forget(request.id)
        return frozenset(request.id for request in left)
