"""What a lasting answer of a person means for what waits, and for later calls."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, OutcomeState, Status
from jupyter_agentbox.core.calls import Origin, ToolCall
from jupyter_agentbox.core.grant_uses import Scope, Void
from jupyter_agentbox.core.grants import GrantTerms
from jupyter_agentbox.core.policy import Effect, Evaluation, Policy, Rule
from jupyter_agentbox.core.ports import ApprovalQuery
from jupyter_agentbox.core.reviewers import Reviewer, Via
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import (
    InvalidDecisionError,
    StorageError,
    ToolCallRejectedError,
    UnknownGrantError,
)
from jupyter_agentbox.services.calls.manager import FinishedCall
from jupyter_agentbox.storage.approvals import SqlApprovalStore, sqlite_url
from jupyter_agentbox.testing import FakeClock, FakeIds
from tests.services.conftest import Services, a_call

ADA = Reviewer(name="ada", via=Via.BROWSER)


async def echo(call: ToolCall, report: Any) -> Any:
    del report
    return dict(call.arguments)


class Calls:
    """Calls that run in tasks."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.tasks: list[asyncio.Task[FinishedCall]] = []

    async def ask(self, call: ToolCall, *, floor: Evaluation | None = None) -> ApprovalRequest:
        """Make a call and return its request as soon as it is stored."""
        seen = len(self.services.announcer.approvals)
        run = self.services.calls.run(call, on_waiting=lambda _: None, on_running=lambda _: None, floor=floor)
        self.tasks.append(asyncio.create_task(run))
        return await self.services.announcer.until(
            lambda request: (
                request.call is call and any(request is new for new in self.services.announcer.approvals[seen:])
            )
        )

    async def status_of(self, request: ApprovalRequest) -> Status:
        return (await self.services.approvals.get(request.id)).status

    async def end(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


@pytest.fixture
def calls(services: Services, jp_asyncio_loop: asyncio.AbstractEventLoop) -> Iterator[Calls]:
    for name in ("delete_order", "list_orders", "count_orders"):
        services.tools.tools[f"shop.{name}"] = echo
    reads: Any = {"readOnlyHint": True}
    for name in ("list_orders", "count_orders"):
        services.tools.descriptions[f"shop.{name}"] = ToolDescription(name=name, annotations=reads)
    calls = Calls(services)
    yield calls
    jp_asyncio_loop.run_until_complete(calls.end())
    services.grants.close()


def elsewhere(call: ToolCall, **origin: Any) -> ToolCall:
    return replace(call, origin=replace(call.origin, **origin), known_digest="")


async def grant(calls: Calls, request: ApprovalRequest, scope: Scope, **terms: Any) -> ApprovalRequest:
    answer = terms.pop("answer", Answer.ALLOW_ALWAYS)
    return await calls.services.decide(request, answer, grant=GrantTerms(scope=scope, **terms))


@pytest.mark.parametrize(
    ("answer", "status"), [(Answer.ALLOW_ALWAYS, Status.APPROVED), (Answer.REJECT_ALWAYS, Status.REJECTED)]
)
async def test_a_lasting_answer_without_terms_is_for_the_tool_until_its_kernel_ends(
    calls: Calls, answer: Answer, status: Status
) -> None:
    decided = await calls.services.decide(await calls.ask(a_call(id=1)), answer)
    later = await calls.ask(a_call(id=2))

    [given] = await calls.services.grants.list()
    assert (given.scope, given.kernel_id, given.used) == (Scope.KERNEL, "k1", 2)
    assert decided.decision is not None
    assert (decided.decision.grant, later.evaluation.grant, later.status) == (given.use, given.use, status)
    assert (await calls.ask(elsewhere(a_call(id=3), kernel_id="k2"))).status is Status.PENDING
    await calls.services.grants.forget("k1")
    assert (await calls.ask(a_call(id=4))).status is Status.PENDING
    assert await calls.services.store.grants() == []


async def test_an_answer_for_once_gives_no_grant(calls: Calls) -> None:
    await calls.services.decide(await calls.ask(a_call(id=1)), Answer.ALLOW_ONCE)
    assert await calls.services.grants.list() == []


@pytest.mark.parametrize("answer", [Answer.ALLOW_ALWAYS, Answer.REJECT_ALWAYS])
async def test_a_lasting_answer_to_a_call_of_no_kernel_is_for_that_call(calls: Calls, answer: Answer) -> None:
    await calls.services.decide(await calls.ask(elsewhere(a_call(id=1), kernel_id=None)), answer)
    assert await calls.services.grants.list() == []


async def test_terms_that_cannot_be_leave_the_request_as_it_was(calls: Calls) -> None:
    request = await calls.ask(a_call(id=1))
    for scope in (Scope.THREAD, Scope.USER, Scope.SERVER_READ_ONLY):
        with pytest.raises(InvalidDecisionError):
            await grant(calls, request, scope)
    assert await calls.status_of(request) is Status.PENDING


async def test_a_grant_answers_what_waits_within_its_scope_and_says_so(calls: Calls) -> None:
    first, second = await calls.ask(a_call(id=1)), await calls.ask(a_call(id=2))
    others = [
        await calls.ask(elsewhere(a_call(id=3), kernel_id="k2")),
        await calls.ask(replace(a_call(id=4), tool="list_orders")),
    ]
    calls.services.clock.advance(60)

    decided = await grant(calls, first, Scope.KERNEL)

    settled = await calls.services.approvals.get(second.id)
    assert decided.decision is not None
    assert settled.decision is not None
    assert (settled.status, settled.decision.answer, settled.decision.reviewer, settled.decision.grant) == (
        Status.APPROVED,
        Answer.ALLOW_ONCE,
        ADA,
        decided.decision.grant,
    )
    assert (await calls.tasks[1]).result.structured == {"id": 2}
    assert [await calls.status_of(other) for other in others] == [Status.PENDING] * 2
    assert len(calls.services.tools.calls) == 2


async def test_a_rejection_for_good_ends_what_waits_too(calls: Calls) -> None:
    first, second = await calls.ask(a_call(id=1)), await calls.ask(a_call(id=2))
    await calls.services.decide(first, Answer.REJECT_ALWAYS, reason="not today")
    assert await calls.status_of(second) is Status.REJECTED
    for task in (calls.tasks[1], calls.tasks[0]):
        with pytest.raises(ToolCallRejectedError, match="not today"):
            await task
    with pytest.raises(ToolCallRejectedError, match="by an earlier answer; it did not run: not today"):
        await calls.services.calls.run(a_call(id=3), on_waiting=print, on_running=print)


@pytest.mark.parametrize(
    "services", [{"policy": Policy((Rule(server="shop", tool="*", effect=Effect.ASK),))}], indirect=True
)
async def test_what_a_rule_asks_about_no_grant_answers(calls: Calls) -> None:
    first, second = await calls.ask(a_call(id=1)), await calls.ask(a_call(id=1))
    await grant(calls, first, Scope.CALL)
    assert await calls.status_of(second) is Status.PENDING
    assert (await calls.ask(a_call(id=1))).status is Status.PENDING


async def test_what_asks_for_a_reason_of_its_own_no_grant_answers(calls: Calls) -> None:
    rule = Rule(server="*", tool="*", effect=Effect.ASK, reason="found in the code")
    floor = Evaluation(effect=Effect.ASK, rule=rule)
    first, second = await calls.ask(a_call(id=1), floor=floor), await calls.ask(a_call(id=2), floor=floor)
    await grant(calls, first, Scope.KERNEL)
    assert (await calls.status_of(second), second.evaluation.rule) == (Status.PENDING, rule)
    assert (await calls.ask(a_call(id=3), floor=floor)).status is Status.PENDING
    assert (await calls.ask(a_call(id=3))).status is Status.APPROVED


async def test_one_call_again_is_that_call_as_it_ran(calls: Calls) -> None:
    request = await calls.ask(a_call(id=1))
    await calls.services.decide(request, Answer.ALLOW_ALWAYS, arguments={"id": 5}, grant=GrantTerms(scope=Scope.CALL))
    assert (await calls.ask(a_call(id=1))).status is Status.PENDING
    assert (await calls.ask(elsewhere(a_call(id=5), cell_id="c2"))).status is Status.APPROVED


async def test_tools_that_only_read_are_those_that_the_server_had(calls: Calls) -> None:
    request = await calls.ask(replace(a_call(id=1), tool="list_orders"))
    await grant(calls, request, Scope.SERVER_READ_ONLY)
    calls.services.tools.tools["shop.new"] = echo
    calls.services.tools.descriptions["shop.new"] = ToolDescription(name="new", annotations={"readOnlyHint": True})
    found = {name: (await calls.ask(replace(a_call(id=2), tool=name))).status for name in calls_of(calls)}
    assert found == {
        "list_orders": Status.APPROVED,
        "count_orders": Status.APPROVED,
        "delete_order": Status.PENDING,
        "new": Status.PENDING,
    }


def calls_of(calls: Calls) -> list[str]:
    return [name.removeprefix("shop.") for name in calls.services.tools.tools]


async def test_a_changed_tool_voids_a_grant_for_good_and_the_request_says_what_it_was(calls: Calls) -> None:
    await grant(calls, await calls.ask(a_call(id=1)), Scope.KERNEL)
    seen = ToolDescription(name="delete_order")
    calls.services.tools.descriptions["shop.delete_order"] = replace(seen, description="Deletes everything.")

    asked = await calls.ask(a_call(id=2))

    [given] = await calls.services.grants.list()
    assert asked.evaluation.voided is not None
    assert (asked.status, asked.evaluation.voided.void, asked.evaluation.voided.before) == (
        Status.PENDING,
        Void.DEFINITION,
        seen,
    )
    del calls.services.tools.descriptions["shop.delete_order"]
    again = await calls.ask(a_call(id=3))
    assert (again.status, given.void) == (Status.PENDING, Void.DEFINITION)
    await calls.services.decide(again, Answer.ALLOW_ALWAYS)
    assert [each.void for each in await calls.services.grants.list()] == [None]


async def test_another_server_of_the_same_name_voids_a_grant(calls: Calls) -> None:
    calls.services.trust_keys["shop"] = "one"
    first, second = await calls.ask(a_call(id=1)), await calls.ask(a_call(id=2))
    calls.services.trust_keys["shop"] = "other"
    # The person saw the first server's card.
    await grant(calls, first, Scope.KERNEL)
    assert await calls.status_of(second) is Status.PENDING
    asked = await calls.ask(a_call(id=3))
    assert asked.evaluation.voided is not None
    assert (asked.status, asked.evaluation.voided.void) == (Status.PENDING, Void.SERVER)


@pytest.mark.parametrize(
    ("now", "shown"),
    [
        ("shop\nenv: SHOP", ("shop --dry-run", "shop\nenv: SHOP")),
        ("shop --dry-run", ("", "")),  # what changed is a secret, which is in no text
    ],
)
async def test_a_request_shows_how_the_server_was_started_when_the_void_grant_was_given(
    calls: Calls, now: str, shown: tuple[str, str]
) -> None:
    calls.services.trust_keys["shop"], calls.services.entries["shop"] = "one", "shop --dry-run"
    await grant(calls, await calls.ask(a_call(id=1)), Scope.KERNEL)
    calls.services.trust_keys["shop"], calls.services.entries["shop"] = "other", now
    asked = await calls.ask(a_call(id=2))
    voided = asked.evaluation.voided
    assert voided is not None
    assert (voided.server_before, voided.server_now) == shown


async def test_a_request_from_before_a_change_voids_no_grant_from_after_it(calls: Calls) -> None:
    old = await calls.ask(a_call(id=1))
    calls.services.tools.descriptions["shop.delete_order"] = ToolDescription(name="delete_order", description="New.")
    await grant(calls, await calls.ask(a_call(id=2)), Scope.KERNEL)
    assert await calls.status_of(old) is Status.PENDING
    assert [each.void for each in await calls.services.grants.list()] == [None]


@pytest.mark.parametrize("turns", [0, 3])
async def test_a_grant_for_three_calls_answers_three_of_sixteen_that_wait(calls: Calls, turns: int) -> None:
    requests = [await calls.ask(a_call(id=n)) for n in range(16)]
    calls.services.store.turns = turns
    await grant(calls, requests[4], Scope.USER, uses=3)
    statuses = [await calls.status_of(request) for request in requests]
    assert (statuses.count(Status.APPROVED), statuses.count(Status.PENDING)) == (3, 13)
    await asyncio.gather(*(calls.tasks[n] for n, status in enumerate(statuses) if status is Status.APPROVED))
    assert len(calls.services.tools.calls) == 3
    assert await calls.services.grants.list() == []


@pytest.mark.parametrize("turns", [0, 3])
async def test_a_grant_for_three_calls_answers_two_more_of_sixteen_at_once(calls: Calls, turns: int) -> None:
    await grant(calls, await calls.ask(a_call(id=99)), Scope.USER, uses=3)
    calls.services.store.turns = turns
    requests = await asyncio.gather(*(calls.ask(a_call(id=n)) for n in range(16)))
    statuses = [request.status for request in requests]
    assert (statuses.count(Status.APPROVED), statuses.count(Status.PENDING)) == (2, 14)


async def test_what_is_revoked_answers_no_call_that_is_on_its_way(calls: Calls) -> None:
    await grant(calls, await calls.ask(a_call(id=1)), Scope.KERNEL)
    calls.services.store.turns = 3
    asking = asyncio.create_task(calls.ask(a_call(id=2)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    calls.services.store._grants.clear()  # as another server process does
    assert (await asking).status is Status.PENDING


async def test_a_grant_is_revoked_once(calls: Calls) -> None:
    await grant(calls, await calls.ask(a_call(id=1)), Scope.KERNEL)
    [given] = await calls.services.grants.list()
    await calls.services.grants.revoke(given.id, reviewer=ADA)
    with pytest.raises(UnknownGrantError):
        await calls.services.grants.revoke(given.id, reviewer=ADA)
    assert (await calls.ask(a_call(id=2))).status is Status.PENDING


async def test_a_rejection_that_could_not_be_revoked_goes_on_rejecting(calls: Calls) -> None:
    await calls.services.decide(await calls.ask(a_call(id=1)), Answer.REJECT_ALWAYS)
    [given] = await calls.services.grants.list()
    calls.services.store.failure = StorageError("full")
    with pytest.raises(StorageError):
        await calls.services.grants.revoke(given.id, reviewer=ADA)
    calls.services.store.failure = None
    assert (await calls.ask(a_call(id=2))).status is Status.REJECTED


async def test_a_grant_ends_at_its_time(calls: Calls) -> None:
    until = calls.services.clock.now() + timedelta(minutes=5)
    await grant(calls, await calls.ask(a_call(id=1)), Scope.USER, until=until)
    assert (await calls.ask(elsewhere(a_call(id=2), kernel_id="k2"))).status is Status.APPROVED
    calls.services.clock.advance(300)
    assert (await calls.ask(a_call(id=3))).status is Status.PENDING


async def test_a_thread_is_granted_code_and_another_thread_is_not(calls: Calls) -> None:
    ours = elsewhere(a_call(id=1), thread_id="t1", turn_id="u1")
    waiting = [
        await calls.ask(ours),
        await calls.ask(elsewhere(ours, turn_id="u2")),
        await calls.ask(elsewhere(ours, thread_id="t2")),
        await calls.ask(a_call(id=1)),
    ]
    await grant(calls, waiting[0], Scope.THREAD)
    assert [await calls.status_of(request) for request in waiting] == [*[Status.APPROVED] * 2, *[Status.PENDING] * 2]


async def test_grants_for_all_kernels_and_their_count_outlive_the_server(tmp_path: Path) -> None:
    url = sqlite_url(str(tmp_path / "approvals.db"))
    clock = FakeClock()
    for number, expected in enumerate([Status.PENDING, Status.APPROVED, Status.APPROVED, Status.PENDING]):
        async with SqlApprovalStore(url, clock=clock) as store:
            ours = Services(store=store, clock=clock, ids=FakeIds(f"r{number}-"))  # type: ignore[arg-type]  # a store of the product
            ours.tools.tools["shop.delete_order"] = echo
            await ours.approvals.abandoned.recover()
            await ours.grants.load()
            calls = Calls(ours)
            call = elsewhere(a_call(id=number), kernel_id=f"k{number}")
            request = await calls.ask(call)
            assert request.status is expected
            if number == 0:
                await grant(calls, request, Scope.USER, uses=3)
            await calls.end()
            await ours.approvals.recorded()
            ours.grants.close()


async def test_sixteen_calls_at_once_in_two_server_processes_have_three_uses(tmp_path: Path) -> None:
    url = sqlite_url(str(tmp_path / "approvals.db"))
    clock = FakeClock()
    async with SqlApprovalStore(url, clock=clock) as one, SqlApprovalStore(url, clock=clock) as two:
        servers = [
            Services(store=store, clock=clock, ids=FakeIds(prefix))  # type: ignore[arg-type]  # as above
            for store, prefix in ((one, "r"), (two, "s"))
        ]
        groups = [Calls(each) for each in servers]
        for each in servers:
            each.tools.tools["shop.delete_order"] = echo
        await grant(groups[0], await groups[0].ask(a_call(id=99)), Scope.USER, uses=4)
        await servers[1].grants.load()
        requests = await asyncio.gather(*(groups[n % 2].ask(a_call(id=n)) for n in range(16)))
        statuses = [request.status for request in requests]
        assert (statuses.count(Status.APPROVED), statuses.count(Status.PENDING)) == (3, 13)
        for each in groups:
            await each.end()
        for server in servers:
            await server.approvals.recorded()
            server.grants.close()


async def test_the_grants_of_a_kernel_end_with_its_server(tmp_path: Path) -> None:
    url = sqlite_url(str(tmp_path / "approvals.db"))
    for expected in ("given", "gone"):
        async with SqlApprovalStore(url, clock=FakeClock()) as store:
            services = Services(store=store, ids=FakeIds(expected))  # type: ignore[arg-type]  # as above
            services.tools.tools["shop.delete_order"] = echo
            await services.approvals.abandoned.recover()
            await services.grants.load()
            assert await services.grants.list() == []
            if expected == "given":
                calls = Calls(services)
                await grant(calls, await calls.ask(a_call(id=1)), Scope.KERNEL)
                await calls.end()
                assert len(await services.grants.list()) == 1
            await services.approvals.recorded()
            services.grants.close()


async def test_a_settled_call_has_run_once_however_it_was_answered(calls: Calls) -> None:
    requests = [await calls.ask(a_call(id=n)) for n in range(8)]
    calls.services.store.turns = 2
    answers = [grant(calls, request, Scope.KERNEL) for request in requests[:3]]
    once = [calls.services.decide(request, Answer.REJECT_ONCE) for request in requests[3:6]]
    await asyncio.gather(*answers, *once, return_exceptions=True)
    await asyncio.gather(*calls.tasks, return_exceptions=True)
    await calls.services.approvals.recorded()
    page = await calls.services.approvals.list(ApprovalQuery())
    ran = [request for request in page.approvals if request.outcome_state is OutcomeState.SUCCEEDED]
    assert (
        len(ran) == len(calls.services.tools.calls) == len({str(call.arguments) for call in calls.services.tools.calls})
    )
    assert {request.status for request in page.approvals} <= {Status.APPROVED, Status.REJECTED}


async def test_a_kernel_that_calls_itself_another_has_none_of_its_grants(calls: Calls) -> None:
    await grant(calls, await calls.ask(a_call(id=1)), Scope.KERNEL)
    origin = Origin(kernel_id="k2", notebook_path="a.ipynb", cell_id="c1")
    assert (await calls.ask(replace(a_call(id=1), origin=origin, known_digest=""))).status is Status.PENDING
