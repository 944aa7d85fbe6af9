"""The transport of a kernel that its owner started: a socket instead of comm messages.

A comm message is signed, passes through two ZeroMQ threads and ipykernel's control thread, and is accompanied by two
status messages. The owner is the only listener here, so none of that is needed.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.protocol.messages import MessageError
from jupyter_agentbox.protocol.packets import MAX_PACKET, TEXTS_BEFORE, Joiner, to_packets

from .cells import Cells
from .transport import KernelTransport, flush_streams

log = logging.getLogger(__name__)


class SocketTransport(KernelTransport):
    """An ipykernel's transport with messages over a socket; outputs use IOPub, as always.

    Parameters
    ----------
    kernel : ipykernel.kernelbase.Kernel
        The kernel of this process.
    cells : Cells
        Tracks the running cell.
    fd : int
        The socket's file descriptor.
    texts_sent : callable
        Returns the number of text messages that the kernel has sent on IOPub.
    """

    def __init__(self, kernel: Any, cells: Cells, *, fd: int, texts_sent: Callable[[], int] = lambda: 0) -> None:
        super().__init__(kernel, cells)
        self._texts_sent = texts_sent
        self._socket = socket.socket(fileno=fd)
        self._sending = threading.Lock()

    def send(self, message: JsonObject) -> None:
        """Send a message with the number of earlier text messages, after which the owner must handle it."""
        flush_streams()
        message = {**message, TEXTS_BEFORE: self._texts_sent()}
        with suppress(OSError), self._sending:  # if the other end is gone, nobody answers, which is detected
            for packet in to_packets(message):
                self._socket.send(packet)

    def listen(self, receive: Callable[[Any], None]) -> None:
        """Pass each message to `receive`, in a dedicated thread."""
        threading.Thread(target=self._read, args=(receive,), name="agentbox-link", daemon=True).start()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _read(self, receive: Callable[[Any], None]) -> None:
        joiner = Joiner(is_limited=False)
        with suppress(OSError):
            while packet := self._socket.recv(MAX_PACKET):
                try:
                    message = joiner.feed(packet)
                except MessageError as problem:
                    log.warning("dropped a message from the kernel's owner: %s", problem)
                    continue
                try:
                    if message is not None:
                        receive(message)
                except Exception:
                    # The root of a thread, without which no more answers would arrive.
                    log.exception("a message from the kernel's owner could not be handled")
