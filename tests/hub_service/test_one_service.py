"""Two services and one database, as processes: one is refused, follows one that was killed, or one that froze."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bench.hub_clients import Approver, call
from bench.hub_service import TOKEN, Service

from .test_restart import database_url

__all__ = ["database_url"]

PATIENCE = 120
#: Nobody could wait for it: who takes over did not have to.
FOR_EVER = "--HubService.claim_timeout=1000000"
#: Who is stopped for so long can be followed.
SHORT = "--HubService.claim_timeout=2"

#: What no line of the log has: an argument of a call.
ARGUMENT = "planted-in-an-argument"


@asynccontextmanager
async def two_services(directory: Path, database_url: str) -> AsyncIterator[tuple[Service, Service]]:
    """Give two services of one database, which do not run yet."""
    made = []
    for name in ("one", "two"):
        (directory / name).mkdir()
        made.append(Service(directory / name, database_url))
    one, two = made
    try:
        async with asyncio.timeout(PATIENCE):
            yield one, two
    finally:
        for service in made:
            if service.process is not None and service.process.poll() is None:
                service.process.send_signal(signal.SIGCONT)
            service.end()


def pid_of(service: Service) -> int:
    assert service.process is not None
    return service.process.pid


async def exit_code(service: Service) -> int:
    assert service.process is not None
    return await asyncio.to_thread(service.process.wait)


async def held_since(service: Service) -> str:
    answer = await service.ask("health/ready")
    since: str = json.loads(answer.body)["database_held_since"]
    return since


async def test_a_second_service_is_refused_and_says_who_holds_the_database(tmp_path: Path, database_url: str) -> None:
    async with two_services(tmp_path, database_url) as (one, two):
        await one.start()
        since = await held_since(one)
        with pytest.raises(RuntimeError, match=rf"process {pid_of(one)} on .*, since {since}.*End that process first"):
            await two.start()
        assert await exit_code(two) == 1
        assert await held_since(one) == since


async def test_who_follows_one_that_was_killed_goes_on_at_once_with_what_waits(
    tmp_path: Path, database_url: str
) -> None:
    async with two_services(tmp_path, database_url) as (one, two):
        before = Service(tmp_path / "one", database_url)  # the first start on a database knows nobody
        await before.start()
        before.end()
        await one.start(FOR_EVER)
        works = asyncio.Event()
        waiting = asyncio.create_task(call(one, "ada", "asked", ARGUMENT, works))
        await works.wait()
        one.kill()

        await two.start("--log-level=INFO")
        approver = Approver(two)
        await approver.log_in()
        assert await approver.allow_all() == 1
        waiting.cancel()
        assert two.process is not None
        two.process.terminate()
        assert await exit_code(two) == 0

    lines = [json.loads(line) for line in (tmp_path / "two" / "log").read_text().splitlines()]
    assert all({"time", "level", "message"} <= {*line} for line in lines)
    assert any(line["message"] == "request" and line["status"] == "approved" for line in lines)
    assert not any(secret in json.dumps(lines) for secret in (ARGUMENT, TOKEN))


async def test_a_service_that_froze_and_was_followed_writes_nothing_and_ends(tmp_path: Path, database_url: str) -> None:
    async with two_services(tmp_path, database_url) as (one, two):
        await one.start(SHORT)
        since = await held_since(one)
        os.kill(pid_of(one), signal.SIGSTOP)
        await two.start()
        os.kill(pid_of(one), signal.SIGCONT)

        assert await exit_code(one) == 1
        assert "another service has taken over the database" in (tmp_path / "one" / "log").read_text()
        assert await held_since(two) > since
