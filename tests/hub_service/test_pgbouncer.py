"""The Hub service whose database is behind a PgBouncer that pools transactions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_agentbox.exceptions import DatabaseHeldError
from tests.pgbouncer import Pooled

from .service import TIMEOUT, a_policy, ask, running_service
from .test_service import call, text, waiting


async def test_calls_wait_are_allowed_and_run_and_a_second_service_is_refused_until_the_first_has_ended(
    tmp_path: Path, make_postgresql_database: Callable[[], str], pooled: Pooled
) -> None:
    url, policy = pooled(make_postgresql_database()), a_policy(ask(group="data-stewards"))
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    async with running_service(one, policy, database_url=url, claim_timeout=4.0) as service:
        async with service.tools_of("ada") as tools:
            for number in range(8):  # more than psycopg sends before it would prepare
                calling = asyncio.create_task(tools.call_tool(call(sql=f"select {number}")))
                request = await waiting(service, "bob")
                assert (await service.decide(request, "bob"))[0] == 200
                async with asyncio.timeout(TIMEOUT):
                    assert text(await calling)["sql"] == f"select {number}"
        with pytest.raises(DatabaseHeldError):
            async with running_service(two, policy, database_url=url, claim_timeout=4.0):
                pass
        assert (await service.get("health/ready")).code == 200
        assert not service.box.claim.lost.is_set()
    async with running_service(two, policy, database_url=url, claim_timeout=4.0) as service:
        assert len((await service.json("api/requests", token="ada"))["own"]) == 8
