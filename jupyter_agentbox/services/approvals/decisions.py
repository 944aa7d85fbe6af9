"""Takes what people answer: one answer or many, one person's approval of several, more time."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, Lapse, Status
from jupyter_agentbox.core.calls import check_arguments
from jupyter_agentbox.core.policy import Effect, Rule
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
    """Takes what people answer to the requests of this server process.

    Parameters
    ----------
    approvals : ApprovalManager
        Has the requests.
    clock : Clock
        The time.
    waiting_times : WaitingTimes
        How much more time a request can be given.
    policies : PolicyManager
        Has the last word on what was allowed.
    grants : GrantManager
        Keeps what a person answered for good.
    checker : ArgumentChecker
        Validates edited arguments.
    decide_with : DecideWith
        Whose answers count.

    Attributes
    ----------
    decide_with : DecideWith
        What was given.
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
        """Take a person's answer; when this returns it is on disk.

        What was allowed is kept as running, because the call follows at once.

        Raises
        ------
        NeedsPersonError
            The answer is not a person's, and only theirs count.
        UnknownApprovalError
            There is no such request.
        InvalidTransitionError
            It is final, or it belongs to another server process.
        StaleDigestError
            The person saw other arguments than the stored ones.
        InvalidDecisionError, ToolArgumentsError, ToolCallRejectedError
            The edited arguments cannot run, or a rule that was written meanwhile denies the call.
        LockedError
            The site's administrator has turned off lasting answers, or editing.
        StorageError
            The decision could not be kept, so it does not count.
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
        decided = decided.running_if_approved(at=self._clock.now())
        grant = await self._grants.give(decided, verdict.grant, trust_key=self._requests.trust_key(request_id))
        if grant is None or decided.decision is None:
            await self._requests.write(request, decided)
            return decided
        decided = replace(decided, decision=replace(decided.decision, grant=grant.use))
        await self._requests.write(request, decided, grant=grant)
        await self._settlement.settle(grant)
        return decided

    async def settle_by_rules(self, rules: Sequence[Rule], *, reviewer: Reviewer) -> None:
        """Answer what waits and new rules decide, by `Settlement.settle_by_rules`.

        Parameters
        ----------
        rules : sequence of Rule
            The rules that are new.
        reviewer : Reviewer
            Who wrote them.

        Raises
        ------
        NeedsPersonError
            They are not a person, and only a person's answers count.
        """
        reviewer.check(self.decide_with)
        await self._settlement.settle_by_rules(rules, reviewer=reviewer)

    def _check_features(self, verdict: Verdict) -> None:
        """Refuse an answer of a kind that the site has turned off."""
        if verdict.arguments is not None:
            self._policies.site.check(Feature.EDIT)
        if verdict.answer is Answer.ALLOW_ALWAYS:
            self._policies.site.check(Feature.GRANTS)

    async def decide_all(
        self, verdicts: Sequence[tuple[str, Verdict]], *, reviewer: Reviewer
    ) -> tuple[ApprovalRequest | AgentBoxError, ...]:
        """Take a person's answers to several requests, each as `decide` does; one that is refused stops no other.

        They are taken together, so that the store can keep them in few commits; a request that is named more than once
        is answered in the order of the answers.

        Parameters
        ----------
        verdicts : sequence of (str, Verdict)
            The id of each request, and its answer.
        reviewer : Reviewer
            Whose answers they are.

        Returns
        -------
        tuple of ApprovalRequest or AgentBoxError
            For each answer, in order, the decided request or what `decide` raised.
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
        """Take the approval of one person of several that are needed; when this returns it is on disk.

        Raises
        ------
        NeedsPersonError, UnknownApprovalError, InvalidTransitionError, StaleDigestError, InvalidDecisionError
            As for `decide`; also if that person has approved it before.
        StorageError
            The vote could not be kept, so it does not count.
        """
        reviewer.check(self.decide_with)
        await self._check_waiting(await self._approvals.find(request_id))
        vote = verdict.by(reviewer, at=self._clock.now())
        return await asyncio.shield(self._change_waiting(request_id, lambda request: request.endorse(vote)))

    async def extend(self, request_id: str, *, reviewer: Reviewer) -> ApprovalRequest:
        """Let a pending request wait longer, by the time that is left to a new one, up to the longest wait.

        One that waits for ever, or has the longest time already, stays as it is.

        Raises
        ------
        NeedsPersonError
            Who asks is not a person, and only their answers count.
        UnknownApprovalError
            There is no such request.
        InvalidTransitionError
            It is final, or it belongs to another server process.
        StorageError
            The new time could not be kept, so it does not count.
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
        """Refuse a request that is not this server's, or whose time is over."""
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
            if self._requests.get(request_id) is before:  # else it was decided in the same moment
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

    def _check_rules(self, request: ApprovalRequest) -> None:
        """Refuse what a rule denies that somebody wrote while the request waited; a lasting answer is no such rule."""
        evaluation = self._policies.evaluate(request.call, request.tool)
        rule = evaluation.rule
        if evaluation.effect is Effect.DENY and rule is not None and rule.layer.value in ("site", "user"):
            raise ToolCallRejectedError(
                f"a rule denies `{request.call.qualified_name}` by now: {rule.reason or rule}",
                request_id=request.id,
                reason=rule.reason or str(rule),
            )
