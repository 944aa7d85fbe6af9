"""Central servers that nobody uses, or that are too many."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.tools import ToolResult
from jupyter_agentbox.exceptions import ToolServerError
from jupyter_agentbox.hub.callers import Caller
from jupyter_agentbox.hub.central_servers import CentralServers
from jupyter_agentbox.hub.policy_file import read_policy_file
from jupyter_agentbox.hub.policy_in_force import PolicyInForce
from jupyter_agentbox.mcp_client.limits import ServerLimits
from jupyter_agentbox.system import SystemClock
from tests.processes_alive import children

RAW = Path(__file__).parents[1] / "mcp_client" / "servers" / "raw.py"
HALF_AN_HOUR = 1800.0
ADA, BOB = Caller(name="ada"), Caller(name="bob")
#: A server that all users share, and one that runs for each of them.
SHARED, OWN = "shared", "own"

Central = Callable[..., AbstractAsyncContextManager["Servers"]]


class Servers:
    """Central servers, and a clock that a test sets."""

    def __init__(self, path: Path, limits: ServerLimits) -> None:
        self.now = 1000.0
        policy = PolicyInForce(read_policy_file(path, {}), {}, clock=SystemClock())
        self.central = CentralServers(policy=policy, environment={}, limits=limits, clock=lambda: self.now)

    async def call(self, server: str, caller: Caller, tool: str = "pid") -> ToolResult:
        return await self.central.call_tool(ToolCall(server=server, tool=tool, arguments={}), caller)

    async def pid(self, server: str, caller: Caller) -> int:
        """Return the process that answers a call."""
        return int((await self.call(server, caller)).text)


@pytest.fixture
def central(tmp_path: Path) -> Central:
    @asynccontextmanager
    async def running(**limits: Any) -> AsyncIterator[Servers]:
        entry = {"command": sys.executable, "args": [str(RAW)]}
        entries = {SHARED: entry, OWN: {**entry, "env": {"FOR_USER": "${HUB_USER}"}}}
        path = tmp_path / "policy.json"
        path.write_text(json.dumps({"rules": [], "mcpServers": entries}))
        servers = Servers(path, ServerLimits(**limits))
        try:
            yield servers
        finally:
            await servers.central.aclose()

    return running


def programs() -> set[int]:
    return {process.pid for process in children() if RAW.name in " ".join(process.cmdline())}


async def test_servers_that_nobody_used_for_half_an_hour_are_stopped_and_start_again(central: Central) -> None:
    async with central(idle_timeout=HALF_AN_HOUR) as servers:
        shared, adas, bobs = [await servers.pid(*one) for one in ((SHARED, ADA), (OWN, ADA), (OWN, BOB))]
        assert programs() == {shared, adas, bobs}

        servers.now += HALF_AN_HOUR
        assert await servers.pid(OWN, BOB) == bobs
        servers.now += 1
        await servers.central.stop_idle()

        assert programs() == {bobs}
        again = {await servers.pid(SHARED, BOB), await servers.pid(OWN, ADA)}
        assert programs() == {bobs, *again}
        assert not again & {shared, adas}


async def test_a_server_is_not_idle_while_a_call_runs_however_long_that_takes(central: Central) -> None:
    async with central(idle_timeout=HALF_AN_HOUR) as servers:
        before = [await servers.pid(server, ADA) for server in (SHARED, OWN)]
        waiting = [asyncio.create_task(servers.call(server, ADA, "wait")) for server in (SHARED, OWN)]
        for server in (SHARED, OWN):
            await servers.call(server, ADA, "echo")  # the one that waits was sent before
        servers.now += 10 * HALF_AN_HOUR

        await servers.central.stop_idle()

        assert programs() == {*before}
        for server in (SHARED, OWN):
            await servers.call(server, ADA, "release")
        assert [result.text for result in await asyncio.gather(*waiting)] == ["released", "released"]


async def test_without_a_time_no_server_is_idle(central: Central) -> None:
    async with central(idle_timeout=None) as servers:
        pids = {await servers.pid(SHARED, ADA), await servers.pid(OWN, ADA)}
        servers.now += 1000 * HALF_AN_HOUR

        await servers.central.stop_idle()

        assert programs() == pids


async def test_the_programs_of_all_users_share_one_limit(central: Central) -> None:
    async with central(most_processes=2) as servers:
        shared = await servers.pid(SHARED, ADA)
        servers.now += 1
        adas = await servers.pid(OWN, ADA)
        servers.now += 1
        assert await servers.pid(SHARED, BOB) == shared

        bobs = await servers.pid(OWN, BOB)

        assert programs() == {shared, bobs}, "that of ada was not used for longest"
        assert adas not in programs()
        waiting = [asyncio.create_task(servers.call(*one, "wait")) for one in ((SHARED, ADA), (OWN, BOB))]
        for one in ((SHARED, ADA), (OWN, BOB)):
            await servers.call(*one, "echo")
        with pytest.raises(ToolServerError, match=r"all are in use: try again when one of them has answered$"):
            await servers.pid(OWN, ADA)
        for one in ((SHARED, ADA), (OWN, BOB)):
            await servers.call(*one, "release")
        await asyncio.gather(*waiting)
        assert await servers.pid(OWN, ADA)
