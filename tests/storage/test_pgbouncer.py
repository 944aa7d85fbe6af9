"""Stores whose transactions come to another connection each time, as PgBouncer hands them out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest
from sqlalchemy import create_engine, text

from jupyter_agentbox.core.approvals import Outcome, OutcomeState
from jupyter_agentbox.core.ports import ApprovalQuery
from jupyter_agentbox.exceptions import StorageError
from jupyter_agentbox.storage.approvals import SqlApprovalStore
from jupyter_agentbox.storage.audit_log import SqlAuditLog
from jupyter_agentbox.testing import FakeClock
from tests.pgbouncer import POOL, Pooled, running_pgbouncer
from tests.samples import NOON, a_decision, a_request

#: Servers, and what each asks. psycopg prepares a statement that it sends for the sixth time, if one lets it.
STORES, REQUESTS = 20, 12


async def test_twenty_servers_share_a_few_connections_and_none_of_them_fails(
    make_postgresql_database: Callable[[], str], pooled: Pooled
) -> None:
    direct = make_postgresql_database()
    url = pooled(direct)

    async def ask(store: SqlApprovalStore, name: str) -> None:
        for number in range(REQUESTS):
            request = a_request(id=f"{name}-{number}")
            await store.add(request)
            approved = request.decide(a_decision(request))
            assert await store.replace_if(approved, status=request.status, outcome=None)
            ran = replace(approved, outcome=Outcome(state=OutcomeState.RUNNING, started_at=NOON))
            assert await store.replace_if(ran, status=approved.status, outcome=None)
            assert (await store.get(request.id)).outcome == ran.outcome

    async with AsyncExitStack() as stack:
        stores = [SqlApprovalStore(url, clock=FakeClock()) for _ in range(STORES)]
        await asyncio.gather(*(stack.enter_async_context(store) for store in stores))  # one of them makes the tables
        await asyncio.gather(*(ask(store, f"r{index}") for index, store in enumerate(stores)))
        log = SqlAuditLog(url)
        verified = await log.verify()
        await log.aclose()
        engine = create_engine(direct)
        with engine.connect() as connection:
            of_pool = text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
            backends = connection.scalar(of_pool) - 1
            kept = connection.scalar(text("SELECT count(*) FROM agentbox_approvals"))
        engine.dispose()

    assert 1 < backends <= POOL
    assert (verified.broken, verified.records, kept) == (None, STORES * REQUESTS, STORES * REQUESTS)


@pytest.mark.parametrize("settings", ["", "ignore_startup_parameters = options"])
async def test_a_schema_that_a_pooler_does_not_pass_on_is_refused_and_nothing_is_kept_in_another(
    make_postgresql_database: Callable[[], str], settings: str
) -> None:
    """Who reads in the error that `options` are not supported, and lets PgBouncer ignore them, would share a schema."""
    direct = make_postgresql_database()
    engine = create_engine(direct, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql("CREATE SCHEMA ada")

    with running_pgbouncer(direct, settings) as pooled:
        store = SqlApprovalStore(f"{pooled(direct)}&options=-csearch_path%3Dada", clock=FakeClock())
        with pytest.raises(StorageError, match="ALTER ROLE name SET search_path"):
            await store.open()
        await store.aclose()

    with engine.connect() as connection:
        made = connection.exec_driver_sql("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'agentbox%%'")
        assert made.scalar_one() == 0
    engine.dispose()


async def test_the_schema_of_a_role_is_found_through_a_pooler(
    make_postgresql_database: Callable[[], str], pooled: Pooled
) -> None:
    direct = make_postgresql_database()
    engine = create_engine(direct, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql("CREATE ROLE ada LOGIN")
        connection.exec_driver_sql("CREATE SCHEMA AUTHORIZATION ada")
        connection.exec_driver_sql("ALTER ROLE ada SET search_path = ada")
    try:
        async with SqlApprovalStore(pooled(direct).replace("agentbox@", "ada@"), clock=FakeClock()) as store:
            await store.add(a_request())
            assert len((await store.list(ApprovalQuery())).approvals) == 1
        query = "SELECT DISTINCT schemaname FROM pg_tables WHERE tablename LIKE 'agentbox%%'"
        with engine.connect() as connection:
            found = connection.exec_driver_sql(query)
            assert found.scalars().all() == ["ada"]
    finally:
        engine.dispose()
