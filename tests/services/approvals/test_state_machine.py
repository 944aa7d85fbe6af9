"""The approval broker under everything that can happen to it, in any order and at once.

Hypothesis invents the histories; the store takes a turn of the event loop before and after each write, so that a
decision, a withdrawal and a timer can meet in the middle of one another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, OutcomeState, Status
from jupyter_agentbox.core.calls import Origin, ToolCall
from jupyter_agentbox.core.tools import ToolResult
from jupyter_agentbox.exceptions import (
    AgentBoxError,
    ApprovalCancelledError,
    ApprovalError,
    ApprovalExpiredError,
    StorageError,
    ToolArgumentsError,
    ToolCallInterruptedError,
    ToolCallRejectedError,
)
from jupyter_agentbox.services.approvals.verdicts import Verdict
from jupyter_agentbox.testing import MemoryApprovalStore
from tests.samples import ADA
from tests.services.conftest import Services

T = TypeVar("T")

#: Enough turns of the event loop for everything that can go on by itself to have gone on.
SETTLED = 60

#: What a call that was not approved raises, by what became of its request.
REFUSALS = {
    Status.REJECTED: ToolCallRejectedError,
    Status.EXPIRED: ApprovalExpiredError,
    Status.CANCELLED: asyncio.CancelledError,
    Status.ORPHANED: ApprovalCancelledError,
}

kernels = st.sampled_from(["k1", "k2"])
answers = st.sampled_from([Answer.ALLOW_ONCE, Answer.REJECT_ONCE])
edits = st.sampled_from([None, {"id": -1}, {"id": "no number"}])


class Asked:
    """One call in its task."""

    def __init__(self, number: int, kernel_id: str) -> None:
        self.call = ToolCall(
            server="shop", tool="delete_order", arguments={"id": number}, origin=Origin(kernel_id=kernel_id)
        )
        self.task: asyncio.Task[ToolResult] | None = None
        self.request_id: str | None = None
        self.tool: asyncio.Future[Any] | None = None
        self.runs = 0
        self.withdrawn = False
        self.store_failed = False


class Broker(RuleBasedStateMachine):
    """The services on fakes, driven from outside."""

    asked = Bundle("asked")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.store = MemoryApprovalStore(turns=1)
        self.services = Services(store=self.store)
        self.services.tools.tools["shop.delete_order"] = self.run_tool
        self.all: list[Asked] = []

    def teardown(self) -> None:
        self.store.failure = None
        for asked in self.all:
            assert asked.task is not None
            asked.task.cancel()
        self.run(asyncio.gather(*(asked.task for asked in self.all if asked.task), return_exceptions=True))
        self.run(self.services.approvals.recorded())
        self.loop.close()

    def run(self, work: Coroutine[Any, Any, T] | asyncio.Future[T]) -> T:
        async def bounded() -> T:
            async with asyncio.timeout(60):
                return await work

        return self.loop.run_until_complete(bounded())

    def settle(self) -> None:
        async def turns() -> None:
            for _ in range(SETTLED):
                await asyncio.sleep(0)

        self.run(turns())

    async def run_tool(self, call: ToolCall, _report: object) -> Any:
        """The tool: what it may rely on is on disk when it starts."""
        stored = [
            request
            for request in self.stored().values()
            if request.effective_call.with_arguments({}) == call.with_arguments({})
            and request.effective_call == call
            and request.status is Status.APPROVED
            and request.outcome_state in (None, OutcomeState.RUNNING)
        ]
        asked = [asked for asked in self.all if asked.request_id in {request.id for request in stored}]
        mine = [one for one in asked if one.tool is None]
        assert mine, f"{call} ran without a stored decision, or twice"
        mine[0].runs += 1
        mine[0].tool = self.loop.create_future()
        return await mine[0].tool

    def stored(self) -> dict[str, ApprovalRequest]:
        return {request.id: request for request in self.store.writes}

    def request_of(self, asked: Asked) -> ApprovalRequest | None:
        return self.stored().get(asked.request_id) if asked.request_id else None

    # What happens

    @rule(target=asked, kernel_id=kernels)
    def ask(self, kernel_id: str) -> Asked:
        asked = Asked(len(self.all), kernel_id)

        def waiting(request: ApprovalRequest) -> None:
            asked.request_id = request.id

        asked.task = self.loop.create_task(
            self.services.calls.run(asked.call, on_waiting=waiting, on_running=lambda _request: None)
        )
        self.all.append(asked)
        self.settle()
        return asked

    @rule(asked=asked, answer=answers, edit=edits, right=st.booleans())
    def decide(self, asked: Asked, answer: Answer, edit: dict[str, Any] | None, right: bool) -> None:
        self.check_decision(self.run(self.decision(asked, answer, edit, right=right)), answer, edit, right)
        self.settle()

    @rule(asked=asked, several=st.lists(answers, min_size=2, max_size=4), lapse=st.sampled_from(["", "time", "task"]))
    def decide_at_once(self, asked: Asked, several: list[Answer], lapse: str) -> None:
        before = self.request_of(asked)
        work = [self.decision(asked, answer, None, right=True) for answer in several]
        if lapse == "time":
            self.services.clock.advance(601)
            work.append(self.services.approvals.expire_due())  # type: ignore[arg-type]  # its result is not looked at
        tasks = [self.loop.create_task(one) for one in work]
        if lapse == "task":
            self.cancel(asked)
        results = self.run(asyncio.gather(*tasks, return_exceptions=True))[: len(several)]
        self.settle()

        winners = [result for result in results if isinstance(result, ApprovalRequest)]
        assert len(winners) <= 1
        if before is None or before.status.is_final or self.store.failure:
            assert winners == []

    @rule(asked=asked, answer=answers, turns=st.integers(0, 3))
    def decide_and_hang_up(self, asked: Asked, answer: Answer, turns: int) -> None:
        """A person's browser closes while its decision is being kept."""
        task = self.loop.create_task(self.decision(asked, answer, None, right=True))

        async def hang_up() -> None:
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

        self.run(hang_up())
        self.settle()

    @rule(asked=asked)
    def withdraw(self, asked: Asked) -> None:
        self.cancel(asked)
        self.settle()

    @rule(kernel_id=kernels, turns=st.integers(0, 4))
    def ask_and_withdraw(self, kernel_id: str, turns: int) -> None:
        """A cell is interrupted while its request is being kept."""
        asked = Asked(len(self.all), kernel_id)
        asked.task = self.loop.create_task(
            self.services.calls.run(
                asked.call,
                on_waiting=lambda request: setattr(asked, "request_id", request.id),
                on_running=lambda _request: None,
            )
        )
        self.all.append(asked)

        async def some() -> None:
            for _ in range(turns):
                await asyncio.sleep(0)

        self.run(some())
        self.cancel(asked)
        self.settle()

    @rule(seconds=st.sampled_from([1, 300, 600]))
    def time_passes(self, seconds: int) -> None:
        self.services.clock.advance(seconds)
        with suppress(StorageError):
            self.run(self.services.approvals.expire_due())
        self.settle()

    @rule(kernel_id=st.none() | kernels)
    def kernel_dies(self, kernel_id: str | None) -> None:
        self.run(self.services.approvals.orphan(kernel_id))
        self.settle()
        for asked in self.all:
            request = self.request_of(asked)
            if request is not None and kernel_id in (None, request.call.origin.kernel_id) and not asked.store_failed:
                assert request.status is not Status.PENDING

    @precondition(lambda self: any(asked.tool and not asked.tool.done() for asked in self.all))
    @rule(data=st.data(), end=st.sampled_from(["value", "error", "crash", "bug"]))
    def tool_ends(self, data: st.DataObject, end: str) -> None:
        running = [asked for asked in self.all if asked.tool and not asked.tool.done()]
        tool = data.draw(st.sampled_from(running)).tool
        assert tool is not None
        if end == "value":
            tool.set_result({"deleted": 1})
        elif end == "error":
            tool.set_result(ToolResult(is_error=True))
        else:
            tool.set_exception(ToolCallInterruptedError("gone") if end == "crash" else ZeroDivisionError())
        self.settle()

    @rule(broken=st.booleans())
    def store_breaks(self, broken: bool) -> None:
        self.store.failure = StorageError("the disk is full") if broken else None
        if broken:
            for asked in self.all:
                asked.store_failed = True

    # What always holds

    @invariant()
    def a_request_has_one_final_status_and_one_decision(self) -> None:
        last: dict[str, ApprovalRequest] = {}
        for request in self.store.writes:
            before = last.get(request.id)
            if before is not None and before.status.is_final:
                assert (before.status, before.decision) == (request.status, request.decision)
            if before is not None and before.outcome_state not in (None, OutcomeState.RUNNING):
                raise AssertionError(f"{request.id} was written after its end")
            last[request.id] = request

    @invariant()
    def no_call_runs_twice_or_without_approval(self) -> None:
        for asked in self.all:
            request = self.request_of(asked)
            assert asked.runs <= 1
            assert asked.runs == 0 or (request is not None and request.status is Status.APPROVED)

    @invariant()
    def what_the_manager_says_is_what_is_stored(self) -> None:
        if self.store.failure is None:
            for id in self.stored():
                found = self.run(self.services.approvals.get(id))  # which closes what nobody waits for
                assert found == self.stored()[id]

    @invariant()
    def what_was_announced_last_is_what_is_stored(self) -> None:
        announced = {request.id: request for request in self.services.announcer.approvals}
        assert announced == self.stored()

    @invariant()
    def nobody_waits_for_what_is_over(self) -> None:
        for asked in self.all:
            request = self.request_of(asked)
            assert asked.task is not None
            if request is None or asked.task.done():
                continue
            if request.status is not Status.PENDING:
                assert asked.tool is not None
                assert not asked.tool.done()

    @invariant()
    def nothing_is_pending_that_nobody_waits_for(self) -> None:
        if any(asked.store_failed for asked in self.all):
            return
        waiting = {asked.call.arguments["id"] for asked in self.all if asked.task and not asked.task.done()}
        for request in self.stored().values():
            assert request.status is not Status.PENDING or request.call.arguments["id"] in waiting

    @invariant()
    def a_call_ends_as_its_request_says(self) -> None:
        for asked in self.all:
            request = self.request_of(asked)
            if request is None or asked.task is None or not asked.task.done() or asked.store_failed:
                continue
            if asked.task.cancelled():
                assert asked.withdrawn
            elif request.status is Status.APPROVED:
                assert asked.runs == 1
                assert request.outcome_state not in (None, OutcomeState.RUNNING)
            else:
                assert isinstance(asked.task.exception(), REFUSALS[request.status])

    # How it is done

    async def decision(
        self, asked: Asked, answer: Answer, edit: dict[str, Any] | None, *, right: bool
    ) -> ApprovalRequest | AgentBoxError:
        verdict = Verdict(
            answer=answer,
            digest=asked.call.digest if right else "0" * 64,
            arguments=edit and {**edit, "n": asked.call.arguments["id"]},
        )
        try:
            return await self.services.decisions.decide(asked.request_id or "none", verdict, reviewer=ADA)
        except AgentBoxError as error:
            return error

    def check_decision(
        self,
        result: ApprovalRequest | AgentBoxError,
        answer: Answer,
        edit: dict[str, Any] | None,
        right: bool,
    ) -> None:
        if isinstance(result, ApprovalRequest):
            assert right
            assert self.store.failure is None
            assert edit is None or (answer.allows and edit["id"] == -1)
            assert self.store.writes[-1] == result
        else:
            assert isinstance(result, ApprovalError | ToolArgumentsError | StorageError)

    def cancel(self, asked: Asked) -> None:
        assert asked.task is not None
        if not asked.task.done():
            asked.withdrawn = True
            asked.task.cancel()


def test_the_broker_keeps_its_promises_whatever_happens() -> None:
    run_state_machine_as_test(
        Broker,
        settings=settings(
            max_examples=60, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
