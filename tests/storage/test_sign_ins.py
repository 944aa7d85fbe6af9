"""The table of users' sign-ins, as SQLite and PostgreSQL keep it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from jupyter_agentbox.exceptions import StorageError
from jupyter_agentbox.storage.approvals import sqlite_url
from jupyter_agentbox.storage.sign_ins import SqlSignInTable
from jupyter_agentbox.testing.fakes import FakeClock

DAY = 86_400
NAMES = ("ada", "name with \\ and \0 and \ud800", "O'Neil")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        made: str = request.getfixturevalue("make_postgresql_database")()
        return made
    return sqlite_url(str(tmp_path / "hub.sqlite"))


@asynccontextmanager
async def opened(url: str, clock: FakeClock | None = None) -> AsyncIterator[SqlSignInTable]:
    table = SqlSignInTable(url, clock=clock or FakeClock())
    try:
        yield table
    finally:
        await table.aclose()


@pytest.mark.parametrize("name", NAMES)
async def test_a_sign_in_is_stored_changed_and_deleted_for_its_user_alone(url: str, name: str) -> None:
    async with opened(url) as table:
        assert await table.load(name, "crm") is None
        assert await table.change(name, "crm", lambda before: b"1" if before is None else b"2") == b"1"
        assert await table.change("other", "crm", lambda _: b"other") == b"other"
        assert await table.change(name, "crm", lambda before: b"1" if before is None else b"2") == b"2"
        assert (await table.load(name, "crm"), await table.load(name, "mail")) == (b"2", None)
        assert await table.change(name, "crm", lambda _: None) is None
        assert (await table.load(name, "crm"), await table.load("other", "crm")) == (None, b"other")


async def test_a_change_that_fails_leaves_what_was_stored(url: str) -> None:
    async with opened(url) as table:
        await table.change("ada", "crm", lambda _: b"1")

        def fail(_: bytes | None) -> bytes:
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            await table.change("ada", "crm", fail)
        assert await table.load("ada", "crm") == b"1"


async def test_age_counts_from_the_last_change(url: str) -> None:
    clock = FakeClock()
    async with opened(url, clock) as table:
        for user in ("ada", "bob"):
            await table.change(user, "crm", lambda _: b"1")
        clock.advance(20 * DAY)
        await table.change("bob", "crm", lambda _: b"2")
        await table.change("ada", "crm", lambda before: before)  # not a change
        clock.advance(11 * DAY)
        assert await table.remove_old(30) == 1
        assert (await table.load("ada", "crm"), await table.load("bob", "crm")) == (None, b"2")


async def test_a_note_in_a_sign_in_does_not_make_it_younger(url: str) -> None:
    clock = FakeClock()
    async with opened(url, clock) as table:
        await table.change("ada", "crm", lambda _: b"1")
        clock.advance(20 * DAY)
        assert await table.change("ada", "crm", lambda _: b"noted", is_renewal=False) == b"noted"
        clock.advance(11 * DAY)
        assert await table.remove_old(30) == 1


async def test_all_sign_ins_are_read_page_by_page(url: str) -> None:
    users = [*NAMES, *(f"user{number}" for number in range(250))]
    async with opened(url) as table:
        for user in users:
            await table.change(user, "crm", lambda _, user=user: repr(user).encode())
        await table.change("ada", "mail", lambda _: b"mail")
        found: list[bytes] = []
        rows, pages = await table.page(), 0
        while rows:
            found += [row.content for row in rows]
            rows, pages = await table.page(rows[-1]), pages + 1
    assert (sorted(found), pages) == (sorted([b"mail", *(repr(user).encode() for user in users)]), 2)


async def test_all_sign_ins_of_a_user_are_deleted(url: str) -> None:
    async with opened(url) as table:
        for user, server in (("ada", "crm"), ("ada", "mail"), ("bob", "crm")):
            await table.change(user, server, lambda _: b"1")
        assert await table.remove_all_of("ada") == 2
        assert await table.remove_all_of("ada") == 0
        assert await table.load("bob", "crm") == b"1"


async def test_what_only_deletes_makes_no_database(tmp_path: Path) -> None:
    path = tmp_path / "none.sqlite"
    table = SqlSignInTable(sqlite_url(str(path)), clock=FakeClock(), must_exist=True)
    with pytest.raises(StorageError, match="there is no approval store"):
        await table.remove_all_of("ada")
    await table.aclose()
    assert not path.exists()
