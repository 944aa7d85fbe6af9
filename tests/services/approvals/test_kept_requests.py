"""What a process left that is gone: who comes back for it, who gives it up, and what happens in the same moment."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, Lapse, OutcomeState, Status
from jupyter_agentbox.core.calls import JsonObject, ToolCall
from jupyter_agentbox.core.policy import Effect, Evaluation
from jupyter_agentbox.core.reviewers import Reviewer, Via
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import ApprovalCancelledError, StorageError
from jupyter_agentbox.services.approvals.verdicts import Verdict
from tests.services.conftest import Services, a_call

BOB = Reviewer(name="bob", via=Via.BROWSER)
TOOL = ToolDescription(name="delete_order")
ASK = Evaluation(effect=Effect.ASK)


async def deleted(call: ToolCall, _progressed: object) -> JsonObject:
    """Answer in the tool's place."""
    return {"deleted": call.arguments["id"]}


async def a_kept_request(services: Services, number: int = 1) -> ApprovalRequest:
    """Return a request that waits here, and that a process opened which is gone."""
    approvals = services.approvals
    services.tools.tools["shop.delete_order"] = deleted
    approvals.abandoned.keeps = lambda _: True
    approvals.requests.approvals_start_calls = False
    request = await approvals.open(a_call(id=number), TOOL, ASK)
    approvals.requests.forget(request.id)
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
    assert stored.has_not_run
    assert not services.approvals.holds(request.id)


async def test_what_is_allowed_while_its_caller_is_away_runs_from_the_moment_when_they_are_back(
    services: Services,
) -> None:
    request = await a_kept_request(services)
    await services.decide(request, Answer.ALLOW_ONCE)
    stored = await services.stored(request.id)
    assert (stored.status, stored.outcome) == (Status.APPROVED, None)
    taken = await services.kept.take(request.id)
    services.clock.advance(5)

    await services.calls.resume(taken, on_waiting=lambda _: None, on_running=lambda _: None)

    await services.approvals.recorded()
    stored = await services.stored(request.id)
    assert stored.outcome is not None
    assert (stored.outcome_state, stored.outcome.started_at) == (OutcomeState.SUCCEEDED, services.clock.now())
    assert stored.decision is not None
    assert services.clock.now() - stored.decision.decided_at == timedelta(seconds=5)


async def test_who_is_back_in_the_moment_of_the_decision_gets_the_call_run_once(services: Services) -> None:
    request = await a_kept_request(services)
    services.store.turns = 2

    async def back() -> None:
        await asyncio.sleep(0)
        taken = await services.kept.take(request.id)
        await services.calls.resume(taken, on_waiting=lambda _: None, on_running=lambda _: None)

    await asyncio.gather(services.decide(request, Answer.ALLOW_ONCE), back())

    await services.approvals.recorded()
    assert len(services.tools.calls) == 1
    assert (await services.stored(request.id)).outcome_state is OutcomeState.SUCCEEDED


async def test_what_cannot_be_stored_as_running_does_not_run(services: Services) -> None:
    request = await a_kept_request(services)
    await services.decide(request, Answer.ALLOW_ONCE)
    taken = await services.kept.take(request.id)
    services.store.failure = StorageError("away for a moment")

    with pytest.raises(StorageError):
        await services.calls.resume(taken, on_waiting=lambda _: None, on_running=lambda _: None)

    await services.approvals.recorded()
    assert (len(services.tools.calls), services.approvals.holds(request.id)) == (0, False)
    services.store.failure = None
    await services.approvals.abandoned.look()
    assert services.kept.all() == (taken,)  # whoever is back in time gets it run


async def test_who_leaves_while_the_start_is_being_stored_gets_nothing_run(services: Services) -> None:
    request = await a_kept_request(services)
    await services.decide(request, Answer.ALLOW_ONCE)
    taken = await services.kept.take(request.id)
    services.store.turns = 3
    call = asyncio.create_task(services.calls.resume(taken, on_waiting=lambda _: None, on_running=lambda _: None))
    await asyncio.sleep(0)

    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    await services.approvals.recorded()
    assert (len(services.tools.calls), (await services.stored(request.id)).has_not_run) == (0, True)


