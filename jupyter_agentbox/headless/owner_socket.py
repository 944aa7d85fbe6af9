"""The socket between a kernel and its owner process, for tool calls and their answers only.

The kernel inherits one end, so nobody else can speak on it, and no address and no key is needed.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Callable
from typing import Final, Self

from jupyter_agentbox.core.calls import JsonObject, JsonValue
from jupyter_agentbox.protocol.messages import MessageError, TooLargeError, to_json, too_large
from jupyter_agentbox.protocol.packets import MAX_PACKET, TEXTS_BEFORE, Joiner, to_packets

log = logging.getLogger(__name__)

#: Packets that are read before the loop gets its turn.
_BATCH: Final = 50
#: Seconds that a message waits for the text before it, which may be lost: code can close IOPub.
_PATIENCE: Final = 5.0


class OwnerSocket:
    """Our end of the socket, read by the running event loop; and the kernel's end until it is inherited.

    Parameters
    ----------
    ours, theirs : socket.socket
        The ends of a pair of type ``SOCK_SEQPACKET``.
    receive : callable
        Gets each message. The kernel runs any code: nothing in it is trusted.
    """

    def __init__(self, ours: socket.socket, theirs: socket.socket, receive: Callable[[JsonValue], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._receive = receive
        self._socket = ours
        self._theirs = theirs
        self._joiner = Joiner()
        self._unsent: deque[bytes] = deque()
        self._texts = 0
        self._held: tuple[int, JsonValue] | None = None
        self._giving_up: asyncio.TimerHandle | None = None
        ours.setblocking(False)
        self._loop.add_reader(ours, self._read)

    @classmethod
    def open(cls, receive: Callable[[JsonValue], None]) -> Self | None:
        """Create a pair; ``None`` on systems without this type, such as macOS."""
        try:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        except OSError:
            return None
        return cls(ours, theirs, receive)

    @property
    def their_fd(self) -> int:
        """The file descriptor of the kernel's end."""
        return self._theirs.fileno()

    def hand_over(self) -> None:
        """Close the kernel's end here, once the kernel has inherited it."""
        self._theirs.close()

    def send(self, message: JsonObject) -> None:
        """Send a message; it waits in memory while the kernel does not read."""
        if self._socket.fileno() < 0:
            return
        was_waiting = bool(self._unsent)
        self._unsent.extend(to_packets(message))
        if not was_waiting:
            self._write()
            if self._unsent:
                self._loop.add_writer(self._socket, self._write_rest)

    def text_came(self) -> None:
        """Count a text message of the kernel on IOPub; a later message on the socket may now be handled."""
        self._texts += 1
        if self._held is not None and self._held[0] <= self._texts:
            self._hand_on()

    def close(self) -> None:
        """Close both ends. Closing again does nothing."""
        self._held = None
        if self._giving_up is not None:
            self._giving_up.cancel()
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._socket.close()
        self._theirs.close()
        self._unsent.clear()

    def _write(self) -> None:
        try:
            while self._unsent:
                self._socket.send(self._unsent[0])
                self._unsent.popleft()
        except BlockingIOError:
            return
        except OSError:
            self._unsent.clear()  # the kernel is gone, which its process tells

    def _write_rest(self) -> None:
        self._write()
        if not self._unsent:
            self._loop.remove_writer(self._socket)

    def _read(self) -> None:
        for _ in range(_BATCH):
            try:
                packet = self._socket.recv(MAX_PACKET)
            except BlockingIOError:
                return
            except OSError as error:
                log.debug("a kernel's socket: %s", error)
                packet = b""
            if not packet:  # the kernel closed it
                self._loop.remove_reader(self._socket)
                return
            self._take(packet)
            if self._held is not None or self._socket.fileno() < 0:
                return

    def _take(self, packet: bytes) -> None:
        try:
            message = self._joiner.feed(packet)
        except TooLargeError as error:
            if error.id is not None:
                self.send(to_json(too_large(error)))
            return
        except MessageError as error:
            log.warning("ignored an unreadable message from a kernel: %s", error)
            return
        if message is None:
            return
        texts = message.pop(TEXTS_BEFORE, 0) if isinstance(message, dict) else 0
        if isinstance(texts, int) and texts > self._texts:
            self._hold(texts, message)
        else:
            self._receive(message)

    def _hold(self, texts: int, message: JsonValue) -> None:
        """Pause reading until the text before a message has arrived."""
        self._held = texts, message
        self._loop.remove_reader(self._socket)
        self._giving_up = self._loop.call_later(_PATIENCE, self._hand_on)

    def _hand_on(self) -> None:
        if self._held is None or self._giving_up is None:
            return
        (texts, message), self._held = self._held, None
        self._giving_up.cancel()
        self._texts = max(self._texts, texts)  # what has not come by now is lost
        self._loop.add_reader(self._socket, self._read)
        self._receive(message)
