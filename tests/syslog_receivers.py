"""A syslog receiver for tests, over TCP or UDP: it can be away at first, and break off connections."""

from __future__ import annotations

import asyncio
import re
import socket
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from .collectors import Collector

#: RFC 5424: priority, version, time, host, program, process, message id, no structured data; then the message.
_MESSAGE: Final = re.compile(rb"<110>1 \S+ \S+ (?P<program>\S+) \d+ audit - (?P<record>.*)", re.DOTALL)


class SyslogReceiver(Collector):
    """What was received; `bodies` are whole messages.

    Attributes
    ----------
    programs : set of str
        The programs that messages are from.
    may_read : asyncio.Event
        While it is not set, no further message is read.
    has_stalled : asyncio.Event
        Set once a sender waits for that.
    """

    def __init__(self, place: socket.socket, breaks_after: Sequence[int] = ()) -> None:
        super().__init__()
        self.programs: set[str] = set()
        self.may_read = asyncio.Event()
        self.may_read.set()
        self.has_stalled = asyncio.Event()
        self._place = place
        self._breaks_after = list(breaks_after)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Listen over TCP."""
        server = await asyncio.start_server(self._serve, sock=self._place.dup())
        try:
            yield
        finally:
            server.close()
            await server.wait_closed()

    async def take_message(self, message: bytes) -> None:
        """Take a syslog message."""
        found = _MESSAGE.fullmatch(message)
        assert found is not None, message
        self.programs.add(found["program"].decode())
        await self.take(found["record"], {})

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        left = self._breaks_after.pop(0) if self._breaks_after else -1
        try:
            while left != 0:
                size = await reader.readuntil(b" ")
                if not self.may_read.is_set():
                    self.has_stalled.set()
                    await self.may_read.wait()
                await self.take_message(await reader.readexactly(int(size)))
                left -= 1
            reset = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            writer.transport.abort()
        except asyncio.IncompleteReadError:
            pass  # the sender has ended the connection
        finally:
            writer.close()


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, receiver: SyslogReceiver) -> None:
        self._receiver = receiver
        self._taking: set[asyncio.Task[None]] = set()

    def datagram_received(self, data: bytes, _addr: Any) -> None:
        task = asyncio.create_task(self._receiver.take_message(data))
        self._taking.add(task)
        task.add_done_callback(self._taking.discard)


def tcp_place() -> tuple[socket.socket, str]:
    """Return a socket at which nobody listens yet, and its address as that of an audit sink."""
    place = socket.socket()
    place.bind(("127.0.0.1", 0))
    return place, f"syslog+tcp://127.0.0.1:{place.getsockname()[1]}"


@asynccontextmanager
async def receiving_datagrams() -> AsyncIterator[tuple[SyslogReceiver, str]]:
    """Listen over UDP."""
    place = socket.socket(type=socket.SOCK_DGRAM)
    place.bind(("127.0.0.1", 0))
    receiver = SyslogReceiver(place)
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(lambda: _Datagrams(receiver), sock=place)
    try:
        yield receiver, f"syslog://127.0.0.1:{place.getsockname()[1]}"
    finally:
        transport.close()