@pytest.mark.parametrize("does_nothing_since", [True, False])
async def test_what_was_stored_although_the_store_reported_an_error_is_not_left_as_running(
    services: Services, monkeypatch: pytest.MonkeyPatch, does_nothing_since: bool
) -> None:
    """The connection may break at the very end of a write."""
    request = await a_kept_request(services)
    await services.decide(request, Answer.ALLOW_ONCE)
    write, errors = services.store.replace_if, [StorageError("gone")]

    async def write_and_fail(*given: Any, **named: Any) -> bool:
        is_written = await write(*given, **named)
        if errors:
            raise errors.pop()
        return is_written

    monkeypatch.setattr(services.store, "replace_if", write_and_fail)
    if does_nothing_since:
        with pytest.raises(StorageError):
            await services.kept.give_up(request.id)
        await services.kept.give_up(request.id)
    else:
        taken = await services.kept.take(request.id)
        with pytest.raises(StorageError):
            await services.calls.resume(taken, on_waiting=lambda _: None, on_running=lambda _: None)

    await services.approvals.recorded()
    assert ((await services.stored(request.id)).has_not_run, len(services.tools.calls)) == (True, 0)
    assert not services.approvals.holds(request.id)


async def test_who_is_back_too_late_is_told_that_the_call_did_not_run(services: Services) -> None:
    request = await a_kept_request(services)
    await services.decide(request, Answer.ALLOW_ONCE)
    await services.kept.give_up(request.id)

    with pytest.raises(ApprovalCancelledError, match="did not run: the caller came back too late"):
        await services.calls.resume(
            await services.kept.take(request.id), on_waiting=lambda _: None, on_running=lambda _: None
        )


async def test_what_was_allowed_does_not_run_if_the_rules_refuse_it_when_its_caller_is_back(services: Services) -> None:
    request = await a_kept_request(services)
    await services.decide(request, Answer.ALLOW_ONCE)
    services.approvals.abandoned.keeps = lambda _: False

    assert (await services.kept.take(request.id)).has_not_run


@pytest.mark.parametrize("steps", range(12))
async def test_a_process_that_ends_while_a_call_starts_leaves_it_or_says_that_it_did_not_run(
    services: Services, steps: int
) -> None:
    request = await a_kept_request(services)
    await services.decide(request, Answer.ALLOW_ONCE)
    taken = await services.kept.take(request.id)
    services.store.turns = 2
    call = asyncio.create_task(services.calls.resume(taken, on_waiting=lambda _: None, on_running=lambda _: None))
    for _ in range(steps):
        await asyncio.sleep(0)

    left = services.kept.leave()
    call.cancel()
    await asyncio.wait([call])
    await services.approvals.recorded()

    stored, calls = await services.stored(request.id), len(services.tools.calls)
    if left:
        assert (stored.status, stored.outcome, calls) == (Status.APPROVED, None, 0)
    else:
        assert stored.has_not_run == (calls == 0)
        assert not stored.is_open


@pytest.mark.parametrize("steps", range(8))
async def test_a_process_that_ends_while_a_call_is_allowed_loses_nothing(services: Services, steps: int) -> None:
    request = await a_kept_request(services)
    taken = await services.kept.take(request.id)
    call = asyncio.create_task(services.calls.resume(taken, on_waiting=lambda _: None, on_running=lambda _: None))
    await asyncio.sleep(0)
    services.store.turns = 2
    deciding = asyncio.create_task(services.decide(request, Answer.ALLOW_ONCE))
    for _ in range(steps):
        await asyncio.sleep(0)

    left = services.kept.leave()
    call.cancel()
    await asyncio.wait([call, deciding])
    await services.approvals.recorded()

    stored = await services.stored(request.id)
    if left:
        is_decided = deciding.exception() is None
        assert (stored.status, stored.outcome) == (Status.APPROVED if is_decided else Status.PENDING, None)
    else:
        assert stored.has_not_run
    assert services.tools.calls == []


@pytest.mark.parametrize("keeps", [True, False])
async def test_what_was_allowed_while_its_caller_was_away_outlives_the_next_process_too(
    services: Services, keeps: bool
) -> None:
    request = await a_kept_request(services)
    await services.decide(request, Answer.ALLOW_ONCE)
    assert services.kept.leave() == {request.id}
    services.approvals.abandoned.keeps = lambda _: keeps
    services.store.abandoned.append(request.id)

    await services.approvals.abandoned.look()

    stored = await services.stored(request.id)
    assert (len(services.kept.all()), stored.outcome is None, stored.has_not_run) == (int(keeps), keeps, not keeps)


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
        services.approvals.requests.forget(request.id)
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
