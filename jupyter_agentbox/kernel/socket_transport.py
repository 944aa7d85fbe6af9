"""The line of a kernel that its owner started: a socket between the two, in place of comm messages.

A comm message is signed, passes two threads of ZeroMQ and ipykernel's control thread, and is announced with two status
messages. Nobody but the owner listens here, so none of that is needed.
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
    """A transport of an ipykernel whose messages go through a socket; its outputs, as all outputs, on IOPub.

    Parameters
    ----------
    kernel : ipykernel.kernelbase.Kernel
        The kernel of this process.
    cells : Cells
        Knows which cell runs.
    fd : int
        The socket's file descriptor.
    texts_sent : callable
        Returns how many messages with text the kernel has sent on IOPub.
    """

    def __init__(self, kernel: Any, cells: Cells, *, fd: int, texts_sent: Callable[[], int] = lambda: 0) -> None:
        super().__init__(kernel, cells)
        self._texts_sent = texts_sent
        self._socket = socket.socket(fileno=fd)
        self._sending = threading.Lock()

    def send(self, message: JsonObject) -> None:
        """Send a message. It says how many texts were sent before it, so that its owner can take it after them."""
        flush_streams()
        message = {**message, TEXTS_BEFORE: self._texts_sent()}
        with suppress(OSError), self._sending:  # without the other end nobody answers, which is noticed
            for packet in to_packets(message):
                self._socket.send(packet)

    def listen(self, receive: Callable[[Any], None]) -> None:
        """Hand each message to `receive`, in a thread that is for this alone."""
        threading.Thread(target=self._read, args=(receive,), name="agentbox-link", daemon=True).start()

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def _read(self, receive: Callable[[Any], None]) -> None:
        joiner = Joiner()
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
                    # The root of a thread: without it no answer comes any more.
                    log.exception("a message from the kernel's owner could not be handled")
