"""The approval broker: opens requests, takes decisions, lets them lapse, and wakes who waits."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, TypeAlias
from weakref import WeakValueDictionary

from jupyter_agentbox.background import in_background
from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, Decision, Lapse, Outcome, OutcomeState, Status
from jupyter_agentbox.core.calls import JsonValue, ToolCall, check_arguments
from jupyter_agentbox.core.grants import Grant, GrantTerms
from jupyter_agentbox.core.policy import Effect, Evaluation
from jupyter_agentbox.core.ports import (
    Announcer,
    ApprovalPage,
    ApprovalQuery,
    ApprovalStore,
    ArgumentChecker,
    Clock,
    Ids,
)
from jupyter_agentbox.core.questions import QuestionRecord
from jupyter_agentbox.core.reviewers import DecideWith, Reviewer
from jupyter_agentbox.core.site_policy import Feature
from jupyter_agentbox.core.tools import Activity, LogMessage, Progress, ToolDescription
from jupyter_agentbox.exceptions import (
    AgentBoxError,
    ApprovalCancelledError,
    InvalidTransitionError,
    StorageError,
    ToolCallRejectedError,
    TooManyRequestsError,
    UnknownApprovalError,
)
from jupyter_agentbox.services.grants.manager import GrantManager, GrantSpentError
from jupyter_agentbox.services.policies.manager import PolicyManager

log = logging.getLogger(__name__)

#: What a request is given that a rule lets wait for a time, where others wait for ever.
_EXTENSION: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a person sends: their answer, without who and when, which the server knows.

    Parameters
    ----------
    answer : Answer
        One of the four.
    digest : str
        The digest of the call that the person saw.
    reason : str
        Why. The code that called is told why it was rejected.
    tell : bool
        Whether it is told the reason of an answer that allows, too.
    arguments : dict or None
        Edited arguments.
    grant : GrantTerms or None
        Of a lasting answer: what it is for.
    """

    answer: Answer
    digest: str
    reason: str = ""
    tell: bool = False
    arguments: Mapping[str, JsonValue] | None = None
    grant: GrantTerms | None = None

    def by(self, reviewer: Reviewer, *, at: datetime) -> Decision:
        """Return the answer with who gave it, and when."""
        return Decision(
            answer=self.answer,
            digest=self.digest,
            reviewer=reviewer,
            decided_at=at,
            reason=self.reason,
            tell=self.tell,
            arguments=None if self.arguments is None else dict(self.arguments),
        )


#: An answer, and whose it is.
Answered: TypeAlias = tuple[Verdict, Reviewer]


