"""What SIGINT does to the command: to one request, to all, in a process group of its own or the client's."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from jupyter_agentbox.mcp_server.command import TWICE
from tests.processes_alive import children, survivors

from .conftest import TIMEOUT
from .test_disconnect import Wire, wired

INTERRUPTED = 128 + signal.SIGINT


def to_it(wire: Wire) -> None:
    wire.process.send_signal(signal.SIGINT)


def to_its_group(wire: Wire) -> None:
    """As a terminal does on Ctrl-C. The command leads a group here, so that the tests do not get it, too."""
    os.killpg(wire.process.pid, signal.SIGINT)


async def begin(
    wire: Wire, id: int, places: Path, *, then: str = "while True: time.sleep(0.01)", after: float = 0
) -> None:
    """Send a cell, and return when it runs, or some seconds later."""
    mark = places / f"begun-{id}"
    code = f"import pathlib, time\ntime.sleep({after})\npathlib.Path({str(mark)!r}).touch()\n{then}"
    await wire.send("tools/call", {"name": "execute_code", "arguments": {"code": code}}, id)
    async with asyncio.timeout(TIMEOUT):
        while not mark.exists():  # noqa: ASYNC110  # the cell can tell by a file only
            await asyncio.sleep(0.01)


async def ended(wire: Wire) -> int:
    async with asyncio.timeout(TIMEOUT):
        return await wire.process.wait()


@pytest.mark.parametrize("interrupt", [to_it, to_its_group])
async def test_a_signal_cancels_the_request_that_runs_and_nothing_else(
    environment: Mapping[str, str], places: Path, interrupt: Callable[[Wire], None]
) -> None:
    async with wired(environment, places, process_group=0) as wire:
        await wire.call(2, "execute_code", {"code": "x = 41"})
        await begin(wire, 3, places)
        await wire.send("tools/call", {"name": "execute_code", "arguments": {"code": "x + 1"}}, 4)
        interrupt(wire)
        cancelled = await wire.answer(3)
        behind = await wire.answer(4)

    assert cancelled["isError"]
    assert "SIGINT" in cancelled["content"][0]["text"]
    assert behind["content"] == [{"type": "text", "text": "42"}]


@pytest.mark.parametrize("interrupt", [to_it, to_its_group])
async def test_a_second_signal_within_a_second_ends_all(
    environment: Mapping[str, str], places: Path, interrupt: Callable[[Wire], None]
) -> None:
    async with wired(environment, places, process_group=0) as wire:
        await begin(wire, 2, places)
        started = children(wire.process.pid)
        interrupt(wire)
        await wire.answer(2)
        interrupt(wire)
        status = await ended(wire)
        left = await asyncio.to_thread(survivors, started)

    assert (status, left) == (INTERRUPTED, [])


async def test_signals_that_are_further_apart_cancel_one_request_each(
    environment: Mapping[str, str], places: Path
) -> None:
    async with wired(environment, places) as wire:
        for id in (2, 3):
            await begin(wire, id, places)
            to_it(wire)
            assert (await wire.answer(id))["isError"]
            # time itself is what is tested
            await wire.call(10 + id, "execute_code", {"code": f"time.sleep({TWICE + 0.1})"})
        after = await wire.call(4, "execute_code", {"code": "6 * 7"})

    assert after["content"] == [{"type": "text", "text": "42"}]


async def test_a_request_that_the_client_has_just_cancelled_counts_as_active(
    environment: Mapping[str, str], places: Path
) -> None:
    stubborn = "while True:\n    try: time.sleep(1000)\n    except KeyboardInterrupt: pass"
    async with wired(environment, places) as wire:
        await begin(wire, 2, places, then=stubborn)
        await wire.send("notifications/cancelled", {"requestId": 2})
        await wire.call(3, "list_tools", {})  # the server has read it then
        to_it(wire)
        async with asyncio.timeout(TIMEOUT):
            while "SIGINT" not in (places / "errors.log").read_text():  # noqa: ASYNC110  # the log is all that says it
                await asyncio.sleep(0.01)
        listed = await wire.call(4, "list_tools", {})

    assert listed["structuredContent"]["servers"][0]["name"] == "mini"


async def test_a_signal_while_nothing_runs_ends_all(environment: Mapping[str, str], places: Path) -> None:
    async with wired(environment, places) as wire:
        await wire.call(2, "execute_code", {"code": "1"})
        to_it(wire)
        assert await ended(wire) == INTERRUPTED
