"""ZeroMQ sockets read by the event loop, without a future or a task per message.

A ZeroMQ socket's file descriptor says only that *something* changed, once: after each look at it, and after each send,
everything that waits has to be read (zmq_getsockopt(3), ``ZMQ_FD``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import zmq

#: Messages that are read before the loop gets its turn.
_BATCH: Final = 200
#: Milliseconds between two tries to connect; ZeroMQ's own 100 would show in every start.
_RECONNECT: Final = 5
#: Milliseconds that a closed socket still tries to send.
_LINGER: Final = 100


def make_context() -> zmq.Context[zmq.Socket[bytes]]:
    """Return a context whose sockets drop nothing, however much is queued."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    context.setsockopt(zmq.RCVHWM, 0)
    context.setsockopt(zmq.SNDHWM, 0)
    context.setsockopt(zmq.LINGER, _LINGER)
    context.setsockopt(zmq.RECONNECT_IVL, _RECONNECT)
    return context


class LoopSocket:
    """A socket that passes each message to a function, in the running event loop.

    Parameters
    ----------
    context : zmq.Context
        From `make_context`.
    kind : int
        ``zmq.DEALER`` or ``zmq.SUB``; a SUB gets everything.
    address : str
        Where to connect; nothing needs to listen there yet.
    receive : callable
        Gets the parts of each message.
    """

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        kind: int,
        address: str,
        receive: Callable[[list[bytes]], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._receive = receive
        self._socket = context.socket(kind)
        if kind == zmq.SUB:
            self._socket.setsockopt(zmq.SUBSCRIBE, b"")
        self._socket.connect(address)
        self._fd = int(self._socket.getsockopt(zmq.FD))
        self._loop.add_reader(self._fd, self._read)
        self._is_scheduled = False
        self._schedule()

    def send(self, parts: list[bytes]) -> None:
        """Send a message; it waits in memory while the other end does not read."""
        self._socket.send_multipart(parts, zmq.DONTWAIT)
        self._schedule()

    def close(self) -> None:
        """Close the socket. Closing again does nothing."""
        if not self._socket.closed:
            self._loop.remove_reader(self._fd)
            self._socket.close()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._read_again)

    def _read_again(self) -> None:
        self._is_scheduled = False
        self._read()

    def _read(self) -> None:
        for _ in range(_BATCH):
            if self._socket.closed:
                return
            try:
                parts = self._socket.recv_multipart(zmq.DONTWAIT)
            except zmq.Again:
                return
            self._receive(parts)
        self._schedule()
