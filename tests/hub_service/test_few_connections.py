"""Many users' servers at a service whose database lets in few."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from tornado.httpclient import AsyncHTTPClient

from bench.hub_clients import Approver, call
from bench.hub_service import Service
from tests.postgresql import PostgreSQL

USERS = 100
#: PostgreSQL keeps three of them for administrators.
CONNECTIONS = 15
#: Seconds for all calls on a busy machine.
PATIENCE = 120
COUNT = text("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")


@pytest.fixture
def small_database() -> Iterator[str]:
    pytest.importorskip("psycopg")
    try:
        server = PostgreSQL(CONNECTIONS)
    except FileNotFoundError as error:
        pytest.skip(str(error))
    server.start()
    try:
        yield server.make_database()
    finally:
        server.stop()
        server.remove()


async def test_a_hundred_users_call_and_wait_at_once_through_a_handful_of_connections(
    tmp_path: Path, small_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AsyncHTTPClient(), "max_clients", 3 * USERS)  # ten otherwise, for all users together
    service, most, engine = Service(tmp_path, small_database), 0, create_engine(small_database)
    try:
        async with asyncio.timeout(PATIENCE):
            await service.start()
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                asking = [
                    asyncio.create_task(call(service, f"user{number}", "asked", f"asked{number}"))
                    for number in range(USERS)
                ]
                approver = Approver(service)
                while len(await approver.pending()) < USERS:
                    most = max(most, connection.scalar(COUNT) or 0)
                allowed = await asyncio.gather(
                    *(call(service, f"user{number}", "allowed", f"allowed{number}") for number in range(USERS))
                )
                assert not any(one.done() for one in asking)
                while not all(one.done() for one in asking):
                    await approver.allow_all()
                    most = max(most, connection.scalar(COUNT) or 0)
        states = Counter(one.state for one in (*allowed, *(one.result() for one in asking)))
    finally:
        service.end()
        engine.dispose()
    assert states == {"succeeded": 2 * USERS}
    assert set(Counter(service.runs.read_text().split()).values()) == {1}
    assert most <= 5
