"""Programs of MCP servers that nobody uses, that are too many, or that take too much memory."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import psutil
import pytest

from jupyter_agentbox.core.tools import ServerState
from jupyter_agentbox.exceptions import ToolCallInterruptedError, ToolServerError
from tests.processes_alive import children

from .conftest import Changes, Running
from .test_servers import call, state, status

Script = Callable[..., dict[str, Any]]
HALF_AN_HOUR = 1800.0


class Seconds:
    """A monotonic clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def programs(before: set[psutil.Process]) -> list[psutil.Process]:
    return [process for process in children() if process not in before and "raw.py" in " ".join(process.cmdline())]


async def test_a_program_that_nobody_used_for_half_an_hour_is_stopped_and_its_next_use_starts_it(
    running: Running, script: Script
) -> None:
    clock, before = Seconds(), set(children())
    names = [f"raw{number}" for number in range(3)]
    async with running({name: script("raw.py") for name in names}, idle_timeout=HALF_AN_HOUR, clock=clock) as servers:
        for name in names:
            await servers.call_tool(call("echo", name))
        clock.now += HALF_AN_HOUR - 1
        await servers.call_tool(call("echo", names[0]))

        clock.now += 1
        await servers.stop_idle()

        assert [state(servers, name) for name in names] == [
            ServerState.RUNNING, ServerState.STOPPED, ServerState.STOPPED
        ]  # fmt: skip
        clock.now += HALF_AN_HOUR
        await servers.stop_idle()
        assert programs(before) == []
        assert servers.known_tools(names[1])  # what it lists is known all the same
        assert not (await servers.call_tool(call("echo", names[1]))).is_error


async def test_a_program_whose_call_runs_is_not_idle_however_long_that_takes(running: Running, script: Script) -> None:
    clock, changes = Seconds(), Changes()
    async with running({"raw": script("raw.py")}, idle_timeout=HALF_AN_HOUR, clock=clock, on_change=changes) as servers:
        await servers.list_tools("raw")
        waiting = asyncio.create_task(servers.call_tool(call("wait")))
        await changes.until(lambda: state(servers) is ServerState.RUNNING)
        await servers.call_tool(call("echo"))  # the other one was sent before
        clock.now += 10 * HALF_AN_HOUR

        await servers.stop_idle()

        assert state(servers) is ServerState.RUNNING
        await servers.call_tool(call("release"))
        assert (await waiting).content[0]["text"] == "released"


async def test_a_call_that_comes_while_a_program_is_being_stopped_runs_on_a_new_one(
    running: Running, script: Script
) -> None:
    async with running({"raw": script("raw.py")}) as servers:
        first = await servers.call_tool(call("pid"))
        stopping = asyncio.create_task(servers.stop("raw"))
        await asyncio.sleep(0)  # it has begun

        second = await servers.call_tool(call("pid"))

        await stopping
        assert first.content != second.content
        assert state(servers) is ServerState.RUNNING


async def test_for_one_program_too_many_the_one_that_was_not_used_for_longest_makes_place(
    running: Running, script: Script
) -> None:
    clock, before = Seconds(), set(children())
    names = ("a", "b", "c")
    async with running({name: script("raw.py") for name in names}, most_processes=2, clock=clock) as servers:
        for name in ("a", "b", "a"):
            clock.now += 1
            await servers.call_tool(call("echo", name))

        await servers.call_tool(call("echo", "c"))

        running_now = [name for name in names if state(servers, name) is ServerState.RUNNING]
        assert (running_now, len(programs(before))) == (["a", "c"], 2)


async def test_where_all_programs_are_in_use_one_more_is_refused_with_what_to_do(
    running: Running, script: Script
) -> None:
    async with running({"a": script("raw.py"), "b": script("raw.py")}, most_processes=1) as servers:
        waiting = asyncio.create_task(servers.call_tool(call("wait", "a")))
        await servers.call_tool(call("echo", "a"))  # the other one was sent before

        with pytest.raises(ToolServerError, match="all are in use: try again"):
            await servers.call_tool(call("echo", "b"))

        await servers.call_tool(call("release", "a"))
        assert not (await waiting).is_error
        assert not (await servers.call_tool(call("echo", "b"))).is_error  # `a` makes place


async def test_many_programs_that_start_at_once_are_never_more_than_are_allowed(
    running: Running, script: Script
) -> None:
    before, most = set(children()), 0
    names = [f"raw{number}" for number in range(6)]

    def look() -> None:
        nonlocal most
        most = max(most, len(programs(before)))

    async with running({name: script("raw.py") for name in names}, most_processes=2, on_change=look) as servers:
        results = await asyncio.gather(
            *(servers.call_tool(call("echo", name)) for name in names), return_exceptions=True
        )
        assert all(isinstance(result, ToolServerError) or not result.is_error for result in results)  # type: ignore[union-attr]
        assert sum(not isinstance(result, BaseException) for result in results) >= 2
    assert 1 <= most <= 2


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts all of a process's data")
async def test_a_program_that_takes_too_much_memory_fails_alone(running: Running, script: Script) -> None:
    entries = {"raw": script("raw.py"), "other": script("raw.py")}
    async with running(entries, memory=100_000_000) as servers:
        other = await servers.call_tool(call("pid", "other"))

        with pytest.raises(ToolCallInterruptedError):
            await servers.call_tool(call("eat", size=300_000_000))

        assert "MemoryError" in "".join(status(servers).log)
        assert await servers.call_tool(call("pid", "other")) == other
    async with running(entries) as servers:  # the tool works where there is no limit
        assert not (await servers.call_tool(call("eat", size=300_000_000))).is_error
