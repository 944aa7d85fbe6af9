"""What is kept of long arguments and of requests that ended, and that removing gives the disk back."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, Lapse, Outcome, OutcomeState, Status
from jupyter_agentbox.core.policy import Effect, Evaluation, Rule
from jupyter_agentbox.core.ports import ApprovalQuery
from jupyter_agentbox.storage.approvals import SqlApprovalStore, sqlite_url
from jupyter_agentbox.storage.retention import RetentionLimits
from jupyter_agentbox.storage.schema import MIGRATIONS
from jupyter_agentbox.testing import FakeClock
from tests.samples import NOON, a_call, a_decision, a_request

SIZE = 200_000


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        made: str = request.getfixturevalue("make_postgresql_database")()
        return made
    return sqlite_url(str(tmp_path / "approvals.db"))


def a_store(url: str, clock: FakeClock | None = None, **limits: Any) -> SqlApprovalStore:
    return SqlApprovalStore(url, clock=clock or FakeClock(), limits=RetentionLimits(**limits))


def a_long_request(id: str, size: int = SIZE, **changes: Any) -> ApprovalRequest:
    return a_request(id, call=a_call(arguments={"order_id": 7, "text": "x" * size}), **changes)


async def end(store: SqlApprovalStore, request: ApprovalRequest, how: Lapse | Answer) -> ApprovalRequest:
    if isinstance(how, Lapse):
        ended = request.lapse(how)
        assert await store.replace_if(ended, status=Status.PENDING, outcome=None)
        return ended
    decided = request.decide(a_decision(request, how))
    if how.allows:
        decided = decided.with_outcome(Outcome(state=OutcomeState.RUNNING, started_at=NOON))
    assert await store.replace_if(decided, status=Status.PENDING, outcome=None)
    if not how.allows:
        return decided
    done = decided.with_outcome(Outcome(state=OutcomeState.SUCCEEDED, started_at=NOON, finished_at=NOON))
    assert await store.replace_if(done, status=Status.APPROVED, outcome=OutcomeState.RUNNING)
    return done


async def test_a_list_has_the_digest_and_the_beginning_of_long_arguments(url: str) -> None:
    request = a_long_request("r1")
    async with a_store(url) as store:
        await store.add(request)
        await store.add(a_request("r0"))
        [listed] = [one for one in (await store.list(ApprovalQuery())).approvals if one.id == "r1"]

        assert listed.call.arguments == {}
        assert listed.call.omitted is not None
        assert listed.call.omitted.size > SIZE
        assert listed.call.omitted.head.startswith('{"order_id":7,"text":"xxx')
        assert listed.call.digest == request.call.digest
        assert await store.get("r1") == request
        assert replace(await store.get("r0"), id="r1") == a_request("r1")


@pytest.mark.parametrize("lapse", Lapse)
async def test_long_arguments_of_what_nobody_decided_go_with_its_end(url: str, lapse: Lapse) -> None:
    request = a_long_request("r1")
    async with a_store(url) as store:
        await store.add(request)
        await end(store, request, lapse)
        ended = await store.get("r1")

    assert (ended.call.arguments, ended.call.omitted is None) == ({}, False)
    assert ended.call.digest == request.call.digest


@pytest.mark.parametrize("answer", [Answer.ALLOW_ONCE, Answer.REJECT_ONCE])
async def test_long_arguments_of_what_was_decided_are_kept_up_to_the_limit_the_latest(url: str, answer: Answer) -> None:
    clock = FakeClock()
    async with a_store(url, clock, long_arguments=2 * SIZE + 10_000) as store:
        for number in range(4):
            clock.advance(1)
            request = a_long_request(f"r{number}")
            await store.add(request)
            await end(store, request, answer)
        await store.add(a_long_request("open"))
    async with a_store(url) as store:
        kept = [(await store.get(f"r{number}")).call.omitted is None for number in range(4)]
        assert kept[:2] == [False, False]
        assert kept[3]
        assert (await store.get("open")).call.omitted is None


async def test_asking_and_withdrawing_without_end_does_not_make_the_database_grow(tmp_path: Path) -> None:
    path = tmp_path / "approvals.db"
    async with a_store(sqlite_url(str(path))) as store:
        for number in range(60):
            request = a_long_request(f"r{number}", 1_000_000)
            await store.add(request)
            await end(store, request, Lapse.WITHDRAWN)
    assert sum(file.stat().st_size for file in tmp_path.glob("approvals.db*")) < 8_000_000


async def test_what_is_removed_is_given_back_to_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "approvals.db"
    async with a_store(sqlite_url(str(path)), bytes=None, long_arguments=None) as store:
        for number in range(20):
            request = a_long_request(f"r{number}", 1_000_000)
            await store.add(request)
            await end(store, request, Answer.ALLOW_ONCE)
    assert path.stat().st_size > 20_000_000
    async with a_store(sqlite_url(str(path)), bytes=None, long_arguments=1_000_000) as store:
        await store.add(a_long_request("last"))
    assert path.stat().st_size < 4_000_000


async def test_requests_that_are_too_old_are_removed_and_open_ones_stay(url: str) -> None:
    clock = FakeClock()
    async with a_store(url, clock, days=7, long_arguments=100) as store:
        for id in ("old", "waits"):
            await store.add(a_long_request(id, created_at=NOON - timedelta(days=8)))
        await store.add(young := a_request("young", created_at=NOON - timedelta(days=6)))
        await end(store, young, Answer.ALLOW_ONCE)
        await end(store, await store.get("old"), Answer.ALLOW_ONCE)
        await store.add(a_long_request("last"))
        await asyncio.sleep(0)
    async with a_store(url) as store:
        assert {one.id for one in (await store.list(ApprovalQuery(ids=("old", "waits", "young")))).approvals} == {
            "waits",
            "young",
        }


async def test_what_nobody_decided_is_removed_before_any_decision(url: str) -> None:
    clock = FakeClock()
    async with a_store(url, clock, bytes=15_000) as store:
        decisions = [a_request(f"d{number}", created_at=NOON - timedelta(days=2)) for number in range(5)]
        for request in decisions:
            await store.add(request)
            await end(store, request, Answer.REJECT_ONCE)
        for number in range(100):
            await store.add(request := a_request(f"r{number}", created_at=NOON + timedelta(seconds=number)))
            await end(store, request, Lapse.WITHDRAWN)
    async with a_store(url, bytes=None) as store:
        left = {one.id for one in (await store.list(ApprovalQuery(limit=500))).approvals}
    assert {request.id for request in decisions} <= left
    assert "r0" not in left
    assert "r99" in left


async def flood(store: SqlApprovalStore, effect: Effect, *, count: int, size: int = 3) -> None:
    """Keep calls that a rule decided, with texts that pretend to be an answer."""
    pretence = '{"decision":{"answer":"allow_once"}}'
    rule = Rule(server="shop", tool="*", effect=effect, reason=pretence)
    for number in range(count):
        request = a_long_request(
            f"{effect.value}{number}",
            size,
            evaluation=Evaluation(effect=effect, rule=rule),
            created_at=NOON + timedelta(seconds=number),
        )
        if effect is Effect.DENY:
            await store.add(request)
            continue
        running = request.with_outcome(Outcome(state=OutcomeState.RUNNING, started_at=NOON))
        await store.add(running)
        done = running.with_outcome(
            Outcome(state=OutcomeState.FAILED, started_at=NOON, finished_at=NOON, error=pretence)
        )
        assert await store.replace_if(done, status=Status.APPROVED, outcome=OutcomeState.RUNNING)


@pytest.mark.parametrize("effect", [Effect.ALLOW, Effect.DENY])
async def test_calls_that_a_rule_decides_push_no_answer_out(url: str, effect: Effect) -> None:
    async with a_store(url, bytes=15_000) as store:
        await store.add(request := a_request("decided", created_at=NOON - timedelta(days=2)))
        await end(store, request, Answer.ALLOW_ONCE)
        await flood(store, effect, count=100)
    async with a_store(url, bytes=None) as store:
        left = {one.id for one in (await store.list(ApprovalQuery(limit=500))).approvals}
    assert "decided" in left
    assert f"{effect.value}0" not in left
    assert f"{effect.value}99" in left


async def test_what_a_rule_denies_is_removed_before_what_it_allowed(url: str) -> None:
    async with a_store(url, bytes=15_000) as store:
        await flood(store, Effect.ALLOW, count=5)
        await flood(store, Effect.DENY, count=100)
    async with a_store(url, bytes=None) as store:
        left = {one.id for one in (await store.list(ApprovalQuery(limit=500))).approvals}
    assert {f"allow{number}" for number in range(5)} <= left
    assert "deny0" not in left


async def test_what_was_answered_goes_when_nothing_else_is_left(url: str) -> None:
    async with a_store(url, bytes=5_000) as store:
        for number in range(50):
            await store.add(request := a_request(f"d{number:02}", created_at=NOON + timedelta(seconds=number)))
            await end(store, request, Answer.ALLOW_ONCE)
    async with a_store(url, bytes=None) as store:
        left = {one.id for one in (await store.list(ApprovalQuery(limit=500))).approvals}
    assert "d00" not in left
    assert "d49" in left


async def test_long_arguments_of_calls_that_a_rule_allows_push_out_none_of_an_answer(url: str) -> None:
    async with a_store(url, long_arguments=2 * SIZE + 10_000) as store:
        await store.add(request := a_long_request("decided", created_at=NOON - timedelta(days=2)))
        await end(store, request, Answer.ALLOW_ONCE)
        await flood(store, Effect.ALLOW, count=10, size=SIZE)
    async with a_store(url) as store:
        assert (await store.get("decided")).call.omitted is None
        assert (await store.get("allow0")).call.omitted is not None


async def test_requests_are_listed_by_id_wherever_they_wait(url: str) -> None:
    async with a_store(url) as one, a_store(url) as other:
        for store, id in ((one, "r1"), (other, "r2"), (other, "r3")):
            await store.add(a_request(id))
        page = await one.list(ApprovalQuery(ids=("r1", "r2", "r9")))
        assert {request.id for request in page.approvals} == {"r1", "r2"}


async def test_a_database_of_before_is_brought_up_to_date_with_what_it_has(tmp_path: Path) -> None:
    url = sqlite_url(str(tmp_path / "approvals.db"))
    engine = create_engine(url)
    with engine.begin() as connection:
        for statement in MIGRATIONS[0]:
            connection.execute(text(statement.format(blob="BLOB")))
        connection.execute(text("CREATE TABLE agentbox_schema (version INTEGER NOT NULL)"))
        connection.execute(text("INSERT INTO agentbox_schema VALUES (1)"))
    engine.dispose()
    async with a_store(url) as store:
        await store.add(a_long_request("r1"))
        assert await store.get("r1") == a_long_request("r1")
