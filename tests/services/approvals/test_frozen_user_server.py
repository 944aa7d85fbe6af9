"""A user's server that is frozen for longer than its lease while another one of the same user goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from sqlalchemy import Engine, create_engine, text

from jupyter_agentbox.core.approvals import Answer, OutcomeState, Status
from jupyter_agentbox.core.ports import ApprovalQuery
from jupyter_agentbox.exceptions import ApprovalCancelledError, InvalidTransitionError
from jupyter_agentbox.storage.leases import GRACE, HEARTBEAT, SILENCE

from .users_server import TIMEOUT, Server, running

#: The database's clock, which a test can move; who asks for the time finds this function before PostgreSQL's own.
MOVABLE_CLOCK = """
CREATE TABLE moved (seconds double precision NOT NULL);
INSERT INTO moved VALUES (0);
CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
  'SELECT pg_catalog.clock_timestamp() + make_interval(secs => seconds) FROM public.moved'
"""


@pytest.fixture
def url(make_postgresql_database: Callable[[], str]) -> str:
    url = make_postgresql_database()
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text(MOVABLE_CLOCK))
        name = connection.scalar(text("SELECT current_database()"))
        connection.execute(text(f"ALTER DATABASE {name} SET search_path = public, pg_catalog"))
    engine.dispose()
    return url


async def find_out(engine: Engine, server: Server) -> None:
    """Let the time pass in which others would give a sign of life, and have a server look for those that do not."""
    for _ in range(int((SILENCE + 2 * GRACE) / HEARTBEAT) + 2):
        with engine.begin() as connection:
            connection.execute(text("UPDATE moved SET seconds = seconds + :more"), {"more": HEARTBEAT})
        await server.box.approvals.abandoned.look()


async def test_what_the_other_closed_is_neither_run_nor_decided_when_it_wakes_up(url: str) -> None:
    engine = create_engine(url)
    async with running(url) as frozen, running(url) as other, asyncio.timeout(TIMEOUT):
        waiting, asked = await frozen.ask(1)
        busy, started = await frozen.ask(2)
        frozen.may_end.clear()
        await frozen.decide(started, Answer.ALLOW_ONCE)
        await frozen.has_run.wait()

        await find_out(engine, other)
        query = ApprovalQuery(ids=(asked.id, started.id))
        closed = {one.id: one for one in (await other.box.approvals.list(query)).approvals}
        assert (closed[asked.id].status, closed[asked.id].decision) == (Status.ORPHANED, None)
        assert closed[started.id].outcome_state is OutcomeState.FAILED

        with pytest.raises(InvalidTransitionError):  # the click that somebody made meanwhile
            await frozen.decide(asked, Answer.ALLOW_ONCE)
        with pytest.raises(ApprovalCancelledError):
            await waiting
        frozen.may_end.set()
        await asyncio.gather(busy, return_exceptions=True)
        await frozen.box.approvals.recorded()
        assert (frozen.runs, other.runs) == ([2], [])
        found = {one.id: one for one in (await frozen.box.approvals.list(query)).approvals}
        assert found == closed

        again, request = await frozen.ask(3)  # it goes on with what comes next
        await frozen.decide(request, Answer.ALLOW_ONCE)
        await again
    engine.dispose()
    assert frozen.runs == [2, 3]
