"""Real kernels that end, asked to and not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from jupyter_agentbox.bridge.kernel_exits import KernelExits
from jupyter_agentbox.core.kernel_exits import KernelExit

from .conftest import TIMEOUT, Kernels

END = KernelExit(reason="it needed more than 512 MiB of memory", limit="memory_limit")


class Listener:
    """An `ExitListener` that remembers."""

    def __init__(self) -> None:
        self.told: asyncio.Queue[tuple[str, KernelExit]] = asyncio.Queue()

    async def kernel_ended(self, kernel_id: str, end: KernelExit) -> None:
        """Remember the end."""
        self.told.put_nowait((kernel_id, end))

    async def next(self) -> tuple[str, KernelExit]:
        """Return the next end."""
        async with asyncio.timeout(TIMEOUT):
            return await self.told.get()


@pytest.fixture
def ended(kernels: Kernels, jp_serverapp: Any, jp_asyncio_loop: asyncio.AbstractEventLoop) -> Iterator[Listener]:
    """Who hears of the ends of the server's kernels."""
    listener = Listener()
    ends = KernelExits(kernels=kernels.manager, events=jp_serverapp.event_logger, listener=listener)
    yield listener
    jp_asyncio_loop.run_until_complete(ends.aclose())


async def start(kernels: Kernels, end: Any = END) -> str:
    """Start a kernel whose provisioner says this of its end."""
    kernel_id = await kernels.start()
    kernels.manager.get_kernel(kernel_id).provisioner.ended_by = end
    return kernel_id


@asynccontextmanager
async def death(kernels: Kernels, kernel_id: str) -> AsyncIterator[None]:
    """Let a kernel die; at the end it is started anew."""
    before = kernels.heard.started.count(kernel_id)
    kernels.manager.get_kernel(kernel_id).provisioner.process.kill()
    yield
    await kernels.heard.until(lambda: kernels.heard.started.count(kernel_id) > before)


async def test_each_death_is_told_once(kernels: Kernels, ended: Listener) -> None:
    kernel_id = await start(kernels)
    for _ in range(2):
        kernels.manager.get_kernel(kernel_id).provisioner.ended_by = END
        async with death(kernels, kernel_id):
            assert await ended.next() == (kernel_id, END)
    assert ended.told.empty()


async def test_a_kernel_that_is_not_started_again_is_told_of(kernels: Kernels, ended: Listener) -> None:
    kernel_id = await start(kernels)
    manager = kernels.manager.get_kernel(kernel_id)
    manager._restarter.restart_limit = 0
    manager.provisioner.process.kill()
    assert await ended.next() == (kernel_id, END)


async def test_a_kernel_that_ran_before_is_told_of_once(
    kernels: Kernels, jp_serverapp: Any, jp_asyncio_loop: asyncio.AbstractEventLoop
) -> None:
    kernel_id, listener = await start(kernels), Listener()
    ends = KernelExits(kernels=kernels.manager, events=jp_serverapp.event_logger, listener=listener)
    ends.watch_running()
    ends.watch_running()
    async with death(kernels, kernel_id):
        assert await listener.next() == (kernel_id, END)
    await ends.aclose()
    assert listener.told.empty()


async def test_a_kernel_that_is_restarted_or_shut_down_is_not_told_of(kernels: Kernels, ended: Listener) -> None:
    kernel_id, other = await start(kernels), await start(kernels)
    await kernels.manager.restart_kernel(kernel_id)
    await kernels.manager.shutdown_kernel(kernel_id)
    async with death(kernels, other):
        assert await ended.next() == (other, END)
    assert ended.told.empty()


@pytest.mark.parametrize("end", [None, "a word of another provisioner"])
async def test_a_provisioner_that_knows_nothing_is_not_told_of(kernels: Kernels, ended: Listener, end: Any) -> None:
    kernel_id = await start(kernels, end)
    async with death(kernels, kernel_id):
        pass
    assert ended.told.empty()
