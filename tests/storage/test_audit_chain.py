"""The audit chain: whatever is changed in the database after it was recorded is found."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, create_engine, text

from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, Lapse, Outcome, OutcomeState, Status
from jupyter_agentbox.core.audit import Head, Part
from jupyter_agentbox.core.policy import Effect, Evaluation, Rule
from jupyter_agentbox.core.questions import QuestionAction, QuestionMode, QuestionRecord
from jupyter_agentbox.core.redaction import REDACTED, Redaction
from jupyter_agentbox.storage import audit_chain
from jupyter_agentbox.storage.approvals import SqlApprovalStore, sqlite_url
from jupyter_agentbox.storage.audit_verification import Verification, verify
from jupyter_agentbox.storage.retention import RetentionLimits
from jupyter_agentbox.storage.schema import MIGRATIONS
from jupyter_agentbox.testing import FakeClock
from tests.samples import ADA, NOON, a_call, a_decision, a_request

LONG = {"order_id": 7, "text": "x" * 20_000}
RULED = Evaluation(effect=Effect.ALLOW, rule=Rule(server="shop", tool="*", effect=Effect.ALLOW))
DENIED = Evaluation(effect=Effect.DENY, rule=Rule(server="shop", tool="*", effect=Effect.DENY))


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        made: str = request.getfixturevalue("make_postgresql_database")()
        return made
    return sqlite_url(str(tmp_path / "approvals.db"))


def a_store(url: str, **limits: Any) -> SqlApprovalStore:
    return SqlApprovalStore(url, clock=FakeClock(), limits=RetentionLimits(**limits))


def checked(url: str, known: Head | None = None) -> Verification:
    engine = create_engine(url)

    def reading() -> AbstractContextManager[Connection]:
        return engine.begin()

    try:
        return verify(reading, known)
    finally:
        engine.dispose()


async def settle(store: SqlApprovalStore, request: ApprovalRequest, how: Answer | Lapse) -> None:
    """Bring a stored request to an end."""
    if isinstance(how, Lapse):
        assert await store.replace_if(request.lapse(how), status=Status.PENDING, outcome=None)
        return
    decided = request.decide(a_decision(request, how, reason="fine"))
    if not how.allows:
        assert await store.replace_if(decided, status=Status.PENDING, outcome=None)
        return
    running = decided.with_outcome(Outcome(state=OutcomeState.RUNNING, started_at=NOON))
    assert await store.replace_if(running, status=Status.PENDING, outcome=None)
    await finish(store, running)


async def finish(store: SqlApprovalStore, running: ApprovalRequest) -> None:
    done = running.with_outcome(Outcome(state=OutcomeState.SUCCEEDED, started_at=NOON, finished_at=NOON))
    assert await store.replace_if(done, status=Status.APPROVED, outcome=OutcomeState.RUNNING)


async def test_a_question_that_is_kept_while_a_call_runs_breaks_no_chain(tmp_path: Path) -> None:
    record = QuestionRecord(
        mode=QuestionMode.FORM,
        message="How many?",
        url="",
        action=QuestionAction.ACCEPT,
        content=(("outcome", 3), ("password", "hunter2"), ("x", 'a,"outcome":b')),
        reviewer=ADA,
        asked_at=NOON,
        answered_at=NOON,
    )
    url = sqlite_url(str(tmp_path / "approvals.sqlite"))
    async with SqlApprovalStore(url, clock=FakeClock(), redaction=Redaction()) as store:
        request = a_request("asks").decide(a_decision(a_request("asks")))
        running = request.with_outcome(Outcome(state=OutcomeState.RUNNING, started_at=NOON))
        await store.add(running)
        asked = replace(running, outcome=Outcome(state=OutcomeState.RUNNING, started_at=NOON, questions=(record,)))
        assert await store.replace_if(asked, status=Status.APPROVED, outcome=OutcomeState.RUNNING)
        ended = Outcome(state=OutcomeState.SUCCEEDED, started_at=NOON, finished_at=NOON, questions=(record,))
        assert await store.replace_if(
            replace(asked, outcome=ended), status=Status.APPROVED, outcome=OutcomeState.RUNNING
        )
        kept = (await store.get("asks")).outcome
    assert kept is not None
    assert dict(kept.questions[0].content) == {"outcome": 3, "password": REDACTED, "x": 'a,"outcome":b'}
    assert b"hunter2" not in (tmp_path / "approvals.sqlite").read_bytes()
    assert checked(url).broken is None


async def fill(store: SqlApprovalStore) -> None:
    """Keep a request of each kind: answered, lapsed, ruled, with long arguments, running and waiting."""
    for number, how in enumerate([*Answer, *Lapse]):
        request = a_request(f"r{number}", created_at=NOON + timedelta(seconds=number))
        await store.add(request)
        await settle(store, request, how)
    long = a_request("long", call=a_call(arguments=LONG))
    await store.add(long)
    await settle(store, long, Answer.ALLOW_ONCE)
    ruled = a_request("ruled", evaluation=RULED).with_outcome(Outcome(state=OutcomeState.RUNNING, started_at=NOON))
    await store.add(ruled)
    await finish(store, ruled)
    await store.add(a_request("denied", evaluation=DENIED))
    await store.add(a_request("waits"))
    await store.add(replace(ruled, id="runs"))


async def test_what_nobody_changed_is_found_intact(url: str) -> None:
    async with a_store(url) as store:
        await fill(store)
        found = checked(url)

    assert found.broken is None
    # Approved ones have two entries, the others one; what waits has none.
    assert (found.head.number, found.records, found.removed) == (15, 15, 0)


async def test_servers_that_share_a_database_write_one_chain(url: str) -> None:
    async with a_store(url) as one, a_store(url) as other:

        async def calls(store: SqlApprovalStore, name: str) -> None:
            for number in range(20):
                request = a_request(f"{name}{number}")
                await store.add(request)
                await settle(store, request, Answer.ALLOW_ONCE)

        await asyncio.gather(
            *(calls(store, f"{name}-{task}-") for store, name in ((one, "a"), (other, "b")) for task in "12")
        )
        found = checked(url)

    assert found.broken is None
    assert found.records == 160


async def test_a_head_that_was_kept_elsewhere_shows_a_chain_whose_end_was_removed(tmp_path: Path) -> None:
    path = tmp_path / "approvals.db"
    url = sqlite_url(str(path))
    async with a_store(url) as store:
        await fill(store)
        early = checked(url).head
        await store.add(a_request("last", evaluation=DENIED))
        late = checked(url).head
    assert checked(url, early).since == 1
    assert checked(url, late).since == 0

    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DELETE FROM agentbox_approvals WHERE id = 'last'")
        database.execute("DELETE FROM agentbox_audit WHERE request_id = 'last'")

    assert checked(url).broken is None  # nothing in the database can show it
    assert "its end was removed" in str(checked(url, late).broken)
    assert checked(url, early).broken is None


async def test_a_head_that_was_kept_elsewhere_shows_a_chain_that_was_written_anew(tmp_path: Path) -> None:
    heads = []
    for name, reason in (("true", "fine"), ("forged", "no")):
        url = sqlite_url(str(tmp_path / f"{name}.db"))
        async with a_store(url) as store:
            request = a_request()
            await store.add(request)
            rejected = request.decide(a_decision(request, Answer.REJECT_ONCE, reason=reason))
            assert await store.replace_if(rejected, status=Status.PENDING, outcome=None)
        heads.append(checked(url).head)

    assert "written anew" in str(checked(url, heads[0]).broken)


TABLES = {
    "agentbox_approvals": "id NOT IN ('waits')",
    "agentbox_audit": "1",
    "agentbox_tools": "1",
    "agentbox_arguments": "1",
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("chain") / "approvals.db"

    async def make() -> None:
        async with a_store(sqlite_url(str(path))) as store:
            await fill(store)

    asyncio.run(make())
    return path


def rows_of(database: sqlite3.Connection, table: str) -> Sequence[tuple[Any, ...]]:
    return database.execute(f"SELECT rowid, * FROM {table} WHERE {TABLES[table]} ORDER BY rowid").fetchall()


def columns_of(database: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in database.execute(f"PRAGMA table_info({table})")]


def edit(data: st.DataObject, database: sqlite3.Connection, table: str) -> None:
    columns = columns_of(database, table)
    row = data.draw(st.sampled_from(rows_of(database, table)))
    column = data.draw(st.sampled_from([name for name in columns if name not in ("owner", "size", "closed_at")]))
    before = row[columns.index(column) + 1]
    after = data.draw(changed(before).filter(lambda value: value != before))
    database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (after, row[0]))


def changed(value: object) -> st.SearchStrategy[Any]:
    """Return what somebody may put in the place of a value."""
    if isinstance(value, int):
        return st.integers(-(2**60), 2**60)
    if isinstance(value, bytes):
        flips = st.integers(0, len(value) - 1).map(lambda at: value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :])
        return flips | st.binary(max_size=20) | st.just(value.decode().replace("7", "8") + " ")
    return st.text(st.characters(min_codepoint=1, max_codepoint=0xFFF), max_size=70) | st.binary(max_size=3)


def remove(data: st.DataObject, database: sqlite3.Connection, table: str) -> None:
    row = data.draw(st.sampled_from(rows_of(database, table)))
    database.execute(f"DELETE FROM {table} WHERE rowid = ?", (row[0],))


def exchange(data: st.DataObject, database: sqlite3.Connection, table: str) -> None:
    """Let two rows change places: all that they say, and not their keys."""
    columns = columns_of(database, table)[1:]
    rows = rows_of(database, table)
    one, other = data.draw(
        st.tuples(st.sampled_from(rows), st.sampled_from(rows)).filter(lambda pair: pair[0][2:] != pair[1][2:])
    )
    names = ", ".join(f"{name} = ?" for name in columns)
    for row, place in ((one, other[0]), (other, one[0])):
        database.execute(f"UPDATE {table} SET {names} WHERE rowid = ?", (*row[2:], place))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_single_edit_removal_or_exchange_is_found(sound: Path, data: st.DataObject) -> None:
    tampered = sound.with_name("tampered.db")
    with closing(sqlite3.connect(sound)) as source, closing(sqlite3.connect(tampered)) as database:
        source.backup(database)
        with database:
            database.execute("PRAGMA foreign_keys = OFF")
            ways: list[tuple[Callable[..., None], str]] = [(edit, table) for table in TABLES]
            ways += [(remove, table) for table in TABLES]
            ways += [(exchange, table) for table in ("agentbox_approvals", "agentbox_audit")]
            way, table = data.draw(st.sampled_from(ways))
            way(data, database, table)

    assert checked(sqlite_url(str(tampered))).broken is not None


@pytest.mark.parametrize(
    ("statement", "number", "what"),
    [
        ("UPDATE agentbox_approvals SET progress = replace(progress, 'fine', 'good') WHERE id = 'r0'", 1, "changed"),
        ("UPDATE agentbox_approvals SET status = 'rejected' WHERE id = 'r1'", 3, "changed after it was decided"),
        ("UPDATE agentbox_approvals SET owner = 'me' WHERE id = 'r2'", 5, "changed after it ended"),
        ("DELETE FROM agentbox_approvals WHERE id = 'r1'", 3, "record was removed"),
        ("DELETE FROM agentbox_audit WHERE number = 4", 4, "it is missing; the next entry there is has the number 5"),
        ("DELETE FROM agentbox_audit WHERE number = 15", None, "no entry records it"),
        ("UPDATE agentbox_audit SET hash = previous WHERE number = 4", 4, "the entry itself was changed"),
        ("DELETE FROM agentbox_audit WHERE number < 4", 1, "missing"),
        ("UPDATE agentbox_arguments SET arguments = '{}' WHERE id = 'long'", 11, "long arguments were changed"),
        ("DELETE FROM agentbox_arguments", 11, "long arguments were removed"),
        ("UPDATE agentbox_tools SET description = '{}'", None, "description of a tool was changed"),
        ("UPDATE agentbox_audit SET number = 0 WHERE number = 15", 0, "it is not part of the chain"),
        ("INSERT INTO agentbox_audit VALUES (-5, 'removed', 'r1', '', '', '')", -5, "it is not part of the chain"),
    ],
)
async def test_the_first_broken_record_is_named(sound: Path, statement: str, number: int | None, what: str) -> None:
    tampered = sound.with_name("named.db")
    with closing(sqlite3.connect(sound)) as source, closing(sqlite3.connect(tampered)) as database:
        source.backup(database)
        with database:
            database.execute(statement)

    broken = checked(sqlite_url(str(tampered))).broken

    assert broken is not None
    assert (broken.number, what in str(broken)) == (number, True), str(broken)


@pytest.mark.parametrize(
    ("statement", "part", "what"),
    [
        ("DELETE FROM agentbox_approvals WHERE id = 'r1'", "removed", "its record was removed"),
        ("DELETE FROM agentbox_arguments WHERE id = 'long'", "shortened", "long arguments were removed"),
    ],
)
def test_an_entry_outside_of_the_chain_excuses_no_removal(sound: Path, statement: str, part: str, what: str) -> None:
    url = sqlite_url(str(sound.with_name("excused.db")))
    with closing(sqlite3.connect(sound)) as source, closing(sqlite3.connect(sound.with_name("excused.db"))) as database:
        source.backup(database)
        with database:
            database.execute(statement)
            gone = "r1" if part == "removed" else "long"
            database.execute("INSERT INTO agentbox_audit VALUES (-5, ?, ?, '', '', '')", (part, gone))

    broken = checked(url).broken

    assert broken is not None
    assert what in str(broken)


async def test_what_was_asked_is_recorded_though_the_row_was_changed_before_the_answer(tmp_path: Path) -> None:
    path = tmp_path / "approvals.db"
    async with a_store(sqlite_url(str(path))) as store:
        request = a_request()
        await store.add(request)
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("UPDATE agentbox_approvals SET request = replace(request, '7', '8')")
        await settle(store, request, Answer.ALLOW_ONCE)

    assert "changed after it was decided" in str(checked(sqlite_url(str(path))).broken)


async def test_retention_does_not_break_the_chain_and_says_what_it_removed(url: str) -> None:
    async with a_store(url, days=1, long_arguments=10) as store:
        await fill(store)
        await sweep(store, at=NOON)
        shortened = checked(url)
        await sweep(store, at=NOON + timedelta(days=2))
        removed = checked(url, shortened.head)

    assert (shortened.broken, removed.broken) == (None, None)
    assert (removed.removed, removed.removed_since) == (10, 10)


async def sweep(store: SqlApprovalStore, *, at: Any) -> None:
    store._clock = FakeClock(at)
    await store._sweep()


async def test_the_entries_of_what_is_no_longer_kept_are_removed_behind_a_checkpoint(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_chain, "_SPARE", 0)
    monkeypatch.setattr(audit_chain, "_STEP", 7)
    async with a_store(url, days=1) as store:
        new = a_request("new", created_at=NOON + timedelta(days=2))
        await store.add(new)
        await settle(store, new, Answer.ALLOW_ONCE)
        for number in (1, 2):
            await store._committer.run(
                lambda at, one=number: audit_chain.append(at, Part.REPORTS, str(one), ""), write=True
            )
        await fill(store)
        before = checked(url)
        await sweep(store, at=NOON + timedelta(days=2))
        after = checked(url)

    assert after.broken is None
    assert after.first > before.head.number
    assert after.reports.number == 2, "how far the reports of users' servers had come is kept"
    assert after.head.number - after.first < before.head.number
    assert "older than the first entry" in str(checked(url, before.head).broken)


async def test_a_broken_chain_is_not_trimmed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_chain, "_SPARE", 0)
    path = tmp_path / "approvals.db"
    url = sqlite_url(str(path))
    async with a_store(url, days=1) as store:
        await fill(store)
        with closing(sqlite3.connect(path)) as database, database:
            database.execute("DELETE FROM agentbox_approvals WHERE id = 'r1'")
        await sweep(store, at=NOON + timedelta(days=2))

    broken = checked(url).broken
    assert broken is not None
    assert (broken.number, broken.request_id) == (3, "r1")


async def test_a_database_of_before_gets_its_chain_when_it_is_opened(tmp_path: Path) -> None:
    url = sqlite_url(str(tmp_path / "approvals.db"))
    async with a_store(url) as store:
        await fill(store)
        await store._committer.run(_go_back, write=True)
    async with a_store(url):
        found = checked(url)

    assert found.broken is None
    assert found.records == 11  # one entry for each request: how it was decided before is part of it


def _go_back(connection: Connection) -> None:
    """Bring the tables back to what the version before the chain made."""
    connection.execute(text("DROP TABLE agentbox_grants"))  # of a later version
    connection.execute(text("DROP TABLE agentbox_audit"))
    connection.execute(text("DROP INDEX agentbox_approvals_found"))
    for name in ("server", "tool", "thread_id", "answer", "via", "reviewer", "reviewer_name"):
        connection.execute(text(f"ALTER TABLE agentbox_approvals DROP COLUMN {name}"))
    connection.execute(text(MIGRATIONS[0][2]))
    connection.execute(text("UPDATE agentbox_schema SET version = 4"))
