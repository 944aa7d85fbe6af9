"""What a process left that is gone: who comes back for it, who gives it up, and what happens in the same moment."""

from __future__ import annotations

import asyncio

import pytest

from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, Lapse, OutcomeState, Status
from jupyter_agentbox.core.policy import Effect, Evaluation
from jupyter_agentbox.core.reviewers import Reviewer, Via
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import StorageError
from jupyter_agentbox.services.approvals.verdicts import Verdict
from tests.services.conftest import Services, a_call

BOB = Reviewer(name="bob", via=Via.BROWSER)
TOOL = ToolDescription(name="delete_order")
ASK = Evaluation(effect=Effect.ASK)


async def a_kept_request(services: Services, number: int = 1) -> ApprovalRequest:
    """Return a request that waits here, and that a process opened which is gone."""
    approvals = services.approvals
    approvals.abandoned.keeps = lambda _: True
    request = await approvals.open(a_call(id=number), TOOL, ASK)
    approvals.abandon(request.id)
    services.store.abandoned.append(request.id)
    await approvals.abandoned.look()
    assert request in services.kept.all()
    return request


async def test_who_is_back_in_the_moment_when_it_is_given_up_keeps_the_request(services: Services) -> None:
    request = await a_kept_request(services)
    assert await services.kept.take(request.id) == request

    await services.kept.give_up(request.id)

    assert (await services.stored(request.id)).status is Status.PENDING


async def test_what_ended_in_the_moment_when_it_is_given_up_stays_as_it_ended(services: Services) -> None:
    request = await a_kept_request(services)
    await services.decide(request, Answer.REJECT_ONCE)

    await services.kept.give_up(request.id)

    assert (await services.stored(request.id)).status is Status.REJECTED


async def test_what_is_allowed_in_the_moment_when_it_is_given_up_is_not_left_as_running(services: Services) -> None:
    request = await a_kept_request(services)
    services.store.turns = 2

    await asyncio.gather(services.decide(request, Answer.ALLOW_ONCE), services.kept.give_up(request.id))

    stored = await services.stored(request.id)
    assert (stored.status, stored.outcome_state) == (Status.APPROVED, OutcomeState.CANCELLED)
    assert not services.approvals.holds(request.id)


async def test_what_cannot_be_given_up_for_now_is_given_up_later(services: Services) -> None:
    request = await a_kept_request(services)
    services.store.failure = StorageError("away for a moment")
    await services.kept.give_up(request.id)
    assert services.kept.all() == (request,)

    services.store.failure = None
    await services.kept.give_up(request.id)

    assert (await services.stored(request.id)).status is Status.ORPHANED
    assert not services.kept.all()


async def test_a_vote_in_the_moment_when_the_request_ends_stays_in_the_record(services: Services) -> None:
    request = await services.approvals.open(a_call(id=1), TOOL, ASK)
    services.store.turns = 2
    vote = Verdict(answer=Answer.ALLOW_ONCE, digest=request.call.digest)

    await asyncio.gather(
        services.decisions.endorse(request.id, vote, reviewer=BOB),
        services.approvals.lapse(request.id, Lapse.WITHDRAWN),
    )

    stored = await services.stored(request.id)
    assert (stored.status, [one.reviewer for one in stored.votes]) == (Status.CANCELLED, [BOB])


async def left(services: Services, *numbers: int) -> list[ApprovalRequest]:
    """Return requests of a process that is gone."""
    requests = [await services.approvals.open(a_call(id=number), TOOL, ASK) for number in numbers]
    for request in requests:
        services.approvals.abandon(request.id)
        services.store.abandoned.append(request.id)
    return requests


async def adopting(services: Services) -> asyncio.Task[None]:
    """Return a look at what was left, at the moment when the store has given it to this process."""
    services.store.turns = 1
    looking = asyncio.create_task(services.approvals.abandoned.look())
    for _ in range(2):
        await asyncio.sleep(0)
    assert not services.store.abandoned
    assert not looking.done()
    services.store.turns = 0
    return looking


async def test_what_the_store_did_not_take_when_it_was_adopted_is_closed_at_the_next_look(services: Services) -> None:
    """It is no other process's any more: nobody else would close it, and this one would never be idle."""
    [request] = await left(services, 1)
    looking = await adopting(services)
    services.store.failure = StorageError("away for a moment")
    with pytest.raises(StorageError):
        await looking

    services.store.failure = None
    await services.approvals.abandoned.look()

    assert (await services.stored(request.id)).status is Status.ORPHANED


async def test_what_another_server_closes_in_the_moment_of_its_adoption_ends_no_look(services: Services) -> None:
    one, two = await left(services, 1, 2)
    looking = await adopting(services)
    expired = one.lapse(Lapse.TIMED_OUT, at=services.approvals.now())
    assert await services.store.replace_if(expired, status=Status.PENDING, outcome=None)
    await looking

    assert (await services.stored(one.id)).status is Status.EXPIRED
    assert (await services.stored(two.id)).status is Status.ORPHANED
