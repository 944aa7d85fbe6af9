"""The link to one kernel over ZeroMQ: agentbox messages in from IOPub, answers out on the control channel.

The link has its own `Session` with the kernel's key, because two clients that share a session object see each other's
signatures as duplicates. Its IOPub socket subscribes only to agentbox comms, so it never receives a cell's output,
whatever its size.

A kernel runs any code, and must not exhaust the server's memory or time with its messages. So a socket holds few
messages of bounded size, and ZeroMQ makes the kernel's end wait or drop further ones. A large message is parsed in a
thread. A kernel that sends continuously is read at most half of the time, and not at all while it does not accept its
answers.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, cast

import zmq
import zmq.asyncio
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.jsonutil import json_default
from jupyter_client.manager import KernelManager
from jupyter_client.session import Session

from jupyter_agentbox.background import in_background
from jupyter_agentbox.core.calls import JsonObject, JsonValue
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.rates import Rate
from jupyter_agentbox.exceptions import AgentBoxError
from jupyter_agentbox.protocol.messages import (
    COMM_PREFIX,
    MAX_MESSAGE,
    Failure,
    TooLargeError,
    head_id,
    to_json,
    too_large,
)
from jupyter_agentbox.protocol.sizes import MAX_VALUES, VALUE_SIZE, count_values, weight_of

from .isolation import has_own_settings, level_reached

log = logging.getLogger(__name__)

#: IOPub topics of comm messages are ``comm-<comm_id>``.
_TOPIC = f"comm-{COMM_PREFIX}".encode()
#: Maximum number of messages that a socket holds for us; below, the size of a message's largest part in bytes.
#: Together they bound a kernel's unread data in the server. ZeroMQ closes the connection at a larger part,
#: permanently: our kernel code sends none, and other code that does so cuts off its own kernel.
_RECEIVED: Final = 4
_LARGEST_PART: Final = MAX_MESSAGE + 1_000_000
#: Maximum number of messages that a socket holds for the kernel; the rest waits in the outbox, where it is counted.
_SENT: Final = 4
#: Size in bytes from which a message is parsed or serialized in a thread.
_LARGE: Final = 100_000
#: Size of the outbox in bytes from which a kernel that does not accept its answers is not read.
_FULL: Final = 8_000_000
#: Index of a message's content among its parts: after the signature and three headers.
_CONTENT: Final = 4
#: Those headers' indexes. They are parsed, too.
_HEADERS: Final = slice(1, _CONTENT)
#: Maximum length of a comm id that is answered, in bytes.
_LONGEST_TOPIC: Final = 200
#: How many replies on the control channel are dropped after each message.
_MOST_DRAINED: Final = 10
#: Maximum number of logged warnings about one kernel; below, the period in seconds.
_MOST_WARNINGS: Final = 5
_WARN_AGAIN: Final = 60.0
#: Seconds of continuous reading after which a kernel has to wait as long as that took.
_TURN: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A parsed message of a kernel.

    Parameters
    ----------
    comm_id : str
        The comm's id.
    data : JSON
        The message, unvalidated.
    weight : int
        Its approximate size in memory, in bytes.
    """

    comm_id: str
    data: JsonValue
    weight: int = 0


#: Called with each message.
Receive = Callable[[Received], None]


def make_context() -> zmq.asyncio.Context:
    """Return a context whose sockets hold little data, in either direction."""
    context = zmq.asyncio.Context()
    context.setsockopt(zmq.RCVHWM, _RECEIVED)
    context.setsockopt(zmq.SNDHWM, _SENT)
    context.setsockopt(zmq.MAXMSGSIZE, _LARGEST_PART)
    context.setsockopt(zmq.LINGER, 100)
    return context


