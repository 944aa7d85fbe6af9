"""The line to a kernel behind a gateway (`--gateway-url`): its own websocket to the gateway's `channels` of the kernel.

Jupyter's gateway client says where that is, and gives the credentials, the TLS settings and a renewed token for each
attempt. Agentbox messages come in among everything that the kernel publishes and go out on the control channel, as over
ZeroMQ.

This line loses messages: what is under way when the connection breaks, and what the gateway drops of a kernel that
publishes more than it lets through (`iopub_data_rate_limit`). So answers are kept until the gateway has taken them, and
sent again over the next connection; the kernel repeats its calls, and is told what is unfinished, so that it can
withdraw what nobody waits for. Code for an agent's cell is never sent twice.

The kernel runs any code, behind a gateway that others may use: nothing that comes takes more of the server's memory or
time than over ZeroMQ. While answers pile up, what the kernel sends is dropped.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import Any, Final, cast
from uuid import uuid4

from jupyter_server.gateway.gateway_client import GatewayClient, gateway_request
from jupyter_server.gateway.managers import GatewayKernelManager
from jupyter_server.utils import url_path_join
from tornado import httpclient, iostream, web, websocket
from tornado.escape import url_escape

from jupyter_agentbox.background import in_background
from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.rates import Rate
from jupyter_agentbox.exceptions import AgentBoxError
from jupyter_agentbox.protocol.messages import (
    COMM_PREFIX,
    Failure,
    GetVariables,
    RunCode,
    TooLargeError,
    TurnEvent,
    to_json,
    too_large,
)
from jupyter_agentbox.protocol.sizes import VALUE_SIZE, weight_of

from .channel import Receive, Received, check_size, pack
from .skipping_socket import SkippingSocket, connect
from .websocket_messages import (
    HEAD_SIZE,
    V1,
    Message,
    UnreadableError,
    comm_content,
    execution_state,
    most_bytes,
    read,
    write,
)

log = logging.getLogger(__name__)

#: Bytes from which on a message is read, or written, in a thread.
_LARGE: Final = 100_000
#: Bytes that wait to be sent from which on nothing is taken from the kernel.
_FULL: Final = 8_000_000
#: Bytes that a message takes in memory beside its text, about.
_OVERHEAD: Final = 1_000
#: Bytes of the largest message that a gateway takes: the limit of Tornado's websockets, which none of them raises.
_LARGEST_SENT: Final = 10_485_760 - 10_000
#: Seconds between two questions whether the gateway is there, and without any sign of life after which it is not.
_ASK_AGAIN: Final = 10.0
_SILENT: Final = 30.0
#: Seconds without a word of a kernel that was sent something after which the gateway is asked whether it is there.
_KERNEL_SILENT: Final = 15.0
#: Seconds that a connection has to last to count as one: after less the next attempt waits longer.
_LASTING: Final = 10.0
#: How many warnings about one kernel the log gets, and how many of its restarts are followed, in how many seconds.
_MOST_WARNINGS: Final = 5
_MOST_RESTARTS: Final = 5
_AGAIN: Final = 60.0
#: What a kernel, or its gateway, says when another process takes the kernel's place, and when none does.
_STARTING: Final = frozenset({"starting", "restarting", "autorestarting"})
_DEAD: Final = "dead"
#: What a kernel side would do twice.
_ONCE: Final = frozenset({TurnEvent.type, RunCode.type, GetVariables.type})
#: What can go wrong with a connection.
_BROKEN: Final = (
    *(OSError, httpclient.HTTPError, iostream.StreamClosedError, websocket.WebSocketError),
    *(ValueError, LookupError),  # of an address or a header that cannot be
)
#: Bytes that were sent and are kept until the gateway has taken them, at most: then the oldest are not sent again.
_MOST_TAKEN: Final = 64_000_000
_COMM_ID: Final = re.compile(rb'"comm_id": ?"(%b[A-Za-z0-9_-]{1,180})"' % COMM_PREFIX.encode())


@dataclass(slots=True, kw_only=True)
class _Outgoing:
    """A message to the kernel, kept until the gateway has it."""

    channel: str
    kind: str
    content: bytes | tuple[str, JsonObject]
    size: int
    is_repeatable: bool = True
    id: str = field(default_factory=lambda: uuid4().hex)
    number: int = 0


class GatewayKernelChannel:
    """A `KernelChannel` over a gateway's websocket. It connects by itself, and again when the connection breaks.

    Parameters
    ----------
    manager : GatewayKernelManager
        The kernel's manager.
    receive : callable
        Called in the event loop for each message of an agentbox comm.
    on_restart : callable
        Called when another process has taken the kernel's place.
    on_end : callable
        Called once, if the line is given up: with whether the kernel is gone for good. Why is in the log.
    """

    isolation = Isolation.REMOTE
    has_own_settings = False
    #: Its gateway drops what the kernel publishes too fast, and a connection breaks with what is under way.
    is_lossy = True

    def __init__(
        self,
        *,
        manager: GatewayKernelManager,
        receive: Receive,
        on_restart: Callable[[], None],
        on_end: Callable[[bool], None],
    ) -> None:
        self._manager = manager
        self._kernel_id = str(manager.kernel_id)
        self._receive = receive
        self._on_restart = on_restart
        self._on_end = on_end
        self._session = uuid4().hex
        self._warnings = Rate(_MOST_WARNINGS, _AGAIN)
        self._restarts = Rate(_MOST_RESTARTS, _AGAIN)
        self._outbox: deque[_Outgoing] = deque()
        self._taken: deque[_Outgoing] = deque()  # sent, but perhaps not taken by the gateway
        self._taken_size = 0
        self._unsent = 0
        self._numbers = count(1)
        self._has_news = asyncio.Event()
        self._replies: dict[str, asyncio.Future[JsonObject]] = {}
        self._heard_at = self._sent_at = self._asked_at = time.monotonic()
        self._socket: SkippingSocket | None = None
        self._is_gone_for_good = False
        self._is_given_up = False
        self._task = in_background(
            self._stay_connected(),
            what=f"the connection to kernel {self._kernel_id} at the gateway",
            on_failure=lambda: self._on_end(False),
        )

    def send(self, comm_id: str, message: JsonObject) -> None:
        """Queue a message for the kernel side that owns this comm."""
        content: bytes | tuple[str, JsonObject] = (comm_id, message)
        size = weight_of(message, most=_LARGE)
        if size < _LARGE:
            # Serialized here, so that who sends what cannot be sent is told.
            content = _comm_content(comm_id, message)
            size = len(content) + _OVERHEAD
        is_repeatable = message.get("type") not in _ONCE
        self._put(
            _Outgoing(channel="control", kind="comm_msg", content=content, size=size, is_repeatable=is_repeatable)
        )

    async def execute_silently(self, code: str, expressions: Mapping[str, str] | None = None) -> JsonObject:
        """Have code run on the kernel's shell channel, without output and history.

        Parameters
        ----------
        code : str
            In the kernel's language.
        expressions : mapping, optional
            What to evaluate afterwards, by names for the answer.

        Returns
        -------
        JSON object
            What the kernel answered. It runs any code and may answer anything.
        """
        content = {
            "code": code,
            "silent": True,
            "store_history": False,
            "user_expressions": dict(expressions or {}),
            "allow_stdin": False,
            "stop_on_error": False,
        }
        packed = pack(content)
        outgoing = _Outgoing(channel="shell", kind="execute_request", content=packed, size=len(packed))
        reply: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._replies[outgoing.id] = reply
        self._put(outgoing)
        try:
            return await reply
        finally:
            del self._replies[outgoing.id]

    async def close(self) -> None:
        """Hang up."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _stay_connected(self) -> None:
        gateway = GatewayClient.instance()
        failures = 0
        while not self._is_over():
            began, why = time.monotonic(), "the connection was lost"
            try:
                await self._connect_once()
            except _BROKEN as error:
                why = _reason(error)
            if self._is_over():
                break
            if await self._is_gone():
                log.warning("kernel %s is no longer at the gateway: what it waited for is orphaned", self._kernel_id)
                self._end(is_gone=True)
                break
            failures = 1 if time.monotonic() - began >= _LASTING else failures + 1
            if failures > gateway.gateway_retry_max:
                log.error(
                    "kernel %s cannot be reached at the gateway (%s): its code cannot call tools, and what it waited"
                    " for is orphaned. Check that the gateway runs, that GatewayClient.ws_url is its address for"
                    " websockets, and that its token is right. The next attempt is in %g s.",
                    *(self._kernel_id, why, gateway.gateway_retry_interval_max),
                )
                self._end(is_gone=False)
                break
            if failures == 1:
                log.warning("the connection to kernel %s at the gateway: %s; trying again", self._kernel_id, why)
            delay = gateway.gateway_retry_interval * 2 ** (failures - 1)
            await asyncio.sleep(min(delay, gateway.gateway_retry_interval_max))
        self._on_end(self._is_gone_for_good)

    def _is_over(self) -> bool:
        return self._is_given_up

    async def _connect_once(self) -> None:
        """Connect, and return when the connection has ended."""
        socket = await connect(self._request(), subprotocols=[V1], head_size=HEAD_SIZE, prepare=self._prepare)
        try:
            self._socket = socket
            self._resend()
            speaking = asyncio.create_task(self._speak(socket))
            watching = asyncio.create_task(self._watch(socket))
            closing = asyncio.create_task(socket.closed.wait())
            tasks = (speaking, watching, closing)
            try:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            self._socket = None
            socket.abort()

    def _request(self) -> httpclient.HTTPRequest:
        gateway = GatewayClient.instance()
        url: str = url_path_join(
            gateway.ws_url or "", gateway.kernels_endpoint, url_escape(self._kernel_id), "channels"
        )
        # The same session each time: a gateway keeps for it what comes while it is away.
        arguments: dict[str, Any] = cast(Any, gateway).load_connection_args()
        return httpclient.HTTPRequest(f"{url}?session_id={self._session}", **arguments)

    def _prepare(self, socket: SkippingSocket) -> None:
        async def take(data: bytes) -> None:
            await self._take(data, is_v1=_is_v1(socket))

        socket.most_bytes = lambda head: self._most_bytes(head, is_v1=_is_v1(socket))
        socket.take = take
        socket.acknowledged = self._acknowledged

    async def _is_gone(self) -> bool:
        """Ask the gateway whether the kernel is there; no, if it does not say."""
        try:
            await gateway_request(self._manager.kernel_url, method="GET")
        except web.HTTPError as error:
            # Jupyter says 404 also where the gateway's name cannot be looked up.
            answered = isinstance(error.__cause__, httpclient.HTTPClientError)
            return answered and error.status_code == 404
        except _BROKEN:
            return False
        return False

    # What comes

    def _most_bytes(self, head: bytes, *, is_v1: bool) -> int:
        """Return how large a message that begins like this may be to be taken."""
        if self._unsent >= _FULL or self._is_given_up:
            return 0
        return most_bytes(head, is_v1=is_v1)

    async def _take(self, data: bytes, *, is_v1: bool) -> None:
        """Take a message. It never raises but if we cannot go on: then the line ends, as it does over ZeroMQ."""
        try:
            message = (
                read(data, is_v1=is_v1) if len(data) < _LARGE else await asyncio.to_thread(read, data, is_v1=is_v1)
            )
            if message is not None and not self._is_given_up:
                await self._understand(message, len(data))
        except (UnreadableError, TooLargeError) as error:
            self._warn("an unreadable message" if isinstance(error, UnreadableError) else str(error))
        except Exception:
            # A boundary: the root of what a message does.
            log.exception("the connection to kernel %s at the gateway failed", self._kernel_id)
            self._end(is_gone=False)

    async def _understand(self, message: Message, size: int) -> None:
        if message.kind == "status":
            self._follow(execution_state(message))
        elif message.kind == "execute_reply":
            reply = self._replies.get(message.parent_id)
            if reply is not None and not reply.done():
                reply.set_result(comm_content(message.content))
        else:
            self._heard_at = time.monotonic()
            received = await self._received(message.content, size)
            if received is not None:
                self._receive(received)

    async def _received(self, content: bytes, size: int) -> Received | None:
        try:
            if len(content) < _LARGE:
                return _read_comm(content, size)
            return await asyncio.to_thread(_read_comm, content, size)
        except TooLargeError as error:
            # Its kernel side is told, if it is known which message that was.
            comm_id = _COMM_ID.search(content[-_LARGE:]) or _COMM_ID.search(content[:_LARGE])
            if error.id is not None and comm_id is not None:
                self.send(comm_id[1].decode(), to_json(too_large(error)))
            raise

    def _follow(self, state: str | None) -> None:
        """Follow what is said of the kernel's process. The kernel can say it, too: then its own requests end."""
        if state == _DEAD:
            log.warning("kernel %s died at the gateway: what it waited for is orphaned", self._kernel_id)
            self._end(is_gone=True)
        elif state in _STARTING:
            if self._restarts.allows(time.monotonic()):
                self._on_restart()
            else:
                self._warn("one start after another")
                self._end(is_gone=False)

    def _end(self, *, is_gone: bool) -> None:
        if not self._is_given_up:
            self._is_given_up, self._is_gone_for_good = True, is_gone
            if self._socket is not None:
                self._socket.closed.set()

    def _warn(self, what: str) -> None:
        if self._warnings.allows(time.monotonic()):
            log.warning("ignored %s from kernel %s", what, self._kernel_id)

    # What goes

    def _put(self, outgoing: _Outgoing) -> None:
        self._sent_at = time.monotonic()
        self._unsent += outgoing.size
        self._outbox.append(outgoing)
        self._has_news.set()

    def _resend(self) -> None:
        """Put what the gateway may not have got before what waits."""
        again = [one for one in self._taken if one.is_repeatable]
        self._taken.clear()
        self._taken_size = 0
        self._unsent += sum(one.size for one in again)
        self._outbox.extendleft(reversed(again))
        self._has_news.set()

    def _acknowledged(self, data: bytes) -> None:
        number = int(data) if data.isdigit() else 0
        while self._taken and self._taken[0].number <= number:
            self._forget_taken()

    def _keep_taken(self, outgoing: _Outgoing) -> None:
        self._taken.append(outgoing)
        self._taken_size += outgoing.size
        while self._taken_size > _MOST_TAKEN:
            self._forget_taken()

    def _forget_taken(self) -> None:
        self._taken_size -= self._taken.popleft().size

    async def _speak(self, socket: SkippingSocket) -> None:
        while True:
            while not self._outbox:
                self._has_news.clear()
                await self._has_news.wait()
            outgoing = self._outbox[0]  # it stays there until it is written: the connection may end meanwhile
            content = outgoing.content
            if isinstance(content, tuple):
                content = await asyncio.to_thread(_large_content, *content)
            self._outbox.popleft()
            self._unsent -= outgoing.size
            outgoing.number, outgoing.content, outgoing.size = next(self._numbers), content, len(content) + _OVERHEAD
            self._keep_taken(outgoing)
            is_v1 = _is_v1(socket)
            data = write(
                outgoing.channel,
                outgoing.kind,
                content,
                id=outgoing.id,
                session=self._session,
                date=datetime.now(UTC).isoformat(),
                is_v1=is_v1,
            )
            await socket.write_message(data, binary=is_v1)
            socket.ping(str(outgoing.number).encode())

    async def _watch(self, socket: SkippingSocket) -> None:
        """Notice a connection that is dead though nothing closed it, and a kernel that is gone."""
        while True:
            await asyncio.sleep(_ASK_AGAIN)
            now = time.monotonic()
            if now - socket.heard_at >= _SILENT:
                raise TimeoutError(f"the gateway has not answered for {now - socket.heard_at:.0f} s")
            is_waiting = now - self._sent_at < _KERNEL_SILENT <= now - max(self._heard_at, self._asked_at)
            if is_waiting and await self._is_gone():
                return  # then it is asked for once more, and given up
            if is_waiting:
                self._asked_at = now
            socket.ping(b"")


