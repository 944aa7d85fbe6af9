"""Settlement of pending requests by a grant or a rule that a person has just created."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from datetime import datetime

from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, Decision
from jupyter_agentbox.core.calls import is_long
from jupyter_agentbox.core.grant_uses import GrantUse
from jupyter_agentbox.core.grants import NEVER_GRANTED, Grant
from jupyter_agentbox.core.policy import Effect, GrantLimit, Rule
from jupyter_agentbox.core.ports import Clock
from jupyter_agentbox.core.reviewers import Reviewer
from jupyter_agentbox.exceptions import StorageError
from jupyter_agentbox.services.grants.manager import GrantManager
from jupyter_agentbox.services.policies.manager import PolicyManager

from .open_requests import OpenRequests

log = logging.getLogger(__name__)


class Settlement:
    """Decides pending requests by a new grant or rule as if they came now. What a rule asks about stays pending.

    Parameters
    ----------
    requests : OpenRequests
        Holds the pending requests.
    policies : PolicyManager
        Evaluates calls by grants and rules.
    grants : GrantManager
        Counts the uses of the grant.
    clock : Clock
        Source of the time.
    """

    def __init__(self, *, requests: OpenRequests, policies: PolicyManager, grants: GrantManager, clock: Clock) -> None:
        self._requests = requests
        self._policies = policies
        self._grants = grants
        self._clock = clock

    async def settle(self, grant: Grant) -> None:
        """Decide the pending requests that a grant covers."""
        now = self._clock.now()
        await self._settle_all(
            (request, _decision(request, grant.effect, grant.granter, grant.reason, at=now, grant=grant.use))
            for request in self._requests.pending()
            if self._is_settled_by(grant, request)
        )

    async def settle_by_rules(self, rules: Sequence[Rule], *, reviewer: Reviewer) -> None:
        """Decide pending requests by rules that a person has just written, together with all other rules.

        A call that a rule asked about is not allowed, because that rule may not apply to a new call, such as one based
        on findings in the calling code. Nor is a call that is asked about every time, or whose arguments are so long
        that nobody need have seen them. Calls that require several approvers still wait for them.

        Parameters
        ----------
        rules : sequence of Rule
            The new rules.
        reviewer : Reviewer
            Their author.
        """
        if not rules:
            return
        now = self._clock.now()
        found = [(request, self._settling_rule(request, rules)) for request in self._requests.pending()]
        await self._settle_all(
            (request, _decision(request, rule.effect, reviewer, rule.reason, at=now, rule=rule))
            for request, rule in found
            if rule is not None
        )

    def _is_settled_by(self, grant: Grant, request: ApprovalRequest) -> bool:
        if request.is_over(self._clock.now()):
            return False
        if grant.effect is Effect.ALLOW and request.evaluation.grants is GrantLimit.NEVER:
            return False
        return self._policies.evaluate(request.call, request.tool).grant == grant.use

    def _settling_rule(self, request: ApprovalRequest, rules: Sequence[Rule]) -> Rule | None:
        """Return the rule among those given that decides a request, if any."""
        call, asked = request.call, request.evaluation.rule
        needs_several = bool(request.votes) or (asked is not None and asked.approvers is not None)
        if request.is_over(self._clock.now()) or needs_several or call.omitted is not None:
            return None
        evaluation = self._policies.evaluate(call, request.tool)
        if evaluation.effect is Effect.ASK or evaluation.rule is None or evaluation.rule not in rules:
            return None
        waits_on = asked is not None or (call.server, call.tool) in NEVER_GRANTED or is_long(call.arguments)
        return None if evaluation.effect is Effect.ALLOW and waits_on else evaluation.rule

    async def _settle_all(self, answers: Iterable[tuple[ApprovalRequest, Decision]]) -> None:
        await asyncio.shield(asyncio.gather(*[self._settle(request, decision) for request, decision in answers]))

    async def _settle(self, request: ApprovalRequest, decision: Decision) -> None:
        decided = self._requests.as_running(request.decide(decision), at=decision.decided_at)
        try:
            is_settled = await self._requests.try_write(request, decided)
        except StorageError:
            log.exception("request %s could not be settled by a grant or a rule; it goes on waiting", request.id)
            return
        if is_settled:  # otherwise it was already decided, or the grant is used up
            if decision.grant is not None:
                self._grants.used(decision.grant, decision.decided_at)
            self._requests.apply(decided)


def _decision(
    request: ApprovalRequest,
    effect: Effect,
    reviewer: Reviewer,
    reason: str,
    *,
    at: datetime,
    grant: GrantUse | None = None,
    rule: Rule | None = None,
) -> Decision:
    return Decision(
        answer=Answer.ALLOW_ONCE if effect is Effect.ALLOW else Answer.REJECT_ONCE,
        digest=request.call.digest,
        reviewer=reviewer,
        decided_at=at,
        reason=reason,
        grant=grant,
        rule=rule,
    )
