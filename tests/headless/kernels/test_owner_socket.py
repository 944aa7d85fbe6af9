from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from jupyter_agentbox.headless import owner_socket
from jupyter_agentbox.headless.owner_socket import OwnerSocket
from jupyter_agentbox.protocol.packets import MAX_PACKET, TEXTS_BEFORE, Joiner, to_packets
from jupyter_agentbox.testing import TIMEOUT

pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="macOS has no sockets of this type")


class Ends:
    """Our end, and the kernel's as the test plays it."""

    def __init__(self) -> None:
        self.heard: asyncio.Queue[Any] = asyncio.Queue()
        opened = OwnerSocket.open(self.heard.put_nowait)
        assert opened is not None
        self.ours = opened
        self.kernel = socket.socket(fileno=socket.dup(opened.their_fd))
        self.kernel.settimeout(TIMEOUT)
        opened.hand_over()

    async def hear(self) -> Any:
        async with asyncio.timeout(TIMEOUT):
            return await self.heard.get()

    def read(self) -> Any:
        joiner = Joiner()
        while (message := joiner.feed(self.kernel.recv(MAX_PACKET))) is None:
            pass
        return message


@asynccontextmanager
async def open_ends() -> AsyncIterator[Ends]:
    ends = Ends()
    try:
        yield ends
    finally:
        ends.ours.close()
        ends.kernel.close()


async def test_messages_go_both_ways() -> None:
    async with open_ends() as ends:
        for number in range(200):
            ends.kernel.send(next(to_packets({"out": number})))
            assert await ends.hear() == {"out": number}
            ends.ours.send({"in": number})
            assert ends.read() == {"in": number}


async def test_whatever_a_kernel_writes_does_no_harm() -> None:
    async with open_ends() as ends:
        for packet in (b"\x03{", b"\x00", b"\x02tail", b"\x03" + b"[" * 60_000, b"\xff" * MAX_PACKET):
            await asyncio.to_thread(ends.kernel.send, packet)
        ends.kernel.send(next(to_packets({"out": 1})))
        assert await ends.hear() == {"out": 1}


def after_texts(number: int, **message: Any) -> bytes:
    return next(to_packets({**message, TEXTS_BEFORE: number}))


async def test_message_waits_for_the_text_before_it_and_so_does_what_follows() -> None:
    async with open_ends() as ends:
        ends.kernel.send(after_texts(0, out=1))
        assert await ends.hear() == {"out": 1}
        for packet in (after_texts(2, out=2), after_texts(2, out=3), after_texts(3, out=4)):
            ends.kernel.send(packet)
        ends.ours.text_came()
        await asyncio.to_thread(ends.kernel.send, after_texts(3, out=5))
        assert ends.heard.empty()
        ends.ours.text_came()
        assert [await ends.hear(), await ends.hear()] == [{"out": 2}, {"out": 3}]
        assert ends.heard.empty()
        ends.ours.text_came()
        assert [await ends.hear(), await ends.hear()] == [{"out": 4}, {"out": 5}]


async def test_text_that_is_lost_holds_nothing_up_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner_socket, "_PATIENCE", 0.01)
    async with open_ends() as ends:
        for texts in (1, 1 << 70, -1, "many", None):
            ends.kernel.send(after_texts(texts, out=str(texts)))  # type: ignore[arg-type]  # a kernel sends anything
            assert await ends.hear() == {"out": str(texts)}


async def test_file_descriptors_that_a_kernel_sends_along_are_not_taken() -> None:
    async with open_ends() as ends:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            socket.send_fds(ends.kernel, list(to_packets({"out": 1})), [theirs.fileno()])
            theirs.close()
            assert await ends.hear() == {"out": 1}
            ours.settimeout(TIMEOUT)
            assert ours.recv(1) == b""  # nobody has the other end


async def test_what_the_kernel_does_not_read_waits_and_nothing_else_does() -> None:
    async with open_ends() as ends:
        messages = [{"in": number, "text": "x" * 50_000} for number in range(100)]
        for message in messages:
            ends.ours.send(message)
        ends.kernel.send(next(to_packets({"out": 1})))
        assert await ends.hear() == {"out": 1}
        assert await asyncio.to_thread(lambda: [ends.read() for _ in messages]) == messages


async def test_kernel_that_hangs_up_is_no_error() -> None:
    async with open_ends() as ends:
        ends.kernel.close()
        await asyncio.sleep(0)
        ends.ours.send({"in": 1})
        ends.ours.close()
        ends.ours.send({"in": 2})
        ends.ours.close()


async def test_nothing_is_open_after_closing_before_the_kernel_had_its_end() -> None:
    opened = OwnerSocket.open(lambda _message: None)
    assert opened is not None
    opened.close()
    assert opened.their_fd == -1


async def test_message_that_is_too_large_is_answered_with_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jupyter_agentbox.protocol.packets.MAX_MESSAGE", 200_000)
    async with open_ends() as ends:
        for packet in to_packets({"type": "call", "id": "c1", "text": "x" * 300_000}):
            await asyncio.to_thread(ends.kernel.send, packet)
        answer = await asyncio.to_thread(ends.read)
        assert isinstance(answer, dict)
        assert (answer["type"], answer["id"], answer["code"]) == ("failure", "c1", "invalid_arguments")