class ApprovalManager:
    """Owns the requests of this server process.

    The store is the truth: a change counts when the store took it, by compare-and-set, and only then is it announced
    and acted on. Requests that are pending or running are held in memory as well, so that waiting costs no query.

    Parameters
    ----------
    store : ApprovalStore
        Where requests are kept.
    announcer : Announcer
        Who tells the pages.
    clock : Clock
        The time.
    ids : Ids
        New request ids.
    timeout : timedelta or None
        How long a request waits for a person; ``None`` for ever.
    policies : PolicyManager
        Has the last word on edited arguments.
    grants : GrantManager
        Keeps what a person answered for good.
    checker : ArgumentChecker
        Validates edited arguments.
    most_pending : int or None
        The largest number of pending requests per kernel; ``None`` for no limit.
    decide_with : DecideWith
        Whose answers count.
    longest_wait : timedelta or None
        How long a request waits at most, however often a person asks that it wait longer; ``None`` for no bound.
    bounds_all : bool
        Whether no request waits longer than that, whatever `timeout` and rules say.
    keeps : callable
        Whether a pending request of a process that is gone goes on waiting here, until its caller is back.

    Attributes
    ----------
    decide_with : DecideWith
        What was given.
    """

    def __init__(
        self,
        *,
        store: ApprovalStore,
        announcer: Announcer,
        clock: Clock,
        ids: Ids,
        timeout: timedelta | None,
        policies: PolicyManager,
        grants: GrantManager,
        checker: ArgumentChecker,
        most_pending: int | None = None,
        decide_with: DecideWith = DecideWith.ANY,
        longest_wait: timedelta | None = None,
        bounds_all: bool = False,
        keeps: Callable[[ApprovalRequest], bool] = lambda _: False,
    ) -> None:
        self._longest_wait = longest_wait
        self._keeps = keeps
        self._kept: set[str] = set()
        self._left: dict[str, ApprovalRequest] = {}
        self._looked = asyncio.Event()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._bounds_all = bounds_all
        self._store = store
        self._announcer = announcer
        self._clock = clock
        self._ids = ids
        self._timeout = timeout
        self._policies = policies
        self._grants = grants
        self._trust_keys: dict[str, str] = {}
        self._checker = checker
        self._most_pending = most_pending
        self.decide_with = decide_with
        self._waiting: Counter[str | None] = Counter()
        self._live: dict[str, ApprovalRequest] = {}
        self._settled: dict[str, asyncio.Future[ApprovalRequest]] = {}
        self._activity: dict[str, Activity] = {}
        self._recordings: set[asyncio.Future[None]] = set()
        self._recovery: asyncio.Future[None] | None = None
        self._looking: asyncio.Task[None] | None = None

    async def recover(self) -> None:
        """Close, once, the requests of server processes that are gone: pending ones orphaned, running ones failed.

        Everything that reads the store waits for this, so that nobody is shown a request that nobody waits for.

        Raises
        ------
        StorageError
            If the store cannot be read or written; the next use tries again.
        """
        if self._recovery is None or _has_failed(self._recovery):
            self._recovery = asyncio.ensure_future(self._close_abandoned())
            self._recovery.add_done_callback(_has_failed)  # looks at the error, should nobody be left who waits
        await asyncio.shield(self._recovery)

    def look_again(self, seconds: float, is_due: Callable[[], bool] = lambda: True) -> None:
        """Look every so many seconds, if it is due, whether a server is gone by now: a start cannot tell everywhere."""
        work = self._look_again(seconds, is_due)
        self._looking = in_background(work, what="looking for what servers left that are gone")

    def stop_looking(self) -> None:
        """Look no more."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    async def _look_again(self, seconds: float, is_due: Callable[[], bool]) -> None:
        while True:
            await asyncio.sleep(seconds)
            if not is_due():
                continue
            try:
                await self._close_abandoned()
            except StorageError as error:
                log.warning("what servers left that are gone cannot be looked for: %s", error)
            self._looked.set()
            self._looked = asyncio.Event()

    async def _close_abandoned(self) -> None:
        """Close what is this process's by now; what the store does not take is left for the next look."""
        self._left.update({request.id: request for request in await self._store.adopt_abandoned()})
        for request in list(self._left.values()):
            if self._left.pop(request.id, None) is None:
                continue  # another look closes it
            try:
                await self._close_left(request)
            except (StorageError, asyncio.CancelledError):
                self._left[request.id] = request
                raise
            except (InvalidTransitionError, UnknownApprovalError) as error:
                log.info("what a server left that is gone was closed by another: %s", error)

    async def _close_left(self, request: ApprovalRequest) -> None:
        if request.status is Status.PENDING and not self._is_over(request) and self._keeps(request):
            self._keep(request)
        elif request.status is Status.PENDING:
            await self._write(request, request.lapse(Lapse.KERNEL_LOST, at=self._clock.now()))
        else:
            error = "the Jupyter server stopped while the call was running; it may have had an effect"
            await self._write(request, request.with_outcome(self._outcome(OutcomeState.FAILED, request, error)))

    def _keep(self, request: ApprovalRequest) -> None:
        """Let a request that another process opened wait here."""
        self._waiting[request.call.origin.kernel_id] += 1
        self._live[request.id] = request
        self._begin_waiting(request)
        self._kept.add(request.id)
        self._announcer.approval_changed(request)

    def _begin_waiting(self, request: ApprovalRequest) -> None:
        self._settled[request.id] = asyncio.get_running_loop().create_future()
        self._trust_keys[request.id] = self._grants.trust_key(request.call.server)

    @property
    def kept(self) -> tuple[ApprovalRequest, ...]:
        """What a process left that is gone, and nobody has come back for."""
        return tuple(self._live[request_id] for request_id in self._kept if request_id in self._live)

    async def take_kept(self, request_id: str) -> ApprovalRequest:
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
            looked = self._looked
            request = await self.get(request_id)
            if request_id in self._kept:
                self._kept.discard(request_id)
                return self._live[request_id]
            if not request.is_open:
                return request
            if request_id in self._live or self._looking is None:
                raise UnknownApprovalError(f"somebody has request `{request_id}`", request_id=request_id)
            await looked.wait()

    async def give_up(self, request_id: str) -> None:
        """Close a kept request that nobody has come back for; one that somebody has by now stays as it is.

        Raises
        ------
        StorageError
        """
        request = self._live.get(request_id)
        if request is None or request_id not in self._kept:
            return
        self._kept.discard(request_id)
        try:
            if request.status is Status.PENDING:
                await self._orphan(request)
            if self.running(request_id) is not None:  # it was approved, perhaps in this moment, and nobody will run it
                await self.record(request_id, OutcomeState.CANCELLED)
        finally:
            if self.holds(request_id):  # it could not be kept: the next time, perhaps
                self._kept.add(request_id)

    def leave_waiting(self) -> frozenset[str]:
        """Let go of what waits and another process can keep, and return the ids. It stays pending in the store."""
        left = [one for one in self._live.values() if one.status is Status.PENDING and self._keeps(one)]
        for request in left:
            self.abandon(request.id)
        return frozenset(request.id for request in left)

    def now(self) -> datetime:
        """Return the present time, as the times of requests are told."""
        return self._clock.now()

    async def open(
        self,
        call: ToolCall,
        tool: ToolDescription,
        evaluation: Evaluation,
        answered: Answered | None = None,
        *,
        asked_at: datetime | None = None,
    ) -> ApprovalRequest:
        """Keep a new request, then announce it. One that is allowed is kept as running: its call follows at once.

        Parameters
        ----------
        call, tool, evaluation
            What is asked for, and what the policy says.
        answered : tuple of Verdict and Reviewer, optional
            The answer, if there is one before anybody is asked. It never waits for a person then.
        asked_at : datetime, optional
            When the call came, by `now`. Requests that wait are in the order in which their calls came, although one
            may be looked at for longer than the next.

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
            expires_at=self._end_of_waiting(evaluation, created_at=created_at, now=now),
        )
        if answered is not None:
            verdict, reviewer = answered
            request = request.decide(verdict.by(reviewer, at=now))
        request = self._running_if_approved(request)
        with self._counted(request):
            try:
                is_kept = await self._store.add(request)
            except asyncio.CancelledError:
                await asyncio.shield(self._take_back(request))
                raise
            self._count_use(request, is_kept=is_kept)
            if request.status is not Status.REJECTED:
                self._live[request.id] = request
            if request.status is Status.PENDING:
                self._begin_waiting(request)
        self._announcer.approval_changed(request)
        return request

    def _end_of_waiting(self, evaluation: Evaluation, *, created_at: datetime, now: datetime) -> datetime | None:
        rule = evaluation.rule
        timeout = timedelta(seconds=rule.timeout) if rule is not None and rule.timeout is not None else self._timeout
        ends = [now + timeout] if timeout is not None else []
        if self._bounds_all and self._longest_wait is not None:
            ends.append(created_at + self._longest_wait)
        return min(ends, default=None)

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
        if request.status is Status.PENDING:
            withdrawn = request.lapse(Lapse.WITHDRAWN, at=self._clock.now())
        else:
            withdrawn = request.with_outcome(self._outcome(OutcomeState.CANCELLED, request, ""))
        try:
            # The store keeps the order: this is written after the request, or not at all.
            if await self._store.replace_if(withdrawn, status=request.status, outcome=request.outcome_state):
                self._announcer.approval_changed(withdrawn)
        except StorageError:
            log.exception("the withdrawal of request %s could not be stored", request.id)

    @contextmanager
    def _counted(self, request: ApprovalRequest) -> Iterator[None]:
        """Count a request, from before it is in the store; it counts until it is no longer pending."""
        kernel_id = request.call.origin.kernel_id
        if request.status is not Status.PENDING:
            yield
            return
        if self._most_pending is not None and self._waiting[kernel_id] >= self._most_pending:
            raise TooManyRequestsError(
                f"this kernel already has {self._most_pending} pending requests, the most that are allowed."
                f" `{request.call.qualified_name}` did not run. Approve or reject some requests first."
            )
        self._waiting[kernel_id] += 1
        try:
            yield
        except BaseException:
            self._uncount(kernel_id)
            raise

    def _uncount(self, kernel_id: str | None) -> None:
        self._waiting[kernel_id] -= 1
        if self._waiting[kernel_id] <= 0:
            del self._waiting[kernel_id]

    async def settled(self, request_id: str) -> ApprovalRequest:
        """Wait until the request is no longer pending and return it. Lets it lapse when its time is over.

        Raises
        ------
        ApprovalCancelledError
            It was lost from the store, or is another server's by now.
        UnknownApprovalError, StorageError
        """
        settled = self._settled.get(request_id)
        if settled is None:
            return await self._get(request_id)
        while not settled.done():
            request = self._live[request_id]
            if not (await asyncio.wait([settled], timeout=self._seconds_left(request)))[0]:
                await self._expire(request)
        return settled.result()

    def record_meanwhile(self, recording: Coroutine[object, object, None]) -> None:
        """Let the end of a call be kept while others go on. Whoever reads waits for it."""
        task = in_background(recording, what="recording how a call ended")
        self._recordings.add(task)
        task.add_done_callback(self._recordings.discard)

    async def recorded(self) -> None:
        """Wait until the ends that are being kept are kept."""
        if self._recordings:
            await asyncio.wait(set(self._recordings))

    async def get(self, request_id: str) -> ApprovalRequest:
        """Return a request.

        Raises
        ------
        UnknownApprovalError, StorageError
        """
        await self.recorded()
        return await self._get(request_id)

    async def _get(self, request_id: str) -> ApprovalRequest:
        live = self._live.get(request_id)
        if live is not None:
            return live
        await self.recover()
        return await self._store.get(request_id)

    async def list(self, query: ApprovalQuery) -> ApprovalPage:
        """Return a page of requests, newest first.

        Raises
        ------
        ValueError
            If the cursor is none of ours.
        StorageError
        """
        await self.recorded()
        await self.recover()
        page = await self._store.list(query)
        return replace(page, approvals=tuple(self._as_asked(request) for request in page.approvals))

    def _as_asked(self, request: ApprovalRequest) -> ApprovalRequest:
        """Return a listed request with the call that a person decides on: secrets are not in the store.

        Of long arguments, which are not in lists, `get` gives all.
        """
        live = self._live.get(request.id)
        return request if live is None or request.call.omitted is not None else replace(request, call=live.call)

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
        request = await self._get(request_id)
        decided = request.decide(verdict.by(reviewer, at=self._clock.now()))
        if request_id not in self._live:
            raise InvalidTransitionError(
                f"request `{request_id}` belongs to another Jupyter server: decide it there", request_id=request_id
            )
        if self._is_over(request):
            await self.lapse(request_id, Lapse.TIMED_OUT)
            raise InvalidTransitionError(f"request `{request_id}` has expired", request_id=request_id)
        if verdict.arguments is not None:
            await self._recheck(decided)
        elif verdict.answer.allows:
            self._check_rules(decided)
        decided = self._running_if_approved(decided)
        grant = await self._grants.give(decided, verdict.grant, trust_key=self._trust_keys.get(request_id, ""))
        if grant is None or decided.decision is None:
            await self._write(request, decided)
            return decided
        decided = replace(decided, decision=replace(decided.decision, grant=grant.use))
        await self._write(request, decided, grant=grant)
        await self._settle_waiting(grant)
        return decided

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
        await self._check_waiting(await self._get(request_id))
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
        request = await self._get(request_id)
        await self._check_waiting(request)
        until = self._latest(request)
        if request.expires_at is None or until <= request.expires_at:
            return request
        return await asyncio.shield(
            self._change_waiting(request_id, lambda request: request.extend(until, by=reviewer.name))
        )

    async def _check_waiting(self, request: ApprovalRequest) -> None:
        """Refuse a request that is not this server's, or whose time is over."""
        if request.status is Status.PENDING and request.id not in self._live:
            raise InvalidTransitionError(
                f"request `{request.id}` belongs to another Jupyter server: decide it there", request_id=request.id
            )
        if self._is_over(request):
            await self.lapse(request.id, Lapse.TIMED_OUT)
            raise InvalidTransitionError(f"request `{request.id}` has expired", request_id=request.id)

    def _latest(self, request: ApprovalRequest) -> datetime:
        until = self._clock.now() + (self._timeout or _EXTENSION)
        return until if self._longest_wait is None else min(until, request.created_at + self._longest_wait)

    def _turn(self, request_id: str) -> asyncio.Lock:
        """Return what lets changes of a pending request come one after the other: none is written over another."""
        return self._turns.setdefault(request_id, asyncio.Lock())

    async def _change_waiting(
        self, request_id: str, change: Callable[[ApprovalRequest], ApprovalRequest]
    ) -> ApprovalRequest:
        async with self._turn(request_id):
            before = await self._get(request_id)
            after = change(before)
            if not await self._store.replace_if(after, status=Status.PENDING, outcome=None):
                raise _changed(before, await self._present(before))
            if self._live.get(request_id) is before:  # else it was decided in the same moment
                self._live[request_id] = after
                self._announcer.approval_changed(after)
            return after

    async def _settle_waiting(self, grant: Grant) -> None:
        """Answer what waits and a new grant is for, as if it came now. What a rule asks about goes on waiting."""
        waiting = [request for request in self._live.values() if self._is_settled_by(grant, request)]
        await asyncio.shield(asyncio.gather(*(self._settle(request, grant) for request in waiting)))

    def _is_settled_by(self, grant: Grant, request: ApprovalRequest) -> bool:
        if request.status is not Status.PENDING or self._is_over(request):
            return False
        if grant.effect is Effect.ALLOW and request.evaluation.rule is not None:
            return False
        return self._policies.evaluate(request.call, request.tool).grant == grant.use

    async def _settle(self, request: ApprovalRequest, grant: Grant) -> None:
        now = self._clock.now()
        decision = Decision(
            answer=Answer.ALLOW_ONCE if grant.effect is Effect.ALLOW else Answer.REJECT_ONCE,
            digest=request.call.digest,
            reviewer=grant.granter,
            decided_at=now,
            reason=grant.reason,
            grant=grant.use,
        )
        decided = self._running_if_approved(request.decide(decision))
        try:
            is_settled = await self._store.replace_if(decided, status=request.status, outcome=request.outcome_state)
        except StorageError:
            log.exception("request %s could not be settled by a grant; it goes on waiting", request.id)
            return
        if is_settled:  # if not, somebody was faster, or the grant has no use left
            self._grants.used(grant.use, now)
            self._remember(decided)
            self._announcer.approval_changed(decided)

    async def lapse(self, request_id: str, lapse: Lapse) -> ApprovalRequest:
        """End a pending request without an answer.

        Raises
        ------
        UnknownApprovalError, InvalidTransitionError, StorageError
        """
        return await asyncio.shield(self._lapse(request_id, lapse))

    async def _lapse(self, request_id: str, lapse: Lapse) -> ApprovalRequest:
        async with self._turn(request_id):
            request = await self._get(request_id)
            lapsed = request.lapse(lapse, at=self._clock.now())
            await self._write_through(request, lapsed)
            return lapsed

    async def _expire(self, request: ApprovalRequest) -> None:
        if self._is_over(self._live.get(request.id, request)):  # it may have been given more time
            try:
                await self.lapse(request.id, Lapse.TIMED_OUT)
            except (InvalidTransitionError, UnknownApprovalError) as error:
                log.debug("request %s ended at the last moment: %s", request.id, error)

    async def orphan(self, kernel_id: str | None = None) -> None:
        """End the pending requests of a kernel that is gone; of all kernels if none is named."""
        lost = [
            self._orphan(request)
            for request in self._live.values()
            if request.status is Status.PENDING and kernel_id in (None, request.call.origin.kernel_id)
        ]
        await asyncio.gather(*lost)

    async def _orphan(self, request: ApprovalRequest) -> None:
        try:
            await self.lapse(request.id, Lapse.KERNEL_LOST)
        except (InvalidTransitionError, UnknownApprovalError) as error:
            log.debug("request %s ended while its kernel was stopping: %s", request.id, error)
        except StorageError:
            # The next start of a server finds it by its dead owner.
            log.exception("request %s could not be marked as orphaned", request.id)

    def abandon(self, request_id: str) -> None:
        """Let go of a request that nobody waits for and whose end could not be kept: it can be decided no more.

        The next start of a server finds it in the store and closes it.
        """
        self._forget(request_id)

    async def record(self, request_id: str, state: OutcomeState, error: str = "") -> ApprovalRequest:
        """Keep what became of an approved call. Not to be cancelled half way.

        Raises
        ------
        InvalidTransitionError
            If the call is not approved, or has ended.
        UnknownApprovalError, StorageError
        """
        request = await self._get(request_id)
        changed = request.with_outcome(self._outcome(state, request, error))
        await self._write_through(request, changed)
        return changed

    def set_progress(self, request_id: str, progress: Progress) -> None:
        """Note how far a running call is and tell the pages."""
        self._set_activity(request_id, lambda activity: replace(activity, progress=progress))

    def add_message(self, request_id: str, message: LogMessage) -> None:
        """Note what the server of a running call logs, and tell the pages."""
        self._set_activity(request_id, lambda activity: activity.with_message(message))

    def activity_of(self, request_id: str) -> Activity | None:
        """Return what was said while a call runs; ``None`` if nothing was, or it has ended."""
        return self._activity.get(request_id)

    def _set_activity(self, request_id: str, change: Callable[[Activity], Activity]) -> None:
        request = self._live.get(request_id)
        if request is not None:
            self._activity[request_id] = change(self._activity.get(request_id, Activity()))
            self._announcer.approval_changed(request)

    def running(self, request_id: str) -> ApprovalRequest | None:
        """Return a request whose call runs here; ``None`` if it does not."""
        request = self._live.get(request_id)
        return request if request is not None and request.outcome_state is OutcomeState.RUNNING else None

    async def keep_question(self, request_id: str, record: QuestionRecord) -> None:
        """Keep what the server of a running call asked, and was answered.

        Raises
        ------
        InvalidTransitionError
            The call has ended.
        StorageError
            It could not be kept.
        """
        self.note_question(request_id, record)
        request = self.running(request_id)
        is_kept = False
        try:
            is_kept = request is not None and await asyncio.shield(
                self._store.replace_if(request, status=request.status, outcome=request.outcome_state)
            )
        finally:
            if not is_kept and (present := self.running(request_id)) is not None:
                self._live[request_id] = _without_question(present, record)
        if request is None or not is_kept:
            raise InvalidTransitionError(f"the call of request `{request_id}` has ended", request_id=request_id)
        self._announcer.approval_changed(request)

    def note_question(self, request_id: str, record: QuestionRecord) -> None:
        """Remember a question that nobody answered; it is kept with the next change of the request."""
        request = self.running(request_id)
        if request is not None:
            self._live[request_id] = _with_question(request, record)

    def holds(self, request_id: str) -> bool:
        """Whether a request is open and this process's."""
        return request_id in self._live

    async def waiting(self) -> Sequence[ApprovalRequest]:
        """Return all pending requests of this process, newest first, as they stand in memory: whole, and at no query.

        Raises
        ------
        StorageError
            If it is unknown what another process left here.
        """
        await self.recover()
        waiting = [request for request in self._live.values() if request.status is Status.PENDING]
        return sorted(waiting, key=lambda request: (request.created_at, request.id), reverse=True)

    def pending_of(self, kernel_id: str) -> tuple[ApprovalRequest, ...]:
        """Return the kernel's pending requests, oldest first."""
        return tuple(
            request
            for request in self._live.values()
            if request.status is Status.PENDING and request.call.origin.kernel_id == kernel_id
        )

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

    def _is_over(self, request: ApprovalRequest) -> bool:
        if request.status is not Status.PENDING or request.expires_at is None:
            return False
        return self._clock.now() >= request.expires_at

    def _seconds_left(self, request: ApprovalRequest) -> float | None:
        if request.expires_at is None:
            return None
        return max(0.0, (request.expires_at - self._clock.now()).total_seconds())

    def _running_if_approved(self, request: ApprovalRequest) -> ApprovalRequest:
        """Say in the write that approves a request that it runs: `CallManager` calls the tool of no other."""
        if request.status is not Status.APPROVED:
            return request
        return request.with_outcome(self._outcome(OutcomeState.RUNNING, request, ""))

    def _outcome(self, state: OutcomeState, request: ApprovalRequest, error: str) -> Outcome:
        now = self._clock.now()
        started = request.outcome.started_at if request.outcome else None
        questions = request.outcome.questions if request.outcome else ()
        if state is OutcomeState.RUNNING:
            return Outcome(state=state, started_at=now)
        return Outcome(state=state, started_at=started, finished_at=now, error=error, questions=questions)

    async def _write(self, before: ApprovalRequest, after: ApprovalRequest, *, grant: Grant | None = None) -> None:
        """Store, remember and announce a change. Who asked for it may go away meanwhile; it is done as a whole."""
        await asyncio.shield(self._write_through(before, after, grant))

    async def _write_through(self, before: ApprovalRequest, after: ApprovalRequest, grant: Grant | None = None) -> None:
        if not await self._store.replace_if(after, status=before.status, outcome=before.outcome_state, grant=grant):
            raise _changed(before, await self._present(before))
        if grant is not None:
            self._grants.remember(grant)  # in the same step: should the kernel end now, it ends the grant, too
        self._remember(after)
        self._announcer.approval_changed(after)

    async def _present(self, believed: ApprovalRequest) -> ApprovalRequest:
        """Return what is stored where it is not what we believed, and believe that."""
        try:
            present = await self._store.get(believed.id)
        except UnknownApprovalError:
            self._forget(believed.id)
            raise
        if present.decision is not None and present.decision.edited_digest:
            # It was kept, though its writer does not know: what the store has of the arguments cannot run.
            self._forget(believed.id)
            return present
        present = replace(present, call=believed.call)
        self._remember(present)
        is_voted = len(present.votes) > len(believed.votes)
        if not is_voted and (present.status, present.outcome_state) == (believed.status, believed.outcome_state):
            self._forget(believed.id)  # the store does not take it from us: another server process adopted it
        return present

    def _remember(self, request: ApprovalRequest) -> None:
        known = self._live.get(request.id)
        if known is None:
            return
        if known.status is Status.PENDING and request.status is not Status.PENDING:
            self._uncount(request.call.origin.kernel_id)
            self._settled[request.id].set_result(request)
        self._live[request.id] = request
        if not request.is_open:
            self._forget(request.id)

    def _forget(self, request_id: str) -> None:
        known = self._live.pop(request_id, None)
        self._kept.discard(request_id)
        if known is not None and known.status is Status.PENDING:
            self._uncount(known.call.origin.kernel_id)
        self._activity.pop(request_id, None)
        self._trust_keys.pop(request_id, None)
        settled = self._settled.pop(request_id, None)
        if settled is not None and not settled.done():
            text = f"request `{request_id}` no longer belongs to this server; its call did not run"
            settled.set_exception(ApprovalCancelledError(text, request_id=request_id))
            settled.exception()  # looks at the error, should nobody be left who waits


def _with_question(request: ApprovalRequest, record: QuestionRecord) -> ApprovalRequest:
    """Return a request whose call runs with one question more."""
    outcome = request.outcome
    if outcome is None:
        return request
    return replace(request, outcome=replace(outcome, questions=(*outcome.questions, record)))


def _without_question(request: ApprovalRequest, record: QuestionRecord) -> ApprovalRequest:
    outcome = request.outcome
    if outcome is None:
        return request
    kept = tuple(each for each in outcome.questions if each is not record)
    return replace(request, outcome=replace(outcome, questions=kept))


def _has_failed(work: asyncio.Future[None]) -> bool:
    return work.done() and (work.cancelled() or work.exception() is not None)


def _changed(believed: ApprovalRequest, present: ApprovalRequest) -> InvalidTransitionError:
    """Return what to tell whose change came too late."""
    if present.status is not believed.status:
        text = f"is no longer {believed.status.value}: it is `{present.status.value}`"
    elif len(present.votes) > len(believed.votes):
        text = "was not changed: another person approved it at the same moment. Look at it again, then answer"
    else:
        text = f"was not changed: it is `{present.status.value}`"
    return InvalidTransitionError(f"request `{believed.id}` {text}", request_id=believed.id)
