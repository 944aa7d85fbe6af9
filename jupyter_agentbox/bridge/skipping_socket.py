"""A websocket that drops what nobody wants while it arrives: no message that is not for us is ever held as a whole.

Tornado's websocket reads every message into memory, and hangs up at one that is larger than its limit. A kernel that
prints 100 MB sends it as one message. So the loop that reads frames is another one here: of each message it reads the
beginning, asks whether the rest is wanted, and drops the rest in pieces if not. The handshake, with its TLS,
credentials and time limits, and what is written, are Tornado's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from tornado import httpclient, httputil
from tornado.websocket import WebSocketClientConnection, WebSocketProtocol, WebSocketProtocol13

#: Bytes of a message that are dropped in one step.
_STEP: Final = 65_536
#: Seconds of reading without a pause after which the rest of the server gets as much time.
_TURN: Final = 0.02
_FINAL, _RESERVED, _OPCODE, _CONTROL, _LENGTH = 0x80, 0x70, 0x0F, 0x08, 0x7F
_CONTINUATION, _TEXT, _BINARY = 0, 1, 2
_LONGEST_CONTROL: Final = 125

#: Given the beginning of a message, returns the most bytes that it may have to be wanted; 0 if it is not.
MostBytes = Callable[[bytes], int]
#: Takes a message that is wanted. Nothing more is read until it is done.
Take = Callable[[bytes], Awaitable[None]]


class SkippingSocket(WebSocketClientConnection):
    """A websocket to a server, from `connect`.

    Parameters
    ----------
    request : HTTPRequest
        Where to, and with what credentials.
    subprotocols : list of str
        What to speak; the server chooses.
    head_size : int
        Bytes at a message's beginning that `most_bytes` gets, if it has so many.

    Attributes
    ----------
    most_bytes, take : callable
        Set before anything is read: as soon as the connection is there.
    heard_at : float
        When something came last, on the monotonic clock.
    acknowledged : callable
        Called with the data of a ping when the server has answered it: it has taken all that was sent before.
    closed : asyncio.Event
        Set when the connection has ended.
    """

    def __init__(self, request: httpclient.HTTPRequest, *, subprotocols: list[str], head_size: int) -> None:
        self.head_size = head_size
        self.most_bytes: MostBytes = lambda _: 0
        self.take: Take = _take_nothing
        self.heard_at = time.monotonic()
        self.acknowledged: Callable[[bytes], None] = lambda _: None
        self.closed = asyncio.Event()
        self._is_aborted = False
        request.headers = httputil.HTTPHeaders(request.headers)
        proxied = cast(Any, httpclient._RequestProxy)(request, httpclient.HTTPRequest._DEFAULTS)
        super().__init__(proxied, on_message_callback=lambda _: None, subprotocols=subprotocols)

    async def headers_received(
        self, start_line: httputil.RequestStartLine | httputil.ResponseStartLine, headers: httputil.HTTPHeaders
    ) -> None:
        """Take the server's answer to the handshake, for which nobody may wait any more."""
        await super().headers_received(start_line, headers)
        if self._is_aborted:
            self.abort()

    def get_websocket_protocol(self) -> WebSocketProtocol:
        """Return what speaks the protocol once the handshake is done."""
        return _SkippingProtocol(self)

    def on_pong(self, data: bytes) -> None:
        """Note that the server has taken all that was sent before a ping."""
        self.acknowledged(data)

    def on_ws_connection_close(self, close_code: int | None = None, close_reason: str | None = None) -> None:
        """Note that the connection has ended."""
        self.closed.set()
        super().on_ws_connection_close(close_code, close_reason)

    def abort(self) -> None:
        """Hang up without the farewell, which a server that does not answer would not take."""
        self._is_aborted = True
        if self.protocol is not None:
            self.protocol._abort()
            self.protocol = None
        self.closed.set()


class _SkippingProtocol(WebSocketProtocol13):
    """Reads frames, as RFC 6455 has them."""

    def __init__(self, socket: SkippingSocket) -> None:
        super().__init__(socket, mask_outgoing=True, params=socket.params)
        self._socket = socket
        self._turn_began = time.monotonic()
        #: What was read of the message that is read now, if it is wanted, and how much more of it is.
        self._parts: bytearray | None = None
        self._room = 0
        self._is_within = False

    async def _receive_frame(self) -> None:
        first, second = await self._read_bytes(2)
        opcode, is_final, size = first & _OPCODE, bool(first & _FINAL), second & _LENGTH
        if first & _RESERVED or second & 0x80:  # no extension was agreed on, and servers do not mask
            self._abort()
            return
        if size > _LONGEST_CONTROL:
            size = int.from_bytes(await self._read_bytes(2 if size == _LONGEST_CONTROL + 1 else 8))
        if opcode & _CONTROL:
            await self._control(opcode, is_final, size)
        elif opcode not in (_CONTINUATION, _TEXT, _BINARY) or (opcode == _CONTINUATION) != self._is_within:
            self._abort()
        else:
            await self._data(size, begins=opcode != _CONTINUATION, ends=is_final)

    async def _control(self, opcode: int, is_final: bool, size: int) -> None:
        if not is_final or size > _LONGEST_CONTROL:
            self._abort()
            return
        handled = self._handle_message(opcode, await self._read_bytes(size))
        if handled is not None:
            await handled

    async def _data(self, size: int, *, begins: bool, ends: bool) -> None:
        self._is_within = not ends
        if begins:
            head = await self._read_bytes(min(size, self._socket.head_size))
            size -= len(head)
            self._room = self._socket.most_bytes(head) - len(head)
            self._parts = bytearray(head)
        if self._parts is None or size > self._room:
            self._parts = None
            await self._drop(size)
        else:
            self._parts += await self._read_bytes(size)
            self._room -= size
        if ends and self._parts is not None:
            whole, self._parts = bytes(self._parts), None
            await self._socket.take(whole)

    async def _drop(self, size: int) -> None:
        while size > 0:
            size -= len(await self._read_bytes(min(size, _STEP), partial=True))

    async def _read_bytes(self, n: int, *, partial: bool = False) -> bytes:
        """Read, and pause if that took long: what is there already is read without a pause."""
        if n == 0:
            return b""
        reading = self.stream.read_bytes(n, partial=partial)
        if cast("asyncio.Future[bytes]", reading).done():
            busy = time.monotonic() - self._turn_began
            if busy >= _TURN:
                await asyncio.sleep(busy)
                self._turn_began = time.monotonic()
        else:
            await asyncio.wait([cast("asyncio.Future[bytes]", reading)])
            self._turn_began = time.monotonic()
        data = await reading
        self._wire_bytes_in += len(data)
        self._socket.heard_at = time.monotonic()
        return data


async def connect(
    request: httpclient.HTTPRequest,
    *,
    subprotocols: list[str],
    head_size: int,
    prepare: Callable[[SkippingSocket], None],
) -> SkippingSocket:
    """Open a websocket.

    Parameters
    ----------
    request : HTTPRequest
        Where to, and with what credentials.
    subprotocols : list of str
        What to speak.
    head_size : int
        Bytes at a message's beginning by which it is told whether it is wanted.
    prepare : callable
        Sets the socket's callables before anything is read.

    Raises
    ------
    HTTPError
        From tornado's client: the server refused, or did not answer in time.
    OSError
        It cannot be reached.
    """
    socket = SkippingSocket(request, subprotocols=subprotocols, head_size=head_size)
    prepare(socket)
    try:
        await socket.connect_future
    except BaseException:
        socket.abort()
        socket.tcp_client.close()
        raise
    return socket


async def _take_nothing(_: bytes) -> None:
    return None
