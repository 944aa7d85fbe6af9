"""What has ended although that could not be stored: rejected requests, where nobody can approve instead, and calls."""

from __future__ import annotations

import asyncio

import pytest

from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, OutcomeState, Status
from jupyter_agentbox.core.ports import ApprovalQuery
from jupyter_agentbox.exceptions import AuditError, InvalidTransitionError, StorageError, ToolCallRejectedError
from jupyter_agentbox.services.approvals.unstored_ends import UnstoredEnds
from jupyter_agentbox.services.approvals.verdicts import Verdict
from tests.samples import ADA
from tests.services.conftest import Services, a_call

FULL = StorageError("the disk is full")


@pytest.fixture
def services(services: Services) -> Services:
    async def delete(_call: object, _report: object) -> object:
        return {}

    services.tools.tools["shop.delete_order"] = delete
    return services


async def ask(services: Services) -> tuple[asyncio.Task[object], ApprovalRequest]:
    waiting: asyncio.Queue[ApprovalRequest] = asyncio.Queue()
    run = services.calls.run(a_call(id=7), on_waiting=waiting.put_nowait, on_running=lambda _: None)
    return asyncio.create_task(run), await waiting.get()


async def test_a_rejection_takes_effect_and_is_stored_and_announced_with_the_next_read(services: Services) -> None:
    calling, request = await ask(services)
    services.store.failure = FULL
    await services.decide(request, Answer.REJECT_ONCE)
    with pytest.raises(ToolCallRejectedError):
        await calling
    assert (await services.approvals.get(request.id)).status is Status.REJECTED
    assert services.approvals.requests.pending() == []
    with pytest.raises(InvalidTransitionError):
        await services.decide(request, Answer.ALLOW_ONCE)
    assert services.announcer.approvals[-1].status is Status.PENDING

    services.store.failure = None
    (listed,) = (await services.approvals.list(ApprovalQuery())).approvals
    assert listed == services.store.writes[-1] == services.announcer.approvals[-1]
    assert listed.status is Status.REJECTED
    await services.approvals.list(ApprovalQuery())
    assert [one.status for one in services.store.writes] == [Status.PENDING, Status.REJECTED]


async def test_a_server_that_stops_stores_what_it_can(services: Services) -> None:
    calling, request = await ask(services)
    services.store.failure = FULL
    await services.decide(request, Answer.REJECT_ONCE)
    services.store.failure = None
    await services.approvals.orphan()
    assert services.store.writes[-1].status is Status.REJECTED
    await asyncio.gather(calling, return_exceptions=True)


@pytest.mark.parametrize("failure", [FULL, AuditError("a sink is down")], ids=["store", "sink"])
async def test_the_end_of_a_call_is_shown_at_once_and_stored_when_the_store_can_be_written_again(
    services: Services, failure: StorageError
) -> None:
    calling, request = await ask(services)
    runs = asyncio.Event()

    async def delete(_call: object, _report: object) -> object:
        services.store.failure = failure
        runs.set()
        return {"deleted": 7}

    services.tools.tools["shop.delete_order"] = delete
    await services.decide(request, Answer.ALLOW_ONCE)
    await calling
    assert runs.is_set()
    shown = await services.approvals.get(request.id)
    assert shown.outcome_state is OutcomeState.SUCCEEDED
    assert services.store.writes[-1].outcome_state is OutcomeState.RUNNING

    services.store.failure = None
    await services.approvals.recorded()
    assert services.store.writes[-1] == services.announcer.approvals[-1] == shown
    await services.approvals.recorded()
    assert [one.outcome_state for one in services.store.writes] == [None, OutcomeState.RUNNING, OutcomeState.SUCCEEDED]


async def test_an_end_is_stored_although_nobody_reads(services: Services) -> None:
    approvals = services.approvals
    approvals.unstored = UnstoredEnds(approvals.requests, clock=services.clock, retry_interval=0.001)
    calling, request = await ask(services)
    services.store.failure = FULL
    await services.decide(request, Answer.REJECT_ONCE)
    await asyncio.gather(calling, return_exceptions=True)
    services.store.failure = None
    async with asyncio.timeout(30):
        while services.store.writes[-1].status is not Status.REJECTED:  # noqa: ASYNC110  # nothing tells of it
            await asyncio.sleep(0.001)
    assert services.announcer.approvals[-1].status is Status.REJECTED


async def test_what_the_store_allowed_at_the_same_moment_does_not_run_and_is_recorded_like_that(
    services: Services,
) -> None:
    calling, request = await ask(services)
    now = services.clock.now()

    def answered(answer: Answer) -> ApprovalRequest:
        verdict = Verdict(answer=answer, digest=request.call.digest)
        return request.decide(verdict.by(ADA, at=now)).running_if_approved(at=now)

    allowed = answered(Answer.ALLOW_ONCE)
    assert await services.store.replace_if(allowed, status=Status.PENDING, outcome=None)  # its writer does not know yet
    services.approvals.unstored.add(request, answered(Answer.REJECT_ONCE))
    with pytest.raises(ToolCallRejectedError):
        await calling
    stored = await services.approvals.get(request.id)
    assert (stored.status, stored.outcome_state) == (Status.APPROVED, OutcomeState.CANCELLED)
    assert services.tools.calls == []


@pytest.mark.parametrize("answer", [Answer.ALLOW_ONCE, Answer.ALLOW_ALWAYS, Answer.REJECT_ALWAYS])
async def test_what_lasts_or_allows_needs_the_store(services: Services, answer: Answer) -> None:
    calling, request = await ask(services)
    services.store.failure = FULL
    with pytest.raises(StorageError):
        await services.decide(request, answer)
    services.store.failure = None
    assert (await services.approvals.get(request.id)).status is Status.PENDING
    await services.decide(request, Answer.ALLOW_ONCE)
    await calling


async def test_a_rejection_that_the_site_wants_recorded_first_waits_for_that(services: Services) -> None:
    calling, request = await ask(services)
    services.store.failure = AuditError("a sink is down")
    with pytest.raises(AuditError):
        await services.decide(request, Answer.REJECT_ONCE)
    services.store.failure = None
    await services.decide(request, Answer.REJECT_ONCE)
    with pytest.raises(ToolCallRejectedError):
        await calling


async def test_a_rejection_needs_the_store_if_another_process_may_have_the_request_next(services: Services) -> None:
    services.approvals.requests.approvals_start_calls = False  # as in the Hub service
    calling, request = await ask(services)
    services.store.failure = FULL
    with pytest.raises(StorageError):
        await services.decide(request, Answer.REJECT_ONCE)
    services.store.failure = None
    await services.decide(request, Answer.REJECT_ONCE)
    with pytest.raises(ToolCallRejectedError):
        await calling
