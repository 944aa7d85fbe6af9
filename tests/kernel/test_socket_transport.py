from __future__ import annotations

import io
import os
import queue
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from jupyter_agentbox.kernel.cells import Cells
from jupyter_agentbox.kernel.socket_transport import SocketTransport
from jupyter_agentbox.protocol.messages import MAX_MESSAGE
from jupyter_agentbox.protocol.packets import MAX_PACKET, TEXTS_BEFORE, Joiner, to_packets
from jupyter_agentbox.protocol.sizes import MAX_VALUES

pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="macOS has no sockets of this type")

TIMEOUT = 60

#: How many texts the kernel has sent.
TEXTS = 7


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        ours.settimeout(TIMEOUT)
        yield ours, theirs


@pytest.fixture
def owner(pair: tuple[socket.socket, socket.socket]) -> socket.socket:
    return pair[0]


@pytest.fixture
def transport(pair: tuple[socket.socket, socket.socket], cells: Cells) -> Iterator[SocketTransport]:
    owner, kernel = pair
    made = SocketTransport(object(), cells, fd=os.dup(kernel.fileno()), texts_sent=lambda: TEXTS)
    yield made
    with suppress(OSError):
        owner.shutdown(socket.SHUT_RDWR)  # ends the thread that reads
    made.close()


def receive(owner: socket.socket) -> Any:
    joiner = Joiner()
    while (message := joiner.feed(owner.recv(MAX_PACKET))) is None:
        pass
    assert isinstance(message, dict)
    assert message.pop(TEXTS_BEFORE) == TEXTS
    return message


def test_messages_go_both_ways(owner: socket.socket, transport: SocketTransport) -> None:
    heard: queue.SimpleQueue[Any] = queue.SimpleQueue()
    transport.listen(heard.put)
    transport.send({"out": 1})
    assert receive(owner) == {"out": 1}
    for packet in to_packets({"in": "x" * (3 * MAX_PACKET)}):
        owner.send(packet)
    assert heard.get(timeout=TIMEOUT) == {"in": "x" * (3 * MAX_PACKET)}


def test_a_result_may_be_larger_than_what_a_kernel_may_send(owner: socket.socket, transport: SocketTransport) -> None:
    heard: queue.SimpleQueue[Any] = queue.SimpleQueue()
    transport.listen(heard.put)
    results = {"text": "x" * (MAX_MESSAGE + 1)}, {"values": [0] * (MAX_VALUES + 1)}
    for result in results:
        for packet in to_packets(result):
            owner.send(packet)
        assert heard.get(timeout=TIMEOUT) == result


def test_what_cannot_be_read_is_dropped(owner: socket.socket, transport: SocketTransport) -> None:
    heard: queue.SimpleQueue[Any] = queue.SimpleQueue()
    transport.listen(heard.put)
    owner.send(b"\x03{")
    owner.send(next(to_packets({"in": 1})))
    assert heard.get(timeout=TIMEOUT) == {"in": 1}


def test_whatever_one_message_does_the_next_one_is_taken(owner: socket.socket, transport: SocketTransport) -> None:
    heard: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def take(message: Any) -> None:
        if message == {"in": 1}:
            raise ZeroDivisionError
        heard.put(message)

    transport.listen(take)
    for number in (1, 2):
        owner.send(next(to_packets({"in": number})))
    assert heard.get(timeout=TIMEOUT) == {"in": 2}


def test_call_goes_out_whatever_a_cell_put_in_the_place_of_stdout(
    owner: socket.socket, transport: SocketTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stdout", closed)
    monkeypatch.setattr(sys, "stderr", None)
    transport.send({"out": 1})
    assert receive(owner) == {"out": 1}


def test_long_messages_of_several_threads_are_not_mixed(owner: socket.socket, transport: SocketTransport) -> None:
    messages = [{"text": str(number) * (3 * MAX_PACKET)} for number in range(8)]
    threads = [threading.Thread(target=transport.send, args=(message,)) for message in messages]
    for thread in threads:
        thread.start()
    received = [receive(owner) for _ in messages]
    for thread in threads:
        thread.join(TIMEOUT)
    assert sorted(received, key=str) == sorted(messages, key=str)


def test_what_was_printed_is_sent_before_the_message(
    owner: socket.socket, transport: SocketTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stream:
        def flush(self) -> None:
            owner.setblocking(False)
            with pytest.raises(BlockingIOError):
                owner.recv(MAX_PACKET)
            flushed.append(self)

    flushed: list[Stream] = []
    monkeypatch.setattr(sys, "stdout", Stream())
    transport.send({"out": 1})
    assert len(flushed) == 1
    assert receive(owner) == {"out": 1}


def test_owner_that_is_gone_is_no_error(owner: socket.socket, transport: SocketTransport) -> None:
    owner.close()
    transport.send({"out": 1})
