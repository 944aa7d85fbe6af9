"""A database of one user of a JupyterHub, and another user who was given the same URL."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import create_engine

from jupyter_agentbox.core.audit_search import AuditQuery
from jupyter_agentbox.core.ports import ApprovalQuery
from jupyter_agentbox.exceptions import StorageError
from jupyter_agentbox.storage.approvals import SqlApprovalStore, sqlite_url
from jupyter_agentbox.storage.audit_log import SqlAuditLog
from jupyter_agentbox.storage.schema import owners
from jupyter_agentbox.storage.threads import SqlThreadStore
from jupyter_agentbox.testing import FakeClock
from tests.samples import a_request


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        made: str = request.getfixturevalue("make_postgresql_database")()
        return made
    return sqlite_url(str(tmp_path / "approvals.db"))


async def test_the_database_of_one_user_is_closed_to_another(url: str) -> None:
    async with SqlApprovalStore(url, clock=FakeClock(), tenant="ada") as adas:
        await adas.add(a_request())
        bobs = SqlApprovalStore(url, clock=FakeClock(), tenant="bob")
        for ask in (bobs.open, bobs.adopt_abandoned, bobs.grants):
            with pytest.raises(StorageError, match="another user"):
                await ask()
        with pytest.raises(StorageError):
            await bobs.get("r1")
        with pytest.raises(StorageError):
            await bobs.list(ApprovalQuery())
        with pytest.raises(StorageError):
            await bobs.add(a_request(id="r2"))
        log, threads = SqlAuditLog(url, tenant="bob"), SqlThreadStore(url, clock=FakeClock(), tenant="bob")
        with pytest.raises(StorageError):
            await log.search(AuditQuery())
        with pytest.raises(StorageError):
            await log.verify()
        with pytest.raises(StorageError):
            await threads.get("t1")
        for closed in (bobs, log, threads):
            await closed.aclose()

        assert [request.id for request in (await adas.list(ApprovalQuery())).approvals] == ["r1"]
    async with SqlApprovalStore(url, clock=FakeClock(), tenant="ada") as again:
        assert (await again.get("r1")).id == "r1"


async def test_what_servers_left_is_not_taken_over_while_they_may_only_have_been_cut_off(
    make_postgresql_database: object,
) -> None:
    """The database was away for ten minutes: no server could say that it is there, and one starts anew."""
    assert callable(make_postgresql_database)
    url = make_postgresql_database()
    async with SqlApprovalStore(url, clock=FakeClock()) as one:
        await one.add(a_request())
        engine = create_engine(url)
        with engine.begin() as connection:
            connection.execute(owners.update().values(seen_at=owners.c.seen_at - 600_000_000))
        engine.dispose()

        async with SqlApprovalStore(url, clock=FakeClock()) as other:
            assert not await other.adopt_abandoned()
            assert other.look_again is not None

        request = await one.get("r1")
        assert await one.replace_if(request, status=request.status, outcome=None)


async def test_a_connection_that_broke_is_made_anew_and_prepares_nothing(make_postgresql_database: object) -> None:
    """What PgBouncer hands out next knows no statement that was prepared; what was cut off starts its grace anew."""
    assert callable(make_postgresql_database)
    url = make_postgresql_database()
    async with SqlApprovalStore(url, clock=FakeClock()) as store:
        await store.add(a_request())
        engine = create_engine(url, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            for _ in range(10):
                await store.get("r1")
            cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            connection.exec_driver_sql(cut)
            with pytest.raises(StorageError):
                await store.get("r1")
            assert (await store.get("r1")).id == "r1"
            shown = connection.exec_driver_sql("SELECT seen_at FROM agentbox_owners").all()
            assert len(shown) == 1
        engine.dispose()
