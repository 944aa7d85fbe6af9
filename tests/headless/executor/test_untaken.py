"""Requests that the reader of a cell has left, with a kernel that does what the test says."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_agentbox import ApprovalRequest, CodeExecutor
from jupyter_agentbox.core.approvals import Lapse
from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.headless.execution_queue import ExecutionQueue
from jupyter_agentbox.headless.request_queue import RequestQueue
from jupyter_agentbox.headless.running_kernel import RunningKernel
from jupyter_agentbox.testing import TIMEOUT
from tests.headless.kernels.test_execution_queue import IDLE, REPLY, ScriptedKernel
from tests.samples import a_request


class Kernel(ScriptedKernel):
    """Says when it is sent a cell."""

    def __init__(self) -> None:
        super().__init__(IDLE, REPLY)
        self.was_sent = asyncio.Event()

    def send(self, kind: str, content: JsonObject) -> str:
        self.was_sent.set()
        return super().send(kind, content)


@pytest.fixture
def kernel() -> Kernel:
    return Kernel()


@pytest.fixture
def executor(tmp_path: Path, kernel: Kernel) -> Iterator[CodeExecutor]:
    made = CodeExecutor()

    async def withdrawn() -> None:
        """Do nothing: this kernel withdraws nothing."""

    async def decide(*_: object) -> None:
        """Do nothing: nobody waits for it."""

    backend: Any = SimpleNamespace(requests=RequestQueue(decide, lambda _: False), withdrawn=withdrawn)
    made._backend = backend
    turns = ExecutionQueue(kernel, images_dir=tmp_path)
    made._running = RunningKernel(kernel=kernel, turns=turns, backend=backend, questions=made._questions)  # type: ignore[arg-type]
    yield made
    made._backend = made._running = None


def ask(executor: CodeExecutor, *ids: str) -> None:
    for id in ids:
        executor._request_changed(a_request(id))


async def ids_of(executor: CodeExecutor, count: int, *, timeout: float | None = None) -> list[str]:
    """Read a cell's requests, and leave when there were so many."""
    found: list[str] = []
    async with asyncio.timeout(TIMEOUT):
        stream = executor.stream("1", timeout=timeout)
        async for item in stream:
            assert isinstance(item, ApprovalRequest)
            found.append(item.id)
            if len(found) == count:
                break
        await stream.aclose()  # type: ignore[attr-defined]  # it is a generator
    return found


async def test_a_request_that_its_reader_left_is_handed_to_the_next_one(executor: CodeExecutor) -> None:
    ask(executor, "r1", "r2", "r3")

    assert await ids_of(executor, 1) == ["r1"]
    assert await ids_of(executor, 2) == ["r2", "r3"]


async def test_a_request_that_comes_when_the_cell_is_cancelled_is_handed_to_the_next_one(
    executor: CodeExecutor, kernel: Kernel
) -> None:
    reading = asyncio.ensure_future(ids_of(executor, 1))
    await kernel.was_sent.wait()
    executor.cancel()
    ask(executor, "r1")

    assert await reading == []
    assert await ids_of(executor, 1, timeout=0.1) == ["r1"]


async def test_what_was_withdrawn_meanwhile_is_not_handed_on(executor: CodeExecutor) -> None:
    ask(executor, "r1", "r2", "r3")
    assert await ids_of(executor, 1) == ["r1"]
    executor._request_changed(a_request("r2").lapse(Lapse.WITHDRAWN))

    assert await ids_of(executor, 1) == ["r3"]