class ZmqKernelChannel:
    """A `KernelChannel` over ZeroMQ.

    Parameters
    ----------
    manager : KernelManager
        The kernel's manager; only its connection information and provisioner are used.
    context : zmq.asyncio.Context
        From `make_context`; shared by all links.
    receive : callable
        Called in the event loop for each message of an agentbox comm.
    on_failure : callable
        Called if the link breaks; the log says why.
    """

    def __init__(
        self,
        *,
        manager: KernelManager,
        context: zmq.asyncio.Context,
        receive: Receive,
        on_failure: Callable[[], None] = lambda: None,
    ) -> None:
        self._manager = manager
        self._warnings = Rate(_MOST_WARNINGS, _WARN_AGAIN)
        self._session = Session(key=manager.session.key, signature_scheme=manager.session.signature_scheme, pack=pack)
        self._client = AsyncKernelClient(session=self._session, context=context)
        # Not as arguments: traitlets would warn about unknown ones, including the kernel's key in the warning.
        self._client.load_connection_info(manager.get_connection_info())
        self._receive = receive
        self._iopub = cast(zmq.asyncio.Socket, self._client.connect_iopub())
        self._iopub.setsockopt(zmq.UNSUBSCRIBE, b"")
        self._iopub.setsockopt(zmq.SUBSCRIBE, _TOPIC)
        self._control = cast(zmq.asyncio.Socket, self._client.connect_control())
        self._outbox: asyncio.Queue[list[bytes] | tuple[str, JsonObject]] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._unsent = 0
        self._has_room = asyncio.Event()
        self._has_room.set()
        what = f"the connection to kernel {manager.kernel_id}"
        self._tasks = [
            in_background(self._listen(), what=what, on_failure=on_failure),
            in_background(self._speak(), what=what, on_failure=on_failure),
        ]

    #: Messages arrive in both directions as long as the link exists.
    is_lossy = False

    @property
    def isolation(self) -> Isolation:
        """The level reached by whatever started the kernel."""
        return level_reached(self._manager)

    @property
    def has_own_settings(self) -> bool:
        """Whether its user chose settings of the kernel's sandbox, according to what started it."""
        return has_own_settings(self._manager)

    def send(self, comm_id: str, message: JsonObject) -> None:
        """Queue a message for the kernel's end of this comm."""
        if weight_of(message, most=_LARGE) >= _LARGE:
            self._put((comm_id, message), _FULL)
        else:
            # Serialized here and not in `_speak`, so that the caller gets the error of an invalid message.
            frames = self._serialize(comm_id, message)
            self._put(frames, sum(map(len, frames)))

    async def execute_silently(self, code: str) -> None:
        """Queue code on the kernel's shell channel, without output or history, and without waiting for the reply."""
        content = {
            "code": code,
            "silent": True,
            "store_history": False,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": False,
        }
        shell = cast(zmq.asyncio.Socket, self._client.connect_shell())
        try:
            await shell.send_multipart(self._session.serialize(self._session.msg("execute_request", content)))
            await shell.recv_multipart()
        finally:
            shell.close()

    async def close(self) -> None:
        """Close the link."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._iopub.close()
        self._control.close()

    async def _listen(self) -> None:
        busy, paused_at = 0.0, time.monotonic()
        while True:
            await self._has_room.wait()
            frames = await self._iopub.recv_multipart()
            began = time.monotonic()
            if began - paused_at >= busy:
                busy = 0.0  # it was idle for as long as it was busy
            size = sum(map(len, frames))
            received = self._read(frames) if size < _LARGE else await asyncio.to_thread(self._read, frames)
            if received is not None:
                self._receive(received)
            del frames, received  # nothing is held while waiting for the next one
            paused_at = time.monotonic()
            busy += paused_at - began
            # Queued messages are received without a pause: a kernel that floods must not block the server.
            await asyncio.sleep(busy if busy >= _TURN else 0)
            if busy >= _TURN:
                busy, paused_at = 0.0, time.monotonic()

    def _read(self, frames: Sequence[bytes]) -> Received | None:
        """Parse a kernel's message. The kernel runs the code under review, which can write anything to its sockets."""
        try:
            _, parts = self._session.feed_identities(list(frames))
            content = cast(bytes, parts[_CONTENT])
            values = check_size(sum(map(len, frames)), content, cast(Sequence[bytes], parts[_HEADERS]))
            message = self._session.deserialize(parts)
            kind, content_read = message["msg_type"], message["content"]
        except TooLargeError as error:
            self._warn(str(error))
            self._refuse(frames, error)
            return None
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            self._warn("an unreadable message")
            return None
        if kind not in ("comm_open", "comm_msg") or not isinstance(content_read, dict):
            return None
        comm_id, data = str(content_read.get("comm_id")), content_read.get("data")
        return Received(comm_id=comm_id, data=data, weight=len(content) + VALUE_SIZE * values)

    def _refuse(self, frames: Sequence[bytes], error: TooLargeError) -> None:
        """Tell the kernel that its message was refused, if it is known which one that was."""
        comm_id = bytes(frames[0]).removeprefix(b"comm-").decode("utf-8", "replace")
        if error.id is not None and len(comm_id) <= _LONGEST_TOPIC:
            self._loop.call_soon_threadsafe(self.send, comm_id, to_json(too_large(error)))

    def _warn(self, what: str) -> None:
        if self._warnings.allows(time.monotonic()):
            log.warning("ignored %s from kernel %s", what, self._manager.kernel_id)

    async def _speak(self) -> None:
        while True:
            item = await self._outbox.get()
            if isinstance(item, tuple):
                frames, size = await asyncio.to_thread(self._serialize_large, *item), _FULL
            else:
                frames, size = item, sum(map(len, item))
            await self._control.send_multipart(frames)
            self._take_off(size)
            await self._drain_control()

    def _put(self, item: list[bytes] | tuple[str, JsonObject], size: int) -> None:
        self._unsent += size
        if self._unsent >= _FULL:
            self._has_room.clear()
        self._outbox.put_nowait(item)

    def _take_off(self, size: int) -> None:
        self._unsent -= size
        if self._unsent < _FULL:
            self._has_room.set()

    def _serialize(self, comm_id: str, message: JsonObject) -> list[bytes]:
        content = {"comm_id": comm_id, "data": message}
        return self._session.serialize(self._session.msg("comm_msg", content))

    def _serialize_large(self, comm_id: str, message: JsonObject) -> list[bytes]:
        try:
            return self._serialize(comm_id, message)
        except (TypeError, ValueError) as error:
            log.warning("an answer to a kernel is not JSON: %s", error)
            text = "the answer cannot be sent as JSON"
            failure = Failure(id=str(message.get("id")), code=AgentBoxError.code, message=text)
            return self._serialize(comm_id, to_json(failure))

    async def _drain_control(self) -> None:
        """Drop the kernel's replies on the control channel; the link's answers come on IOPub."""
        for _ in range(_MOST_DRAINED):
            if not await self._control.poll(0):
                return
            await self._control.recv_multipart()


def check_size(size: int, content: bytes, headers: Sequence[bytes] = ()) -> int:
    """Return the number of values in a message.

    Parameters
    ----------
    size : int
        The message's size in bytes.
    content : bytes
        Its content, as JSON.
    headers : sequence of bytes
        Its other parts that are parsed, as JSON.

    Raises
    ------
    TooLargeError
        If the message has too many bytes or values.
    """
    if size > MAX_MESSAGE:
        raise TooLargeError(f"a message of {size:,} bytes; at most {MAX_MESSAGE:,} are allowed", id=head_id(content))
    values = sum(map(count_values, (content, *headers)))
    if values > MAX_VALUES:
        raise TooLargeError(f"a message of {values:,} values; at most {MAX_VALUES:,} are allowed", id=head_id(content))
    return values


def pack(value: object) -> bytes:
    """Return JSON in ASCII: people's and tools' text may contain lone surrogates, which UTF-8 cannot encode."""
    return json.dumps(value, default=json_default, separators=(",", ":")).encode("ascii")
