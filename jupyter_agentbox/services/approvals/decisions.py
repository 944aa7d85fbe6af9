"""People's decisions: on one request or many, one of several required approvals, extensions."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, Lapse, Status
from jupyter_agentbox.core.calls import check_arguments
from jupyter_agentbox.core.local_calls import needs_approvers
from jupyter_agentbox.core.policy import Effect, Evaluation, Rule
from jupyter_agentbox.core.ports import ArgumentChecker, Clock
from jupyter_agentbox.core.reviewers import DecideWith, Reviewer
from jupyter_agentbox.core.site_policy import Feature
from jupyter_agentbox.core.waiting_times import WaitingTimes
from jupyter_agentbox.exceptions import AgentBoxError, InvalidTransitionError, ToolCallRejectedError
from jupyter_agentbox.services.grants.manager import GrantManager
from jupyter_agentbox.services.policies.manager import PolicyManager

from .manager import ApprovalManager
from .settlement import Settlement
from .verdicts import Verdict


class DecisionManager:
    """Handles people's decisions on the requests of this server process.

    Parameters
    ----------
    approvals : ApprovalManager
        Holds the requests.
    clock : Clock
        Source of the time.
    waiting_times : WaitingTimes
        Limits of extensions.
    policies : PolicyManager
        Re-checks what was approved.
    grants : GrantManager
        Stores lasting answers.
    checker : ArgumentChecker
        Validates edited arguments.
    decide_with : DecideWith
        The credentials required to decide.

    Attributes
    ----------
    decide_with : DecideWith
        The constructor's argument.
    """

    def __init__(
        self,
        *,
        approvals: ApprovalManager,
        clock: Clock,
        waiting_times: WaitingTimes,
        policies: PolicyManager,
        grants: GrantManager,
        checker: ArgumentChecker,
        decide_with: DecideWith = DecideWith.ANY,
    ) -> None:
        self._approvals = approvals
        self._requests = approvals.requests
        self._clock = clock
        self._waiting_times = waiting_times
        self._policies = policies
        self._grants = grants
        self._checker = checker
        self._settlement = Settlement(requests=approvals.requests, policies=policies, grants=grants, clock=clock)
        self.decide_with = decide_with

    async def decide(self, request_id: str, verdict: Verdict, *, reviewer: Reviewer) -> ApprovalRequest:
        """Apply a decision; on return, a person's is on disk.

        Unless its caller starts it, an approved call is stored as running, because it starts at once.

        Raises
        ------
        NeedsPersonError
            Only people may decide, and the reviewer is not one.
        UnknownApprovalError
            There is no such request.
        InvalidTransitionError
            It is final, or belongs to another server process.
        StaleDigestError
            The decision's digest is not that of the stored call.
        InvalidDecisionError, ToolArgumentsError, ToolCallRejectedError
            The edited arguments are invalid, or a rule written meanwhile denies the call.
        LockedError
            The site's administrator has disabled grants or editing.
        StorageError
            The decision could not be stored, and has no effect. A rejection in a user's server takes effect anyway.
        """
        reviewer.check(self.decide_with)
        self._check_features(verdict)
        if verdict.arguments is not None:
            check_arguments(verdict.arguments)
        request = await self._approvals.find(request_id)
        decided = request.decide(verdict.by(reviewer, at=self._clock.now()))
        await self._check_waiting(request)
        if verdict.arguments is not None:
            await self._recheck(decided)
        elif verdict.answer.allows:
            self._check_rules(decided)
        decided = self._requests.as_running(decided, at=self._clock.now())
        grant = await self._grants.give(decided, verdict.grant, trust_key=self._requests.trust_key(request_id))
        if grant is None or decided.decision is None:
            is_rejected = decided.status is Status.REJECTED
            write = self._approvals.reject if is_rejected else self._requests.write
            await write(request, decided)
            return decided
        decided = replace(decided, decision=replace(decided.decision, grant=grant.use))
        await self._requests.write(request, decided, grant=grant)
        await self._settlement.settle(grant)
        return decided

    async def settle_by_rules(self, rules: Sequence[Rule], *, reviewer: Reviewer) -> None:
        """Decide pending requests by new rules; see `Settlement.settle_by_rules`.

        Parameters
        ----------
        rules : sequence of Rule
            The new rules.
        reviewer : Reviewer
            Their author.

        Raises
        ------
        NeedsPersonError
            Only people may decide, and the author is not one.
        """
        reviewer.check(self.decide_with)
        await self._settlement.settle_by_rules(rules, reviewer=reviewer)

    def _check_features(self, verdict: Verdict) -> None:
        """Reject an answer that uses a feature disabled by the site."""
        if verdict.arguments is not None:
            self._policies.site.check(Feature.EDIT)
        if verdict.answer is Answer.ALLOW_ALWAYS:
            self._policies.site.check(Feature.GRANTS)

    async def decide_all(
        self, verdicts: Sequence[tuple[str, Verdict]], *, reviewer: Reviewer
    ) -> tuple[ApprovalRequest | AgentBoxError, ...]:
        """Apply a person's decisions on several requests, each as `decide` does; an error in one stops no other.

        They are concurrent, so that the store can group them into few commits; several decisions on one request are
        applied in order.

        Parameters
        ----------
        verdicts : sequence of (str, Verdict)
            The id and the decision of each request.
        reviewer : Reviewer
            Who decided.

        Returns
        -------
        tuple of ApprovalRequest or AgentBoxError
            For each decision, in order, the decided request or the error that `decide` raised.
        """
        turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

        async def take(request_id: str, verdict: Verdict) -> ApprovalRequest | AgentBoxError:
            async with turns[request_id]:
                try:
                    return await self.decide(request_id, verdict, reviewer=reviewer)
                except AgentBoxError as error:
                    return error

        return tuple(await asyncio.gather(*(take(request_id, verdict) for request_id, verdict in verdicts)))

    async def endorse(self, request_id: str, verdict: Verdict, *, reviewer: Reviewer) -> ApprovalRequest:
        """Add one of several required approvals; on return, it is on disk.

        Raises
        ------
        NeedsPersonError, UnknownApprovalError, InvalidTransitionError, StaleDigestError, InvalidDecisionError
            As for `decide`; also if that person has already approved it.
        StorageError
            The vote could not be stored, and has no effect.
        """
        reviewer.check(self.decide_with)
        await self._check_waiting(await self._approvals.find(request_id))
        vote = verdict.by(reviewer, at=self._clock.now())
        return await asyncio.shield(self._change_waiting(request_id, lambda request: request.endorse(vote)))

    async def extend(self, request_id: str, *, reviewer: Reviewer) -> ApprovalRequest:
        """Extend a pending request's waiting time by that of a new request, up to the maximum.

        A request without a limit, or already at the maximum, is unchanged.

        Raises
        ------
        NeedsPersonError
            Only people may decide, and the reviewer is not one.
        UnknownApprovalError
            There is no such request.
        InvalidTransitionError
            It is final, or belongs to another server process.
        StorageError
            The new time could not be stored, and has no effect.
        """
        reviewer.check(self.decide_with)
        request = await self._approvals.find(request_id)
        await self._check_waiting(request)
        until = self._waiting_times.extended_end(request, now=self._clock.now())
        if request.expires_at is None or until <= request.expires_at:
            return request
        return await asyncio.shield(
            self._change_waiting(request_id, lambda request: request.extend(until, by=reviewer.name))
        )

    async def _check_waiting(self, request: ApprovalRequest) -> None:
        """Raise an error if a request is not this server's, or has expired."""
        if request.status is Status.PENDING and request.id not in self._requests:
            raise InvalidTransitionError(
                f"request `{request.id}` belongs to another Jupyter server: decide it there", request_id=request.id
            )
        if request.is_over(self._clock.now()):
            await self._approvals.lapse(request.id, Lapse.TIMED_OUT)
            raise InvalidTransitionError(f"request `{request.id}` has expired", request_id=request.id)

    async def _change_waiting(
        self, request_id: str, change: Callable[[ApprovalRequest], ApprovalRequest]
    ) -> ApprovalRequest:
        async with self._requests.turn(request_id):
            before = await self._approvals.find(request_id)
            after = change(before)
            if not await self._requests.try_write(before, after):
                raise await self._requests.changed_meanwhile(before)
            if self._requests.get(request_id) is before:  # otherwise it was decided at the same moment
                self._requests.apply(after)
            return after

    async def _recheck(self, request: ApprovalRequest) -> None:
        call = request.effective_call
        await self._checker.check(request.tool, call.arguments)
        evaluation = self._policies.evaluate(call, request.tool)
        if evaluation.effect is Effect.DENY:
            raise ToolCallRejectedError(
                f"a rule denies `{call.qualified_name}` with these arguments: {evaluation.rule}",
                request_id=request.id,
                reason=str(evaluation.rule),
            )
        _check_approvers(request, evaluation)

    def _check_rules(self, request: ApprovalRequest) -> None:
        """Reject what a rule written while the request was pending denies; grants are not such rules."""
        evaluation = self._policies.evaluate(request.call, request.tool)
        rule = evaluation.rule
        if evaluation.effect is Effect.DENY and rule is not None and rule.layer.value in ("site", "user"):
            raise ToolCallRejectedError(
                f"a rule denies `{request.call.qualified_name}` by now: {rule.reason or rule}",
                request_id=request.id,
                reason=rule.reason or str(rule),
            )
        _check_approvers(request, evaluation)


def _check_approvers(request: ApprovalRequest, evaluation: Evaluation) -> None:
    """Refuse a user's approval of a call that a group has to approve by now, or with the edited arguments.

    In the Hub service, requests that have approvers come here with the last of their answers.
    """
    rule = evaluation.rule
    if rule is None or rule.approvers is None or needs_approvers(request.evaluation):
        return
    reason = f"members of `{rule.approvers.group}` have to approve it"
    raise ToolCallRejectedError(
        f"you cannot allow `{request.call.qualified_name}` like this: {reason}. Reject it, and run the code again to"
        " ask them.",
        request_id=request.id,
        reason=reason,
    )
