"""Answering, by a grant that a person has just given, what waits already."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime

from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, Decision
from jupyter_agentbox.core.grants import Grant
from jupyter_agentbox.core.policy import Effect
from jupyter_agentbox.core.ports import Clock
from jupyter_agentbox.exceptions import StorageError
from jupyter_agentbox.services.grants.manager import GrantManager
from jupyter_agentbox.services.policies.manager import PolicyManager

from .open_requests import OpenRequests

log = logging.getLogger(__name__)


class Settlement:
    """Answers what waits and a new grant is for, as if it came now. What a rule asks about goes on waiting.

    Parameters
    ----------
    requests : OpenRequests
        Holds what waits.
    policies : PolicyManager
        Says which grant a call is allowed or denied by.
    grants : GrantManager
        Counts the uses of the grant.
    clock : Clock
        The time.
    """

    def __init__(self, *, requests: OpenRequests, policies: PolicyManager, grants: GrantManager, clock: Clock) -> None:
        self._requests = requests
        self._policies = policies
        self._grants = grants
        self._clock = clock

    async def settle(self, grant: Grant) -> None:
        """Answer what waits and a grant is for."""
        waiting = [request for request in self._requests.pending() if self._is_settled_by(grant, request)]
        await asyncio.shield(asyncio.gather(*(self._settle(request, grant) for request in waiting)))

    def _is_settled_by(self, grant: Grant, request: ApprovalRequest) -> bool:
        if request.is_over(self._clock.now()):
            return False
        if grant.effect is Effect.ALLOW and request.evaluation.rule is not None:
            return False
        return self._policies.evaluate(request.call, request.tool).grant == grant.use

    async def _settle(self, request: ApprovalRequest, grant: Grant) -> None:
        now = self._clock.now()
        decided = request.decide(_decision(request, grant, at=now)).running_if_approved(at=now)
        try:
            is_settled = await self._requests.try_write(request, decided)
        except StorageError:
            log.exception("request %s could not be settled by a grant; it goes on waiting", request.id)
            return
        if is_settled:  # if not, somebody was faster, or the grant has no use left
            self._grants.used(grant.use, now)
            self._requests.apply(decided)


def _decision(request: ApprovalRequest, grant: Grant, *, at: datetime) -> Decision:
    return Decision(
        answer=Answer.ALLOW_ONCE if grant.effect is Effect.ALLOW else Answer.REJECT_ONCE,
        digest=request.call.digest,
        reviewer=grant.granter,
        decided_at=at,
        reason=grant.reason,
        grant=grant.use,
    )
