"""More time for a request."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from jupyter_agentbox.core.approvals import Answer, Status
from jupyter_agentbox.core.policy import Effect, Evaluation
from jupyter_agentbox.core.reviewers import DecideWith, Reviewer, Via
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.core.waiting_times import WaitingTimes
from jupyter_agentbox.exceptions import InvalidTransitionError, NeedsPersonError, StorageError, UnknownApprovalError
from tests.services.conftest import TIMEOUT, Services, a_call

ADA = Reviewer(name="ada", via=Via.BROWSER)
TOOL = ToolDescription(name="delete_order")
ASK = Evaluation(effect=Effect.ASK)
LONGEST = timedelta(seconds=900)


async def test_request_waits_on_and_the_store_and_the_pages_know(services: Services) -> None:
    request = await services.approvals.open(a_call(id=7), TOOL, ASK)
    assert request.expires_at is not None
    services.clock.advance(500)

    extended = await services.decisions.extend(request.id, reviewer=ADA)

    assert extended.expires_at == request.expires_at + timedelta(seconds=500)
    assert extended.extended_by == "ada"
    assert await services.stored(request.id) == extended
    assert services.announcer.approvals[-1] == extended
    services.clock.advance(599)
    await services.approvals.expire_due()
    assert (await services.approvals.get(request.id)).status is Status.PENDING
    services.clock.advance(1)
    await services.approvals.expire_due()
    assert (await services.approvals.get(request.id)).status is Status.EXPIRED


@pytest.mark.parametrize("services", [{"waiting_times": WaitingTimes(timeout=TIMEOUT, longest=LONGEST)}], indirect=True)
async def test_nobody_lets_it_wait_longer_than_the_longest_wait(services: Services) -> None:
    request = await services.approvals.open(a_call(id=7), TOOL, ASK)
    for seconds in (500, 350):
        services.clock.advance(seconds)
        extended = await services.decisions.extend(request.id, reviewer=ADA)

    assert extended.expires_at == request.created_at + LONGEST


async def test_no_time_is_given_to_what_is_over(services: Services) -> None:
    decided, late = [await services.approvals.open(a_call(id=n), TOOL, ASK) for n in (1, 2)]
    await services.decide(decided, Answer.ALLOW_ONCE)
    services.clock.advance(600)

    for request in (decided, late):
        with pytest.raises(InvalidTransitionError):
            await services.decisions.extend(request.id, reviewer=ADA)

    assert (await services.stored(late.id)).status is Status.EXPIRED


async def test_program_gives_no_time_where_only_a_person_decides(services: Services) -> None:
    services.decisions.decide_with = DecideWith.PERSON
    request = await services.approvals.open(a_call(id=7), TOOL, ASK)

    with pytest.raises(NeedsPersonError):
        await services.decisions.extend(request.id, reviewer=Reviewer(name="ada", via=Via.API_TOKEN))


async def test_decision_after_it_holds(services: Services) -> None:
    request = await services.approvals.open(a_call(id=7), TOOL, ASK)
    await services.decisions.extend(request.id, reviewer=ADA)

    assert (await services.decide(request, Answer.ALLOW_ONCE)).status is Status.APPROVED


async def test_what_a_server_left_that_ends_later_is_closed_too(services: Services) -> None:
    services.approvals.abandoned.look_again(0.0)
    request = await services.approvals.open(a_call(id=7), TOOL, ASK)
    services.store.failure = StorageError("away for a moment")
    services.store.abandoned = [request.id]
    await asyncio.sleep(0)
    services.store.failure = None

    await services.announcer.until(lambda one: one.status is Status.ORPHANED)
    services.approvals.abandoned.stop_looking()

    assert (await services.stored(request.id)).status is Status.ORPHANED


async def test_nobody_looks_what_servers_left_while_that_is_not_due(services: Services) -> None:
    request = await services.approvals.open(a_call(id=7), TOOL, ASK)
    services.store.abandoned = [request.id]
    asked = asyncio.Queue[None]()

    def is_due() -> bool:
        asked.put_nowait(None)
        return False

    services.approvals.abandoned.look_again(0.0, is_due)
    for _ in range(3):
        await asked.get()
    services.approvals.abandoned.stop_looking()

    assert services.store.abandoned == [request.id]


async def test_who_comes_back_before_a_server_counts_as_gone_waits_until_it_does(services: Services) -> None:
    approvals = services.approvals
    approvals.abandoned.keeps = lambda _: True
    request = await approvals.open(a_call(id=7), TOOL, ASK)
    approvals.requests.forget(request.id)  # another process has it, as far as this one knows
    with pytest.raises(UnknownApprovalError):
        await services.kept.take(request.id)  # and nobody looks whether it is gone

    approvals.abandoned.look_again(0.0)
    back = asyncio.create_task(services.kept.take(request.id))
    await asyncio.sleep(0)
    assert not back.done()
    services.store.abandoned = [request.id]
    async with asyncio.timeout(60):
        assert await back == request
    approvals.abandoned.stop_looking()

    with pytest.raises(UnknownApprovalError):
        await services.kept.take(request.id)  # it is had by now
    assert services.kept.all() == ()


BOUNDED = {"waiting_times": WaitingTimes(timeout=timedelta(seconds=880), longest=LONGEST, bounds_all=True)}


@pytest.mark.parametrize("services", [BOUNDED], indirect=True)
async def test_the_longest_wait_of_a_request_begins_when_its_call_came(services: Services) -> None:
    came = services.approvals.now()
    services.clock.advance(60)  # the call was looked at for so long

    request = await services.approvals.open(a_call(id=1), TOOL, ASK, asked_at=came)

    assert request.created_at == came
    assert request.expires_at == came + LONGEST
