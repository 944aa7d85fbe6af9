"""What programs print is in the cell that started them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest
import zmq
from ipykernel.iostream import IOPubThread
from jupyter_client.session import Session

from jupyter_agentbox.kernel_app.streams import WatchedStream, texts_sent

TIMEOUT = 60


@pytest.fixture
def stream() -> Iterator[WatchedStream]:
    """A stream that sends what it has only when it is told."""
    context = zmq.Context[zmq.Socket[bytes]]()
    thread = IOPubThread(context.socket(zmq.PUB), pipe=False)
    made = WatchedStream(Session(key=b"key"), thread, "stdout", watchfd=False)
    made.flush_interval = 10 * TIMEOUT
    yield made
    thread.close()
    context.destroy(linger=0)


@pytest.fixture
def program(stream: WatchedStream) -> Iterator[int]:
    """The file descriptor that programs write to."""
    reader, writer = os.pipe()
    stream._fid = reader
    yield writer
    os.close(reader)
    os.close(writer)


def sent(stream: WatchedStream) -> str:
    """Take what a flush would send."""
    return "".join(text for _, text in stream._flush_buffers())


class SlowDecoder:
    """Stands for a thread that has read and has not written yet."""

    def __init__(self) -> None:
        self.has_read = threading.Event()
        self.may_go_on = threading.Event()

    def decode(self, data: bytes) -> str:
        self.has_read.set()
        assert self.may_go_on.wait(TIMEOUT)
        return data.decode()


def test_text_of_a_program_comes_before_what_is_printed_later(stream: WatchedStream, program: int) -> None:
    os.write(program, b"first ")
    stream.write("second")

    assert sent(stream) == "first second"


def test_who_drains_waits_for_what_another_thread_has_read(stream: WatchedStream, program: int) -> None:
    slow = SlowDecoder()
    stream.__dict__["_decoder"] = slow
    os.write(program, b"late")
    watcher = threading.Thread(target=stream.drain)
    watcher.start()
    assert slow.has_read.wait(TIMEOUT)
    cell = threading.Thread(target=stream.drain)
    cell.start()
    cell.join(0.2)
    assert cell.is_alive()
    slow.may_go_on.set()
    cell.join(TIMEOUT)

    assert sent(stream) == "late"
    watcher.join()


def test_each_message_with_text_is_counted(stream: WatchedStream) -> None:
    before = texts_sent()
    stream.write("one")
    stream.write(" message\n")
    stream.flush()
    stream.flush()
    assert texts_sent() == before + 1
    stream.write("another")
    stream.flush()
    assert texts_sent() == before + 2
