"""`CellApproval`: a request of a turn's code, for the agent's loop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, Status
from jupyter_agentbox.core.reviewers import Reviewer, Via
from jupyter_agentbox.services.approvals.decisions import DecisionManager
from jupyter_agentbox.services.approvals.verdicts import Verdict

#: The reviewer if the server accepts programs' decisions.
_PROGRAM: Final = Reviewer(name="agent", via=Via.PROGRAM)


class CellApproval:
    """A `PendingApproval` in the server's approval store.

    Parameters
    ----------
    stored : ApprovalRequest
        The request.
    decisions : DecisionManager
        Decides requests.

    Attributes
    ----------
    server_name, tool_name : str
        The tool to be called.
    tool_args : dict
        Its arguments.
    """

    def __init__(self, stored: ApprovalRequest, decisions: DecisionManager) -> None:
        self.server_name = stored.call.server
        self.tool_name = stored.call.tool
        self.tool_args: dict[str, Any] = dict(stored.call.arguments)
        self._stored = stored
        self._decisions = decisions
        self._settled: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    @property
    def id(self) -> str:
        """The request's id."""
        return self._stored.id

    async def accept(self, arguments: Mapping[str, Any] | None = None) -> None:
        """Approve the call, with edited arguments if given."""
        await self._decide(Answer.ALLOW_ONCE, "", arguments)

    async def reject(self, reason: str = "") -> None:
        """Reject the call."""
        await self._decide(Answer.REJECT_ONCE, reason, None)

    async def reject_unasked(self, reason: str) -> None:
        """Reject the call; not used here, because a page can always be asked."""
        await self.reject(reason)

    async def response(self) -> bool:
        """Wait for the decision; return whether the call was approved."""
        return await asyncio.shield(self._settled)

    def changed(self, stored: ApprovalRequest) -> None:
        """Update the request's status."""
        self._stored = stored
        if stored.status.is_final and not self._settled.done():
            self._settled.set_result(stored.status is Status.APPROVED)

    async def _decide(self, answer: Answer, reason: str, arguments: Mapping[str, Any] | None) -> None:
        verdict = Verdict(answer=answer, digest=self._stored.call.digest, reason=reason, arguments=arguments)
        await self._decisions.decide(self.id, verdict, reviewer=_PROGRAM)
