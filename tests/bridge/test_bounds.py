"""What a kernel can make its line hold, with a kernel that does what no kernel side would."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import zmq
from jupyter_client.manager import KernelManager
from jupyter_client.session import Session

from jupyter_agentbox.bridge import channel as bridge
from jupyter_agentbox.bridge.channel import Received, ZmqKernelChannel, make_context
from jupyter_agentbox.core.calls import JsonObject

KEY = b"a key"
COMM = "agentbox-test"
TIMEOUT = 60


class HostileKernel:
    """The sockets of a kernel, and nothing behind them."""

    def __init__(self, directory: Path) -> None:
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.iopub, self.control = self.context.socket(zmq.XPUB), self.context.socket(zmq.ROUTER)
        self.control.setsockopt(zmq.RCVHWM, 1)
        self.iopub.bind(f"ipc://{directory}/k-1")
        self.control.bind(f"ipc://{directory}/k-2")
        self.manager = KernelManager(transport="ipc", ip=f"{directory}/k")
        ports = {"iopub_port": 1, "control_port": 2, "shell_port": 3, "stdin_port": 4, "hb_port": 5}
        self.manager.load_connection_info({**ports, "transport": "ipc", "ip": f"{directory}/k", "key": KEY})
        self.session = Session(key=KEY)
        self.received: list[Received] = []
        self.failures = 0
        self.line_context = make_context()
        self._changed = asyncio.Event()

    def connect(self) -> ZmqKernelChannel:
        """Return the server's end of the line."""
        return ZmqKernelChannel(
            manager=self.manager, context=self.line_context, receive=self._receive, on_failure=self._fail
        )

    def publish(self, data: Any, *, size: int = 0) -> None:
        """Send a comm message."""
        content = {"data": data, "comm_id": COMM, "padding": "x" * size}
        message = self.session.serialize(self.session.msg("comm_msg", content))
        self.iopub.send_multipart([f"comm-{COMM}".encode(), *message])

    async def subscribed(self) -> None:
        """Wait until the line listens."""
        while await asyncio.to_thread(self.iopub.recv) != b"\x01comm-agentbox-":
            pass

    async def answer(self) -> JsonObject:
        """Take the next message that the line sent on control."""
        frames = await asyncio.to_thread(self.control.recv_multipart)
        content: JsonObject = json.loads(frames[frames.index(b"<IDS|MSG>") + 5])["data"]
        return content

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until this holds."""
        async with asyncio.timeout(TIMEOUT):
            while not holds():
                self._changed.clear()
                await self._changed.wait()

    def _receive(self, received: Received) -> None:
        self.received.append(received)
        self._changed.set()

    def _fail(self) -> None:
        self.failures += 1
        self._changed.set()


@pytest.fixture
def kernel(tmp_path_factory: pytest.TempPathFactory, jp_asyncio_loop: asyncio.AbstractEventLoop) -> Iterator[Any]:
    """A kernel whose line `HostileKernel.connect` makes."""
    kernel = HostileKernel(tmp_path_factory.mktemp("k"))
    yield kernel
    kernel.line_context.destroy(linger=0)
    kernel.context.destroy(linger=0)


@pytest.fixture
def line(kernel: HostileKernel, jp_asyncio_loop: asyncio.AbstractEventLoop) -> Iterator[ZmqKernelChannel]:
    """The line to it."""

    async def connect() -> ZmqKernelChannel:
        line = kernel.connect()
        await kernel.subscribed()
        return line

    line = jp_asyncio_loop.run_until_complete(connect())
    yield line
    jp_asyncio_loop.run_until_complete(line.close())


async def test_what_a_message_takes_in_memory_is_told_with_it(kernel: HostileKernel, line: ZmqKernelChannel) -> None:
    kernel.publish("hello", size=1000)
    kernel.publish([[]] * 100_000)  # read in a thread
    await kernel.until(lambda: len(kernel.received) == 2)
    small, large = kernel.received
    assert (small.comm_id, small.data, 1000 < small.weight < 2000) == (COMM, "hello", True)
    assert (large.data, large.weight > 64 * 100_000) == ([[]] * 100_000, True)


@pytest.mark.parametrize("limit", ["MAX_MESSAGE", "MAX_VALUES"])
async def test_a_message_that_is_too_large_is_answered_with_a_failure_and_the_line_goes_on(
    kernel: HostileKernel, line: ZmqKernelChannel, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge, limit, 200_000)
    kernel.publish({"type": "call", "id": "c1", "arguments": {"text": [0] * 400_000}})
    kernel.publish("after")
    async with asyncio.timeout(TIMEOUT):
        answer = await kernel.answer()
    assert (answer["type"], answer["id"], answer["code"]) == ("failure", "c1", "invalid_arguments")
    await kernel.until(lambda: bool(kernel.received))
    assert [one.data for one in kernel.received] == ["after"]


@pytest.mark.parametrize("part", ["metadata", "parent_header"])
async def test_the_values_of_all_parts_of_a_message_count(
    kernel: HostileKernel, line: ZmqKernelChannel, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge, "MAX_VALUES", 200_000)
    call = {"type": "call", "id": "c1"}
    message = kernel.session.msg("comm_msg", {"data": call, "comm_id": COMM})
    message[part] = {"values": [0] * 400_000}
    kernel.iopub.send_multipart([f"comm-{COMM}".encode(), *kernel.session.serialize(message)])
    async with asyncio.timeout(TIMEOUT):
        answer = await kernel.answer()
    assert (answer["type"], answer["id"]) == ("failure", "c1")
    assert kernel.received == []


async def test_a_part_that_no_message_may_have_ends_the_line_instead_of_taking_memory(
    kernel: HostileKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge, "_LARGEST_PART", 1_000_000)
    kernel.line_context.destroy(linger=0)
    kernel.line_context = make_context()
    line = kernel.connect()
    await kernel.subscribed()
    kernel.publish("before")
    await kernel.until(lambda: bool(kernel.received))
    kernel.publish("large", size=2_000_000)
    async with asyncio.timeout(TIMEOUT):
        while await asyncio.to_thread(kernel.iopub.recv) != b"\x00comm-agentbox-":  # it hung up
            pass
    assert [one.data for one in kernel.received] == ["before"]
    await line.close()


async def test_a_kernel_that_does_not_take_its_answers_is_not_read(
    kernel: HostileKernel, line: ZmqKernelChannel
) -> None:
    for _ in range(20):
        line.send(COMM, {"type": "reply", "text": "x" * 1_000_000})
    for text in ("read already", "flood"):
        kernel.publish(text)
    with suppress(TimeoutError):
        async with asyncio.timeout(1):
            await kernel.until(lambda: len(kernel.received) == 2)
    assert len(kernel.received) <= 1  # more answers wait than the line's socket holds
    for _ in range(20):
        await kernel.answer()
    await kernel.until(lambda: len(kernel.received) == 2)


async def test_replies_without_end_on_control_keep_no_answer_back(
    kernel: HostileKernel, line: ZmqKernelChannel
) -> None:
    line.send(COMM, {"type": "pong"})
    identity, *_ = await asyncio.to_thread(kernel.control.recv_multipart)
    has_begun = threading.Event()

    def flood() -> int:
        ends_at, taken = time.monotonic() + TIMEOUT, 0
        while taken < 5 and time.monotonic() < ends_at:
            for _ in range(1000):
                kernel.control.send_multipart([identity, b"noise"])
            has_begun.set()
            while kernel.control.poll(0):
                kernel.control.recv_multipart()
                taken += 1
        return taken

    flooding = asyncio.create_task(asyncio.to_thread(flood))
    await asyncio.to_thread(has_begun.wait)
    for _ in range(5):
        line.send(COMM, {"type": "pong"})
    assert await flooding == 5


async def test_the_log_says_only_so_often_that_a_kernel_sends_what_cannot_be_read(
    kernel: HostileKernel, line: ZmqKernelChannel, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(50):
            kernel.iopub.send_multipart([f"comm-{COMM}".encode(), b"noise"])
        kernel.publish("last")
        await kernel.until(lambda: bool(kernel.received))
    assert 1 <= len([record for record in caplog.records if record.message.startswith("ignored ")]) <= 5


async def test_a_line_that_breaks_says_so(
    kernel: HostileKernel, line: ZmqKernelChannel, caplog: pytest.LogCaptureFixture
) -> None:
    def break_it(received: Received) -> None:
        raise RuntimeError("nobody thought of this")

    line._receive = break_it
    kernel.publish("anything")
    await kernel.until(lambda: kernel.failures == 1)
    assert "nobody thought of this" in caplog.text


async def test_an_answer_that_is_large_and_no_json_becomes_a_failure(
    kernel: HostileKernel, line: ZmqKernelChannel
) -> None:
    answer: Any = {"type": "reply", "id": "c1", "text": "x" * 200_000, "value": object()}
    line.send(COMM, answer)
    async with asyncio.timeout(TIMEOUT):
        sent = await kernel.answer()
    assert (sent["type"], sent["id"]) == ("failure", "c1")