def _read_comm(content: bytes, size: int) -> Received | None:
    values = check_size(size, content)
    value = comm_content(content)
    comm_id = value.get("comm_id")
    if not isinstance(comm_id, str):
        return None
    return Received(comm_id=comm_id, data=value.get("data"), weight=len(content) + VALUE_SIZE * values)


def _comm_content(comm_id: str, message: JsonObject) -> bytes:
    return pack({"comm_id": comm_id, "data": message})


def _large_content(comm_id: str, message: JsonObject) -> bytes:
    try:
        content = _comm_content(comm_id, message)
    except (TypeError, ValueError) as error:
        log.warning("an answer to a kernel is not JSON: %s", error)
        return _comm_content(comm_id, _failure(message, "the answer cannot be sent as JSON"))
    if len(content) > _LARGEST_SENT:
        text = (
            f"the answer has {len(content):,} bytes, and a gateway takes {_LARGEST_SENT:,} at most. What was called has"
            " run: ask it for less, or for a file"
        )
        return _comm_content(comm_id, _failure(message, text))
    return content


def _failure(message: JsonObject, text: str) -> JsonObject:
    request_id = message.get("request_id")
    known = request_id if isinstance(request_id, str) else None
    return to_json(Failure(id=str(message.get("id")), code=AgentBoxError.code, message=text, request_id=known))


def _is_v1(socket: SkippingSocket) -> bool:
    return socket.protocol is not None and socket.selected_subprotocol == V1


def _reason(error: BaseException) -> str:
    """Return what went wrong, in one line and without addresses."""
    if isinstance(error, httpclient.HTTPError):
        return f"it answered HTTP {error.code}"
    if isinstance(error, ValueError | LookupError):
        return f"{type(error).__name__}: its address or a header is not valid"  # which may hold the token
    return f"{type(error).__name__}: {error}"[:200]
