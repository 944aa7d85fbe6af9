"""A call, the whole way, on fakes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, OutcomeState, Status
from jupyter_agentbox.core.calls import JsonObject, Origin, ToolCall
from jupyter_agentbox.core.hub_reviews import HubReview
from jupyter_agentbox.core.policy import Effect, Layer, Policy, Rule
from jupyter_agentbox.core.ports import ApprovalQuery
from jupyter_agentbox.core.tools import Progress, ToolDescription, ToolResult
from jupyter_agentbox.exceptions import (
    AgentBoxError,
    ApprovalCancelledError,
    ApprovalExpiredError,
    InvalidTransitionError,
    StorageError,
    ToolArgumentsError,
    ToolCallInterruptedError,
    ToolCallRejectedError,
    ToolServerError,
    TooManyRequestsError,
    UnknownApprovalError,
    UnknownToolError,
)
from jupyter_agentbox.services.calls.manager import FinishedCall
from jupyter_agentbox.testing import MemoryApprovalStore
from tests.services.conftest import TIMEOUT, Services, a_call


async def delete_order(call: ToolCall, report: Any) -> Any:
    report(Progress(progress=1, total=2))
    return {"deleted": call.arguments["id"]}


class Asked:
    """A call that runs in a task, and what it said on the way."""

    def __init__(self, services: Services, call: ToolCall | None = None) -> None:
        self.waiting: list[str] = []
        self.running: list[str] = []
        self.task = asyncio.create_task(
            services.calls.run(
                call or a_call(id=7),
                on_waiting=lambda request: self.waiting.append(request.id),
                on_running=lambda request: self.running.append(request.id),
            )
        )
        self._services = services

    async def request(self) -> ApprovalRequest:
        return await self._services.announcer.until(lambda request: request.status is Status.PENDING)


ASKED = HubReview(status="pending", groups=("stewards",), count=2)
APPROVED = replace(ASKED, status="approved", approved_by=("bob", "cleo"))


@pytest.fixture
def services(services: Services) -> Services:
    services.tools.tools["shop.delete_order"] = delete_order
    return services


async def test_allowed_call_runs_once_with_the_stored_arguments(services: Services) -> None:
    asked = Asked(services)
    request = await asked.request()
    assert services.tools.calls == []

    await services.decide(request, Answer.ALLOW_ONCE)
    finished = await asked.task

    assert finished.result.structured == {"deleted": 7}
    assert services.tools.calls == [request.call]
    assert (asked.waiting, asked.running, finished.request.id) == ([request.id], [request.id], request.id)
    assert finished.request.outcome_state is OutcomeState.RUNNING
    stored = await services.stored(request.id)
    assert stored.decision is not None
    assert stored.outcome is not None
    assert (stored.status, stored.decision.reviewer.name, stored.outcome.state) == (
        Status.APPROVED,
        "ada",
        OutcomeState.SUCCEEDED,
    )


async def test_calls_wait_in_the_order_in_which_they_came_however_long_each_was_looked_at(services: Services) -> None:
    look = services.checker.check
    second_waits = asyncio.Event()

    async def check(tool: ToolDescription, arguments: JsonObject) -> None:
        if arguments["id"] == 1:
            await second_waits.wait()
        await look(tool, arguments)

    services.checker.check = check  # type: ignore[method-assign]
    asked = []
    for id in (1, 2):
        asked.append(Asked(services, a_call(id=id)))
        await asyncio.sleep(0)
        services.clock.advance(1)
    second = await asked[1].request()
    second_waits.set()
    first = await services.announcer.until(lambda request: request.call.arguments["id"] == 1)

    assert first.created_at < second.created_at
    assert first.expires_at is not None
    assert second.expires_at is not None
    assert first.expires_at >= second.expires_at  # its time to be answered begins when it waits
    for each in asked:
        each.task.cancel()


async def test_rejected_call_raises_the_persons_reason_and_does_not_run(services: Services) -> None:
    asked = Asked(services)
    await services.decide(await asked.request(), Answer.REJECT_ONCE, reason="too many")

    with pytest.raises(ToolCallRejectedError) as caught:
        await asked.task

    assert (caught.value.reason, services.tools.calls) == ("too many", [])


@pytest.mark.parametrize("changed", ["its tool", "its server"])
async def test_what_a_person_allowed_does_not_run_if_the_tool_or_server_has_changed_since_they_were_asked(
    services: Services, changed: str
) -> None:
    services.trust_keys["shop"] = "a command"
    asked = Asked(services)
    request = await asked.request()
    if changed == "its tool":
        services.tools.descriptions["shop.delete_order"] = ToolDescription(
            name="delete_order", description="Delete all"
        )
    else:
        services.trust_keys["shop"] = "another command"
    await services.decide(request, Answer.ALLOW_ONCE)

    with pytest.raises(ToolServerError, match="has changed since it was asked for"):
        await asked.task

    stored = await services.stored(request.id)
    assert (services.tools.calls, stored.outcome_state) == ([], OutcomeState.FAILED)


class UnreadableStore(MemoryApprovalStore):
    """A store that says nothing of single requests."""

    async def get(self, request_id: str) -> ApprovalRequest:
        raise StorageError(f"`{request_id}` was read")


@pytest.mark.parametrize("answer", [Answer.ALLOW_ONCE, Answer.REJECT_ONCE])
async def test_what_was_decided_is_not_read_from_the_store_again(answer: Answer) -> None:
    services = Services(store=UnreadableStore())
    services.tools.tools["shop.delete_order"] = delete_order
    asked = Asked(services)
    await services.decide(await asked.request(), answer)

    ended = (await asyncio.gather(asked.task, return_exceptions=True))[0]

    assert isinstance(ended, FinishedCall if answer.allows else ToolCallRejectedError)
    await services.approvals.recorded()


async def test_edited_arguments_run_and_both_versions_are_kept(services: Services) -> None:
    asked = Asked(services)
    request = await asked.request()
    await services.decide(request, Answer.ALLOW_ONCE, arguments={"id": 8})

    assert (await asked.task).result.structured == {"deleted": 8}
    stored = await services.stored(request.id)
    assert (stored.call, stored.effective_call) == (a_call(id=7), a_call(id=8))


async def test_edited_arguments_that_do_not_fit_are_refused_and_the_request_still_waits(services: Services) -> None:
    asked = Asked(services)
    request = await asked.request()

    with pytest.raises(ToolArgumentsError):
        await services.decide(request, Answer.ALLOW_ONCE, arguments={"id": "x"})

    assert await services.approvals.get(request.id) == request
    asked.task.cancel()


async def test_edited_arguments_that_a_rule_denies_are_refused(services: Services) -> None:
    asked = Asked(services)
    request = await asked.request()
    services.policies.replace(Policy((Rule(server="shop", tool="*", effect=Effect.DENY),)))

    with pytest.raises(ToolCallRejectedError):
        await services.decide(request, Answer.ALLOW_ONCE, arguments={"id": 8})

    assert services.tools.calls == []
    asked.task.cancel()


@pytest.mark.parametrize("layer", [Layer.SITE, Layer.USER])
async def test_what_a_rule_denies_by_now_cannot_be_allowed_and_can_be_rejected(
    services: Services, layer: Layer
) -> None:
    asked = Asked(services)
    request = await asked.request()
    rule = Rule(server="shop", tool="*", effect=Effect.DENY, layer=layer, reason="closed")
    services.policies.replace(Policy((rule,)))

    for answer in (Answer.ALLOW_ONCE, Answer.ALLOW_ALWAYS):
        with pytest.raises(ToolCallRejectedError, match="closed"):
            await services.decide(request, answer)
    assert (services.tools.calls, await services.approvals.get(request.id)) == ([], request)
    await services.decide(request, Answer.REJECT_ONCE)
    with pytest.raises(ToolCallRejectedError):
        await asked.task


async def test_bad_arguments_raise_before_anyone_is_asked(services: Services) -> None:
    with pytest.raises(ToolArgumentsError) as caught:
        await Asked(services, a_call(id="x")).task
    assert (caught.value.parameter, services.announcer.approvals) == ("id", [])


async def test_unknown_tool_raises_before_anyone_is_asked() -> None:
    services = Services()
    services.tools.tools["shop.other"] = delete_order
    with pytest.raises(UnknownToolError):
        await Asked(services).task
    assert services.announcer.approvals == []


async def test_a_rule_that_allows_asks_no_one_and_is_recorded_with_the_rule(services: Services) -> None:
    rule = Rule(server="shop", tool="*", effect=Effect.ALLOW)
    services.policies.replace(Policy((rule,)))

    await Asked(services).task

    stored = await services.stored("r1")
    assert (stored.status, stored.evaluation.rule, stored.decision) == (Status.APPROVED, rule, None)


async def test_a_rule_that_asks_says_how_long_the_request_waits(services: Services) -> None:
    services.policies.replace(Policy((Rule(server="shop", tool="*", effect=Effect.ASK, timeout=2.5),)))
    asked = Asked(services)
    request = await asked.request()

    assert request.expires_at == services.clock.now() + timedelta(seconds=2.5)
    asked.task.cancel()


async def test_a_rule_that_denies_raises_its_reason_and_is_recorded(services: Services) -> None:
    services.policies.replace(Policy((Rule(server="*", tool="*", effect=Effect.DENY, reason="frozen"),)))

    with pytest.raises(ToolCallRejectedError) as caught:
        await Asked(services).task

    assert (caught.value.reason, services.tools.calls) == ("frozen", [])
    assert (await services.stored("r1")).status is Status.REJECTED


async def test_request_expires_when_nobody_answers_and_that_is_no_rejection(services: Services) -> None:
    asked = Asked(services)
    request = await asked.request()
    services.clock.advance(TIMEOUT.total_seconds())
    await services.approvals.expire_due()

    with pytest.raises(ApprovalExpiredError):
        await asked.task
    assert (await services.stored(request.id)).status is Status.EXPIRED


async def test_cancelling_a_waiting_call_withdraws_its_request(services: Services) -> None:
    asked = Asked(services)
    request = await asked.request()
    asked.task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asked.task
    assert (await services.stored(request.id)).status is Status.CANCELLED


async def test_cancelling_a_running_call_cancels_the_tool_and_records_it(services: Services) -> None:
    started, stopped = asyncio.Event(), asyncio.Event()

    async def slow(call: ToolCall, report: Any) -> Any:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    services.tools.tools["shop.delete_order"] = slow
    asked = Asked(services)
    await services.decide(await asked.request(), Answer.ALLOW_ONCE)
    async with asyncio.timeout(60):
        await started.wait()
    asked.task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asked.task
    stored = await services.stored("r1")
    assert stopped.is_set()
    assert stored.outcome is not None
    assert stored.outcome.state is OutcomeState.CANCELLED


async def test_a_call_that_is_withdrawn_as_it_is_approved_never_runs_and_says_so(services: Services) -> None:
    services.store.turns = 1
    asked = Asked(services)
    request = await asked.request()
    deciding = asyncio.create_task(services.decide(request, Answer.ALLOW_ONCE))
    while services.store.writes[-1].status is Status.PENDING:  # noqa: ASYNC110 - one turn of the loop at a time
        await asyncio.sleep(0)
    asked.task.cancel()  # the approval is kept and nobody has been told yet

    with pytest.raises(asyncio.CancelledError):
        await asked.task
    assert (await deciding).status is Status.APPROVED
    stored = await services.stored(request.id)
    assert services.tools.calls == []
    assert stored.outcome is not None
    assert stored.outcome.state is OutcomeState.CANCELLED


async def test_a_lost_kernel_orphans_its_request(services: Services) -> None:
    asked = Asked(services)
    request = await asked.request()
    await services.approvals.orphan("k1")

    with pytest.raises(ApprovalCancelledError):
        await asked.task
    assert (await services.stored(request.id)).status is Status.ORPHANED


async def test_a_store_that_fails_before_the_decision_keeps_the_call_from_running(services: Services) -> None:
    services.store.failure = StorageError("disk full")
    with pytest.raises(StorageError):
        await Asked(services).task
    assert (services.tools.calls, services.announcer.approvals) == ([], [])


async def test_a_decision_that_cannot_be_kept_does_not_count(services: Services) -> None:
    asked = Asked(services)
    request = await asked.request()
    services.store.failure = StorageError("database is locked")

    with pytest.raises(StorageError):
        await services.decide(request, Answer.ALLOW_ONCE)

    assert services.tools.calls == []
    services.store.failure = None
    await services.decide(request, Answer.ALLOW_ONCE)
    await asked.task


async def test_a_request_whose_withdrawal_cannot_be_kept_can_be_decided_no_more(services: Services) -> None:
    asked = Asked(services)
    request = await asked.request()
    services.store.failure = StorageError("disk full")
    asked.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked.task
    services.store.failure = None

    with pytest.raises(InvalidTransitionError):
        await services.decide(request, Answer.ALLOW_ONCE)
    assert services.tools.calls == []


async def test_a_store_that_fails_after_the_call_does_not_hide_its_result(services: Services) -> None:
    async def breaks_the_store(call: ToolCall, report: Any) -> Any:
        services.store.failure = StorageError("disk full")
        return {"deleted": 7}

    services.tools.tools["shop.delete_order"] = breaks_the_store
    asked = Asked(services)
    await services.decide(await asked.request(), Answer.ALLOW_ONCE)
    assert (await asked.task).result.structured == {"deleted": 7}
    await services.approvals.recorded()


async def test_a_tool_that_answers_with_an_error_is_recorded_as_failed(services: Services) -> None:
    async def fails(call: ToolCall, report: Any) -> Any:
        return ToolResult(content=({"type": "text", "text": "no such order"},), is_error=True)

    services.tools.tools["shop.delete_order"] = fails
    asked = Asked(services)
    await services.decide(await asked.request(), Answer.ALLOW_ONCE)

    assert (await asked.task).result.is_error
    outcome = (await services.stored("r1")).outcome
    assert outcome is not None
    assert (outcome.state, outcome.error) == (OutcomeState.FAILED, "no such order")


async def test_a_server_that_dies_is_recorded_and_the_call_is_not_repeated(services: Services) -> None:
    async def dies(call: ToolCall, report: Any) -> Any:
        raise ToolCallInterruptedError("the server died")

    services.tools.tools["shop.delete_order"] = dies
    asked = Asked(services)
    await services.decide(await asked.request(), Answer.ALLOW_ONCE)

    with pytest.raises(ToolCallInterruptedError):
        await asked.task
    outcome = (await services.stored("r1")).outcome
    assert outcome is not None
    assert (outcome.state, len(services.tools.calls)) == (OutcomeState.FAILED, 1)


async def test_allow_always_asks_no_more_for_this_tool_in_this_kernel(services: Services) -> None:
    asked = Asked(services)
    await services.decide(await asked.request(), Answer.ALLOW_ALWAYS)
    await asked.task

    again = Asked(services, a_call(id=9))
    await again.task

    assert again.waiting == []
    await services.grants.forget("k1")
    third = Asked(services, a_call(id=10))
    await services.announcer.until(lambda request: request.id == "r3" and request.status is Status.PENDING)
    third.task.cancel()


@pytest.mark.parametrize(
    "changed",
    [
        {"description": "Delete an order, and every other one."},
        {"input_schema": {"type": "object", "properties": {"id": {}, "all": {}}}},
        {"output_schema": {"type": "object"}},
        {"annotations": {"readOnlyHint": True}},
        {"title": "Look at an order"},
    ],
)
async def test_allow_always_is_for_the_tool_that_was_seen(services: Services, changed: dict[str, Any]) -> None:
    asked = Asked(services)
    await services.decide(await asked.request(), Answer.ALLOW_ALWAYS)
    await asked.task

    services.tools.descriptions["shop.delete_order"] = ToolDescription(**{"name": "delete_order", **changed})
    again = Asked(services, a_call(id=9))
    request = await services.announcer.until(lambda found: found.id == "r2" and found.status is Status.PENDING)
    await services.decide(request, Answer.REJECT_ALWAYS)
    with pytest.raises(ToolCallRejectedError):
        await again.task

    services.tools.descriptions.clear()  # a rejection is for any tool of that name
    with pytest.raises(ToolCallRejectedError):
        await Asked(services, a_call(id=10)).task


@pytest.mark.parametrize("services", [{"most_pending": 2}], indirect=True)
async def test_more_calls_than_may_wait_fail_at_once_until_one_is_decided(services: Services) -> None:
    first = [Asked(services, a_call(id=number)) for number in (1, 2)]
    for number in (1, 2):
        await services.announcer.until(lambda found, id=f"r{number}": found.id == id)

    with pytest.raises(TooManyRequestsError):
        await Asked(services, a_call(id=3)).task
    other = ToolCall(server="shop", tool="delete_order", arguments={"id": 4}, origin=Origin(kernel_id="k2"))
    of_another_kernel = Asked(services, other)
    [waiting] = [
        request for request in services.approvals.requests.pending_of("k1") if request.call.arguments == {"id": 1}
    ]
    await services.decide(waiting, Answer.ALLOW_ONCE)
    await first[0].task
    again = Asked(services, a_call(id=5))
    request = await services.announcer.until(
        lambda found: found.status is Status.PENDING and found.call.arguments == {"id": 5}
    )
    again.task.cancel()
    first[1].task.cancel()
    of_another_kernel.task.cancel()
    await asyncio.gather(again.task, first[1].task, of_another_kernel.task, return_exceptions=True)

    assert (await services.store.get(request.id)).status is Status.CANCELLED
    assert services.approvals.requests.pending_of("k1") == ()
    for number in (6, 7):  # both places are free again
        asked = Asked(services, a_call(id=number))
        await services.announcer.until(
            lambda found, id=number: found.status is Status.PENDING and found.call.arguments == {"id": id}
        )
        asked.task.cancel()


@pytest.mark.parametrize("services", [{"most_pending": 1}], indirect=True)
async def test_programs_outside_kernels_are_told_apart_when_too_many_calls_wait(services: Services) -> None:
    def call(number: int) -> ToolCall:
        return ToolCall(server="shop", tool="delete_order", arguments={"id": number}, origin=Origin())

    waiting = Asked(services, call(1))
    await waiting.request()
    with pytest.raises(TooManyRequestsError, match="programs outside kernels already have 1"):
        await Asked(services, call(2)).task
    waiting.task.cancel()


@pytest.mark.parametrize("services", [{"most_pending": 1}], indirect=True)
async def test_request_that_could_not_be_kept_takes_no_place(services: Services) -> None:
    services.store.failure = StorageError("the disk is full")
    with pytest.raises(StorageError):
        await Asked(services).task
    services.store.failure = None
    asked = Asked(services)
    await services.decide(await asked.request(), Answer.ALLOW_ONCE)
    await asked.task


async def test_a_call_that_is_withdrawn_as_it_ends_is_recorded_as_what_it_was(services: Services) -> None:
    services.store.turns = 3
    ended = asyncio.Event()

    async def quick(call: ToolCall, report: Any) -> Any:
        ended.set()
        return {"deleted": 7}

    services.tools.tools["shop.delete_order"] = quick
    asked = Asked(services)
    await services.decide(await asked.request(), Answer.ALLOW_ONCE)
    async with asyncio.timeout(60):
        await ended.wait()
    await asyncio.sleep(0)
    asked.task.cancel()
    await asyncio.gather(asked.task, return_exceptions=True)

    done = await services.announcer.until(
        lambda request: request.outcome_state not in (None, OutcomeState.RUNNING)  # it was not left running
    )
    assert done.outcome_state is OutcomeState.SUCCEEDED


async def test_a_store_that_fails_only_at_the_start_of_a_call_keeps_its_end(services: Services) -> None:
    def breaks_the_store(_request: ApprovalRequest) -> None:
        services.store.failure = StorageError("locked for a moment")

    async def mends_the_store(call: ToolCall, report: Any) -> Any:
        for _ in range(10):
            await asyncio.sleep(0)  # meanwhile, the start could not be kept
        services.store.failure = None
        return {"deleted": 7}

    services.tools.tools["shop.delete_order"] = mends_the_store
    call = asyncio.create_task(
        services.calls.run(a_call(id=7), on_waiting=lambda _request: None, on_running=breaks_the_store)
    )
    request = await services.announcer.until(lambda request: request.status is Status.PENDING)
    await services.decide(request, Answer.ALLOW_ONCE)

    assert (await call).result.structured == {"deleted": 7}
    assert (await services.stored(request.id)).outcome_state is OutcomeState.SUCCEEDED


class LosableStore(MemoryApprovalStore):
    """A store whose file somebody may delete."""

    is_lost = False

    async def get(self, request_id: str) -> ApprovalRequest:
        if self.is_lost:
            raise UnknownApprovalError("no such request", request_id=request_id)
        return await super().get(request_id)

    async def replace_if(self, request: ApprovalRequest, **expected: Any) -> bool:
        return not self.is_lost and await super().replace_if(request, **expected)


async def test_a_store_that_is_lost_during_the_call_does_not_hide_its_result() -> None:
    store = LosableStore()
    services = Services(store=store)

    async def loses_the_store(call: ToolCall, report: Any) -> Any:
        store.is_lost = True
        return {"deleted": 7}

    services.tools.tools["shop.delete_order"] = loses_the_store
    asked = Asked(services)
    await services.decide(await asked.request(), Answer.ALLOW_ONCE)
    assert (await asked.task).result.structured == {"deleted": 7}
    await services.approvals.recorded()


async def test_a_store_that_loses_a_waiting_request_ends_its_call() -> None:
    store = LosableStore()
    services = Services(store=store)
    services.tools.tools["shop.delete_order"] = delete_order
    asked = Asked(services)
    request = await asked.request()
    store.is_lost = True

    with pytest.raises(UnknownApprovalError):
        await services.decide(request, Answer.ALLOW_ONCE)
    with pytest.raises(ApprovalCancelledError):
        await asked.task
    assert services.tools.calls == []


async def test_the_result_does_not_wait_for_the_record_of_the_end(services: Services) -> None:
    asked = Asked(services)
    request = await asked.request()
    may_end = asyncio.Event()

    async def wait(call: ToolCall, report: Any) -> Any:
        await may_end.wait()
        return await delete_order(call, report)

    services.tools.tools["shop.delete_order"] = wait
    await services.decide(request, Answer.ALLOW_ONCE)
    services.store.turns = 1000
    may_end.set()
    assert (await asked.task).result.structured == {"deleted": 7}
    services.store.turns = 0
    assert (await services.store.get(request.id)).outcome_state is OutcomeState.RUNNING
    assert (await services.approvals.get(request.id)).outcome_state is OutcomeState.SUCCEEDED


async def test_whoever_reads_after_the_result_sees_the_end(services: Services) -> None:
    services.policies.replace(Policy((Rule(server="shop", tool="*", effect=Effect.ALLOW),)))
    await Asked(services).task
    page = await services.approvals.list(ApprovalQuery())
    assert [request.outcome_state for request in page.approvals] == [OutcomeState.SUCCEEDED]


async def test_a_call_that_needs_no_asking_is_kept_as_running_at_once(services: Services) -> None:
    services.policies.replace(Policy((Rule(server="shop", tool="*", effect=Effect.ALLOW),)))
    await Asked(services).task
    await services.approvals.recorded()
    assert [request.outcome_state for request in services.store.writes] == [
        OutcomeState.RUNNING,
        OutcomeState.SUCCEEDED,
    ]


async def test_store_that_failed_while_nobody_waited_any_more_is_asked_again(services: Services) -> None:
    services.store.failure = StorageError("the disk is full")
    services.store.turns = 1
    asking = asyncio.create_task(services.approvals.get("r1"))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait([asking])
    for _ in range(10):
        await asyncio.sleep(0)
    services.store.failure = None
    with pytest.raises(UnknownApprovalError):
        await services.approvals.get("r1")


class DefectiveStore(MemoryApprovalStore):
    """A store that fails with something else than a `StorageError` when a call has ended."""

    async def replace_if(self, request: ApprovalRequest, **expected: Any) -> bool:
        if not request.is_open:
            raise AttributeError("a defect")
        return await super().replace_if(request, **expected)


async def test_an_end_that_cannot_be_kept_for_a_defect_is_logged_and_nobody_waits_for_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    services = Services(store=DefectiveStore(), policy=Policy((Rule(server="shop", tool="*", effect=Effect.ALLOW),)))
    services.tools.tools["shop.delete_order"] = delete_order

    finished = await Asked(services).task
    async with asyncio.timeout(60):
        await services.approvals.recorded()

    assert finished.result.structured == {"deleted": 7}
    assert "recording how a call ended failed" in caplog.text


@pytest.mark.parametrize("result", [APPROVED, None])
async def test_while_the_hub_asks_others_who_asked_is_shown_that_once_and_the_record_keeps_who_answered(
    services: Services, result: HubReview | None
) -> None:
    asked: list[str] = []
    is_at_hub, may_end = asyncio.Event(), asyncio.Event()

    async def query(_: ToolCall, report: Any) -> Any:
        report(Progress(progress=0, total=2, review=ASKED))
        report(Progress(progress=1, total=2, review=APPROVED))
        is_at_hub.set()
        await may_end.wait()
        return ToolResult(review=result)

    services.tools.tools["shop.delete_order"] = query
    services.policies.replace(Policy((Rule(server="shop", tool="*", effect=Effect.ALLOW),)))
    nobody = lambda _: None  # noqa: E731
    running = asyncio.create_task(
        services.calls.run(
            a_call(id=7), on_waiting=nobody, on_running=nobody, on_asked=lambda one: asked.append(one.id)
        )
    )
    async with asyncio.timeout(TIMEOUT.total_seconds()):
        await is_at_hub.wait()
    shown = services.running_calls.activity_of(asked[0])
    may_end.set()
    finished = await running

    assert shown is not None
    assert shown.review == APPROVED
    assert asked == [finished.request.id]
    outcome = (await services.stored(finished.request.id)).outcome
    assert outcome is not None
    assert outcome.review == APPROVED


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("rejected", ToolCallRejectedError),
        ("expired", ApprovalExpiredError),
        ("cancelled", ApprovalCancelledError),
        ("orphaned", ApprovalCancelledError),
    ],
)
async def test_what_the_hub_did_not_run_raises_what_a_decision_here_would(
    services: Services, status: str, error: type[AgentBoxError]
) -> None:
    review = HubReview(status=status, reason="too broad")

    async def query(*_: object) -> ToolResult:
        return ToolResult(content=({"type": "text", "text": "it did not run"},), is_error=True, review=review)

    services.tools.tools["shop.delete_order"] = query
    services.policies.replace(Policy((Rule(server="shop", tool="*", effect=Effect.ALLOW),)))
    with pytest.raises(error, match="it did not run") as raised:
        await Asked(services).task

    await services.approvals.recorded()
    assert raised.value.request_id is not None
    request = await services.stored(raised.value.request_id)
    assert request.outcome is not None
    assert (request.outcome_state, request.outcome.review) == (OutcomeState.FAILED, review)
    if isinstance(raised.value, ToolCallRejectedError):
        assert raised.value.reason == "too broad"


async def test_a_tool_that_failed_after_the_hub_allowed_it_is_no_refusal(services: Services) -> None:
    async def query(*_: object) -> ToolResult:
        return ToolResult(is_error=True, review=APPROVED)

    services.tools.tools["shop.delete_order"] = query
    services.policies.replace(Policy((Rule(server="shop", tool="*", effect=Effect.ALLOW),)))

    assert (await Asked(services).task).result.is_error
