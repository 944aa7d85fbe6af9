"""Cells that wait for one another."""

from __future__ import annotations

import asyncio

import pytest

from jupyter_agentbox.mcp_server.activity import Activity
from jupyter_agentbox.mcp_server.cell_queue import CellQueue
from jupyter_agentbox.mcp_server.sessions import SessionError

from .test_activity import Time


class Cells:
    """Cells in one queue, each of which runs until it is let go."""

    def __init__(self, busy_timeout: float) -> None:
        self.now = Time()
        self.queue = CellQueue(busy_timeout, now=self.now)
        self.begun: list[str] = []
        self.lost: list[str] = []
        self.go = {name: asyncio.Event() for name in "abc"}
        self.running = {name: asyncio.Event() for name in "abc"}

    def send(self, name: str) -> asyncio.Task[None]:
        return asyncio.ensure_future(self._run(name))

    async def _run(self, name: str) -> None:
        async with self.queue.enter(Activity(now=self.now)) as cell:
            self.begun.append(name)
            self.running[name].set()
            await self.go[name].wait()
            if cell.is_lost:
                self.lost.append(name)


async def test_cells_run_in_the_order_in_which_they_came_also_if_one_gives_up() -> None:
    async with asyncio.timeout(60):
        cells = Cells(busy_timeout=1000)
        a, b, c = (cells.send(name) for name in "abc")
        await cells.running["a"].wait()
        b.cancel()
        await asyncio.gather(b, return_exceptions=True)
        for name in "ac":
            cells.go[name].set()
        await asyncio.gather(a, c)

    assert cells.begun == ["a", "c"]


async def test_one_that_comes_long_after_the_one_that_runs_is_told_what_that_one_does() -> None:
    async with asyncio.timeout(60):
        cells = Cells(busy_timeout=0.01)
        a = cells.send("a")
        await cells.running["a"].wait()
        cells.now.seconds = 60
        with pytest.raises(SessionError, match="it has been running for 60 s"):
            await cells.send("b")
        cells.go["a"].set()
        await a

    assert cells.begun == ["a"]


async def test_those_that_were_sent_together_wait_for_as_long_as_it_takes() -> None:
    async with asyncio.timeout(60):
        cells = Cells(busy_timeout=0.01)
        a, b = cells.send("a"), cells.send("b")
        await cells.running["a"].wait()
        cells.now.seconds = 60
        with pytest.raises(SessionError):
            await cells.send("c")  # more than the time of `b` is over by then
        for name in "ab":
            cells.go[name].set()
        await asyncio.gather(a, b)

    assert cells.begun == ["a", "b"]


async def test_a_reset_ends_those_that_wait_and_marks_the_one_that_runs_and_leaves_later_ones_alone() -> None:
    async with asyncio.timeout(60):
        cells = Cells(busy_timeout=1000)
        a, b = cells.send("a"), cells.send("b")
        await cells.running["a"].wait()
        cells.queue.lose()
        c = cells.send("c")
        with pytest.raises(SessionError, match="reset"):
            await b
        cells.go["a"].set()
        cells.go["c"].set()
        await asyncio.gather(a, c)

    assert (cells.begun, cells.lost) == (["a", "c"], ["a"])
