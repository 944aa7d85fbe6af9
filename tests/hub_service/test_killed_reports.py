"""A user's server and the service are killed in between: no call that ran is without its record, and none has two."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from bench.hub_service import Service
from jupyter_agentbox.storage.audit_log import SqlAuditLog

from .test_reports import database_url

__all__ = ["database_url"]

SERVER = Path(__file__).with_name("reporting_server.py")
#: Calls of a server that is not killed.
CALLS = 30
#: How many servers are killed.
KILLED = 6
PATIENCE = 120


async def server(directory: Path, service: Service, first: int, most: int) -> asyncio.subprocess.Process:
    """Start a server of ada's."""
    environment = {**os.environ, "JUPYTERHUB_USER": "ada", "JUPYTERHUB_API_TOKEN": "ada"}
    arguments = (str(SERVER), str(directory), service.url, str(first), str(most))
    return await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=asyncio.subprocess.PIPE, env=environment
    )


async def records(service: Service) -> list[dict[str, Any]]:
    answer = await service.ask("api/reports", Authorization="Bearer approver")
    assert answer.code == 200
    return [row["record"] for row in map(json.loads, answer.body.splitlines()) if not row["is_note"]]


async def test_what_ran_has_a_record_and_only_one_whoever_is_killed(tmp_path: Path, database_url: str) -> None:
    chance = random.Random(7)
    service = Service(tmp_path, database_url)
    ran: list[int] = []
    try:
        async with asyncio.timeout(PATIENCE):
            await service.start()
            for turn in range(KILLED):
                process = await server(tmp_path, service, 1000 * turn, 1000)
                assert process.stdout is not None
                for _ in range(chance.randrange(5, 60)):
                    ran.append(int(await process.stdout.readline()))
                if turn % 2:
                    service.kill()
                process.kill()
                ran += [int(line) for line in (await process.stdout.read()).splitlines()]
                await process.wait()
                if turn % 2:
                    await service.start()
            process = await server(tmp_path, service, 1000 * KILLED, CALLS)
            assert process.stdout is not None
            ran += [int(line) for line in (await process.stdout.read()).splitlines()]
            assert await process.wait() == 0
            found = await records(service)
    finally:
        service.end()

    decided = Counter(record["arguments"]["n"] for record in found if record["event"] == "decided")
    assert set(ran) <= set(decided)
    assert set(decided.values()) == {1}
    assert len(found) == len({(record["chain"], record["sequence"]) for record in found})
    log = SqlAuditLog(service.database_url)
    verified = await log.verify_reports()
    await log.aclose()
    assert verified.broken == ""
    assert {gap.last for gap in verified.gaps} == {0}  # none between others; a killed server has no last record
    assert len(verified.gaps) == KILLED
