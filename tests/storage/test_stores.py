"""What every `ApprovalStore` does; run on each of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Protocol

import pytest

from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, Lapse, Outcome, OutcomeState, Status
from jupyter_agentbox.core.approvers import Approvers
from jupyter_agentbox.core.calls import Origin
from jupyter_agentbox.core.grant_uses import Scope, Void
from jupyter_agentbox.core.grants import Grant
from jupyter_agentbox.core.policy import Effect, Evaluation, Layer, Rule
from jupyter_agentbox.core.ports import ApprovalPage, ApprovalQuery, ApprovalStore, GrantStore
from jupyter_agentbox.core.reviewers import Reviewer
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import StorageError, UnknownApprovalError
from jupyter_agentbox.storage.approvals import SqlApprovalStore, sqlite_url
from jupyter_agentbox.testing import FakeClock, MemoryApprovalStore
from tests.samples import ADA, NOON, a_call, a_decision, a_request


class AnyStore(ApprovalStore, GrantStore, Protocol):
    """Keeps requests and grants."""


def url_of(kind: str, directory: Path, request: pytest.FixtureRequest) -> str:
    if kind == "postgresql":
        url: str = request.getfixturevalue("make_postgresql_database")()
        return url
    return "sqlite://" if kind == "sqlite in memory" else sqlite_url(str(directory / "new" / "approvals.db"))


@pytest.fixture(params=["memory", "wal", "delete", "sqlite in memory", "postgresql"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, jp_asyncio_loop: asyncio.AbstractEventLoop
) -> Iterator[ApprovalStore]:
    if request.param == "memory":
        yield MemoryApprovalStore()
        return
    sql = SqlApprovalStore(
        url_of(request.param, tmp_path, request),
        clock=FakeClock(),
        journal_mode="delete" if request.param == "delete" else "wal",
    )
    jp_asyncio_loop.run_until_complete(sql.open())
    yield sql
    jp_asyncio_loop.run_until_complete(sql.aclose())


async def test_a_request_reads_back_as_it_was_kept(store: ApprovalStore) -> None:
    await store.add(a_request())

    assert await store.get("r1") == a_request()


async def test_an_unknown_id_is_an_error(store: ApprovalStore) -> None:
    for request_id in ("r1", "", "\0", "\ud800", "' OR 1=1 --"):
        with pytest.raises(UnknownApprovalError):
            await store.get(request_id)


async def test_an_id_is_kept_once(store: ApprovalStore) -> None:
    await store.add(a_request())

    with pytest.raises(StorageError):
        await store.add(a_request(call=a_call(tool="other")))

    assert await store.get("r1") == a_request()


async def test_one_request_that_cannot_be_kept_does_not_harm_those_that_come_with_it(store: ApprovalStore) -> None:
    await store.add(a_request("r3"))

    results = await asyncio.gather(*(store.add(a_request(f"r{n}")) for n in range(6)), return_exceptions=True)

    assert [type(result) for result in results] == [*[bool] * 3, StorageError, *[bool] * 2]
    assert len((await store.list(ApprovalQuery())).approvals) == 6


async def test_the_whole_life_of_a_request_is_kept(store: ApprovalStore) -> None:
    asked = a_request()
    approved = asked.decide(a_decision(asked, arguments={"order_id": 8}, reason="fine", tell=True))
    running = approved.with_outcome(Outcome(state=OutcomeState.RUNNING, started_at=NOON))
    ended = running.with_outcome(Outcome(state=OutcomeState.FAILED, started_at=NOON, finished_at=NOON, error="no"))

    await store.add(asked)
    for before, after in [(asked, approved), (approved, running), (running, ended)]:
        assert await store.replace_if(after, status=before.status, outcome=before.outcome_state)
        assert await store.get("r1") == after


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (Status.PENDING, None),
        (Status.REJECTED, None),
        (Status.APPROVED, None),
        (Status.APPROVED, OutcomeState.SUCCEEDED),
    ],
)
async def test_a_request_that_changed_meanwhile_is_not_replaced(
    store: ApprovalStore, status: Status, outcome: OutcomeState | None
) -> None:
    asked = a_request()
    approved = asked.decide(a_decision(asked))
    running = approved.with_outcome(Outcome(state=OutcomeState.RUNNING))
    await store.add(running)

    assert not await store.replace_if(approved, status=status, outcome=outcome)
    assert await store.get("r1") == running


async def test_an_unknown_request_is_not_replaced(store: ApprovalStore) -> None:
    assert not await store.replace_if(a_request(), status=Status.PENDING, outcome=None)
    with pytest.raises(UnknownApprovalError):
        await store.get("r1")


async def test_of_many_decisions_at_once_one_is_kept(store: ApprovalStore) -> None:
    asked = a_request()
    await store.add(asked)
    decided = [
        asked.decide(a_decision(asked, answer, reviewer=Reviewer(name=f"p{n}"))) for n in range(10) for answer in Answer
    ]

    written = await asyncio.gather(
        *(store.replace_if(request, status=Status.PENDING, outcome=None) for request in decided)
    )

    assert written.count(True) == 1
    assert await store.get("r1") == decided[written.index(True)]


async def kept(store: ApprovalStore, *requests: ApprovalRequest) -> None:
    await asyncio.gather(*(store.add(request) for request in requests))


def ids_of(page: ApprovalPage) -> list[str]:
    return [request.id for request in page.approvals]


async def test_lists_are_newest_first_and_of_one_time_by_id(store: ApprovalStore) -> None:
    later = NOON + timedelta(microseconds=1)
    await kept(store, a_request("b"), a_request("z", created_at=later), a_request("a"), a_request("c"))

    assert ids_of(await store.list(ApprovalQuery())) == ["z", "c", "b", "a"]


async def test_pages_follow_each_other_without_gap_or_repetition(store: ApprovalStore) -> None:
    await kept(store, *(a_request(f"r{n}", created_at=NOON + timedelta(seconds=n // 3)) for n in range(10)))
    whole = ids_of(await store.list(ApprovalQuery()))

    pages, cursor = [], None
    while True:
        page = await store.list(ApprovalQuery(limit=3, cursor=cursor))
        pages.append(ids_of(page))
        cursor = page.next
        if cursor is None:
            break

    assert [len(page) for page in pages] == [3, 3, 3, 1]
    assert [id for page in pages for id in page] == whole


async def test_a_page_stays_where_it_is_when_newer_requests_come(store: ApprovalStore) -> None:
    await kept(store, a_request("a"), a_request("b"))
    first = await store.list(ApprovalQuery(limit=1))

    await kept(store, a_request("c", created_at=NOON + timedelta(seconds=1)))

    assert ids_of(first) == ["b"]
    assert ids_of(await store.list(ApprovalQuery(cursor=first.next))) == ["a"]


async def test_a_full_last_page_has_no_next(store: ApprovalStore) -> None:
    await kept(store, a_request("a"), a_request("b"))

    assert (await store.list(ApprovalQuery(limit=2))).next is None


async def test_lists_are_filtered_by_all_that_is_asked(store: ApprovalStore) -> None:
    def call(kernel_id: str | None, path: str | None) -> dict[str, object]:
        return {"call": a_call(origin=Origin(kernel_id=kernel_id, notebook_path=path))}

    asked = a_request("rejected", **call("k1", "a.ipynb"))
    await kept(
        store,
        a_request("k1a", **call("k1", "a.ipynb")),
        a_request("k2a", **call("k2", "a.ipynb")),
        a_request("k2b", **call("k2", "b.ipynb")),
        a_request("odd", **call("\ud800", "\\ud800")),
        a_request("none", **call(None, None)),
        asked.decide(a_decision(asked, Answer.REJECT_ONCE)),
        replace(a_request("expired"), status=Status.EXPIRED),
    )

    async def found(**query: object) -> list[str]:
        return sorted(ids_of(await store.list(ApprovalQuery(**query))))  # type: ignore[arg-type]

    assert await found(kernel_id="k2") == ["k2a", "k2b"]
    assert await found(notebook_path="a.ipynb") == ["k1a", "k2a", "rejected"]
    assert await found(notebook_path="a.ipynb", kernel_id="k1") == ["k1a", "rejected"]
    assert await found(notebook_path="a.ipynb", kernel_id="k1", statuses=(Status.PENDING,)) == ["k1a"]
    assert await found(statuses=(Status.REJECTED, Status.EXPIRED)) == ["expired", "rejected"]
    assert await found(kernel_id="\ud800") == ["odd"]
    assert await found(kernel_id="\\ud800") == []
    assert await found(notebook_path="\\ud800") == ["odd"]
    assert await found(notebook_path="%") == []


async def test_a_cursor_that_is_none_is_a_value_error(store: ApprovalStore) -> None:
    for cursor in ("", "x", "\ud800", "WzEsMl0="):
        with pytest.raises(ValueError):
            await store.list(ApprovalQuery(cursor=cursor))


async def test_nothing_is_abandoned_while_its_owner_lives(store: ApprovalStore) -> None:
    await store.add(a_request())

    assert list(await store.adopt_abandoned()) == []


async def test_requests_of_all_times_are_kept_in_order(store: ApprovalStore) -> None:
    times = [NOON.replace(year=year) for year in (1960, 1970, 2026, 9999)]
    await kept(store, *(a_request(f"r{time.year}", created_at=time) for time in times))

    assert ids_of(await store.list(ApprovalQuery())) == ["r9999", "r2026", "r1970", "r1960"]


async def test_a_lapsed_request_is_kept_and_final(store: ApprovalStore) -> None:
    await store.add(a_request())

    assert await store.replace_if(a_request().lapse(Lapse.TIMED_OUT), status=Status.PENDING, outcome=None)
    assert (await store.get("r1")).status is Status.EXPIRED


GRANT = Grant(
    id="g\\1",
    effect=Effect.ALLOW,
    scope=Scope.USER,
    server="shop",
    tool="delete_order",
    granter=ADA,
    granted_at=NOON,
    request_id="r1",
    trust_key="k",
    server_entry="shop\nenv: SHOP_KEY",
    definitions={"delete_order": "d"},
    seen=ToolDescription(name="delete_order", annotations={"decision": {"answer": "\ud800"}}),
    until=NOON + timedelta(days=1),
    uses=3,
    reason="fine",
    used=1,
    last_used_at=NOON,
)


async def give(store: AnyStore) -> None:
    asked = a_request()
    await store.add(asked)
    decided = asked.decide(a_decision(asked, Answer.ALLOW_ALWAYS, grant=GRANT.use))
    assert await store.replace_if(decided, status=Status.PENDING, outcome=None, grant=GRANT)


async def test_a_grant_is_kept_with_the_decision_that_gives_it(store: AnyStore) -> None:
    await give(store)
    assert await store.grants() == [GRANT]
    await store.void_grant(GRANT.id, Void.SERVER)
    assert await store.grants() == [replace(GRANT, void=Void.SERVER)]
    await store.end_grants([GRANT.id])
    assert await store.grants() == []


async def test_a_decision_that_comes_too_late_gives_no_grant(store: AnyStore) -> None:
    asked = a_request()
    await store.add(asked.lapse(Lapse.WITHDRAWN))
    decided = asked.decide(a_decision(asked, Answer.ALLOW_ALWAYS, grant=GRANT.use))
    assert not await store.replace_if(decided, status=Status.PENDING, outcome=None, grant=GRANT)
    assert await store.grants() == []


async def test_no_more_is_kept_than_a_grant_has_uses(store: AnyStore) -> None:
    await give(store)
    waiting = a_request("waiting")
    await store.add(waiting)
    settled = waiting.decide(a_decision(waiting, grant=GRANT.use))
    allowed = Evaluation(effect=Effect.ALLOW, grant=GRANT.use)
    later = NOON + timedelta(minutes=1)

    assert await store.replace_if(settled, status=Status.PENDING, outcome=None)
    assert not await store.replace_if(settled, status=Status.PENDING, outcome=None)  # no use is lost by that
    assert await asyncio.gather(
        *(store.add(a_request(f"n{n}", evaluation=allowed, created_at=later)) for n in range(4))
    ) == [True, False, False, False]
    [grant] = await store.grants()
    assert (grant.used, grant.last_used_at) == (3, later)
    assert len((await store.list(ApprovalQuery())).approvals) == 3


@pytest.mark.parametrize("end", ["void", "end"])
async def test_a_grant_that_has_ended_answers_nothing(store: AnyStore, end: str) -> None:
    await give(store)
    await (store.void_grant(GRANT.id, Void.SERVER) if end == "void" else store.end_grants([GRANT.id]))
    allowed = Evaluation(effect=Effect.ALLOW, grant=GRANT.use)
    assert not await store.add(a_request("n", evaluation=allowed))
    with pytest.raises(UnknownApprovalError):
        await store.get("n")


async def test_of_two_approvals_that_are_given_at_once_none_is_written_over(store: ApprovalStore) -> None:
    """The later one has to look again, and then counts, too; so has who decides by fewer than there are."""
    rule = Rule(
        effect=Effect.ASK,
        server="*",
        tool="*",
        layer=Layer.SITE,
        approvers=Approvers(group="stewards", count=3),
    )
    asked = a_request(evaluation=Evaluation(effect=Effect.ASK, rule=rule))
    await store.add(asked)
    bob, cleo, dan = (a_decision(asked, reviewer=Reviewer(name=name)) for name in ("bob", "cleo", "dan"))

    written = await asyncio.gather(
        *(store.replace_if(asked.endorse(vote), status=Status.PENDING, outcome=None) for vote in (bob, cleo))
    )
    assert sorted(written) == [False, True]
    first = await store.get("r1")
    late = cleo if first.votes == (bob,) else bob
    assert not await store.replace_if(asked.decide(dan), status=Status.PENDING, outcome=None)
    assert await store.replace_if(first.endorse(late), status=Status.PENDING, outcome=None)
    both = await store.get("r1")
    assert {vote.reviewer.name for vote in both.votes} == {"bob", "cleo"}
    assert await store.replace_if(both.decide(dan), status=Status.PENDING, outcome=None)
    assert (await store.get("r1")).votes == both.votes
