"""MCP over a process's standard input and output, in linear time, and robust against other output of servers.

The SDK's own transport concatenates the data read so far with each new chunk, which is quadratic in a message's length
(37 s for 64 MB), and has no size limit.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Final

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, JSONRPCNotification, jsonrpc_message_adapter

from jupyter_agentbox.processes.process import Command, OwnedProcess
from jupyter_agentbox.protocol.sizes import count_values

from .limits import MOST_VALUES
from .lines import LineSplitter, LongLine, response_id
from .sent_requests import RequestFailure
from .wire import Wire

#: Maximum length of a line of standard error, in bytes.
_LONGEST_LOG_LINE: Final = 16 * 1024
#: Reading pauses at this many queued messages, and resumes at half.
_MOST_WAITING: Final = 1000
#: At this many queued messages, only the last progress of a call is kept.
_MANY_WAITING: Final = 20
#: How many queued messages are delivered before the event loop gets a turn.
_TURN: Final = 20
#: Maximum size of a list of tools, in bytes.
_LONGEST_LIST: Final = 16_000_000
#: The beginning of a response, including one whose id is at its end.
_ANSWER: Final = re.compile(rb'\s*\{\s*"(?:jsonrpc|result|error|id)"')
#: Seconds for the server to exit after its input closes, as the specification asks it to.
PATIENCE: Final = 2.0
#: Seconds between SIGTERM and SIGKILL.
GRACE: Final = 2.0


class StdioTransport:
    """A server process as an SDK transport: an async context manager of a pair of streams.

    Parameters
    ----------
    command : Command
        The command to run.
    wire : Wire
        The connection's open requests.
    message_cap : int
        Maximum size of a message, in bytes. A longer one fails only its own request.
    """

    def __init__(self, command: Command, *, wire: Wire, message_cap: int) -> None:
        self._wire = wire
        self._cap = message_cap
        self._lines = LineSplitter(message_cap)
        self._log_lines = LineSplitter(_LONGEST_LOG_LINE)
        self.process = OwnedProcess(
            command,
            grace=GRACE,
            on_output=self._on_output,
            on_error_output=self._on_error_output,
            on_closed=self._on_closed,
        )
        self._incoming = _Incoming(self.process.pause_reading)
        self._outgoing = _Outgoing(self.process, wire)

    async def __aenter__(self) -> tuple[_Incoming, _Outgoing]:
        """Start the process."""
        try:
            await self.process.start()
        except BaseException:
            await self._stop()
            raise
        return self._incoming, self._outgoing

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the process and its descendants."""
        await self._stop()

    async def _stop(self) -> None:
        # shielded: a cancelled task group of the SDK must not cut this short; every wait in it is bounded
        with anyio.CancelScope(shield=True):
            # no grace period for one that has already ended, or never sent anything
            patience = PATIENCE if self._wire.has_received and not self._wire.closed.is_set() else 0
            await self.process.stop(patience=patience)
        self._wire.closed.set()
        self._incoming.close()

    def _on_output(self, chunk: bytes) -> None:
        for line in self._lines.feed(chunk):
            self._on_line(line)

    def _on_line(self, line: bytes | LongLine, *, is_cut: bool = False) -> None:
        excess = self._excess(line)
        if not isinstance(line, LongLine) and excess is None:
            message = _parse(line)
            if message is not None:
                if (passed := self._wire.received(message)) is not None:
                    self._deliver(SessionMessage(passed))
                return
            if not line.strip():
                return
            request_id = response_id(line) if line.lstrip().startswith(b"{") else None
            if request_id is None and is_cut and _ANSWER.match(line):
                request_id = self._wire.only_call()
            reason = "its answer is not a valid MCP message"
            self._wire.log(line.decode("utf-8", "replace"))
        else:
            request_id = response_id(line)
            if request_id is None:
                request_id = self._wire.only_call()
            reason = f"its answer has {excess}"
            self._wire.log(f"a message was dropped: it has {excess}")
        kind = RequestFailure.CUT_OFF if is_cut else RequestFailure.UNUSABLE
        if request_id is not None and (failure := self._wire.failure(request_id, reason, kind)):
            self._deliver(failure)

    def _excess(self, line: bytes | LongLine) -> str | None:
        """Return which limit a message exceeds, if any."""
        size = line.length if isinstance(line, LongLine) else len(line)
        cap = min(self._cap, _LONGEST_LIST) if size > _LONGEST_LIST and self._lists_tools(line) else self._cap
        if size > cap:
            return f"{_megabytes(size)}, more than the {_megabytes(cap)} that are allowed"
        # Each value but one is preceded by a separator.
        if not isinstance(line, LongLine) and size > MOST_VALUES:
            values = count_values(line, most=MOST_VALUES)
            if values > MOST_VALUES:
                return f"{values:,} values, more than the {MOST_VALUES:,} that are allowed"
        return None

    def _lists_tools(self, line: bytes | LongLine) -> bool:
        request_id = response_id(line)
        return self._wire.lists_tools(self._wire.only_call() if request_id is None else request_id)

    def _on_error_output(self, chunk: bytes) -> None:
        for line in self._log_lines.feed(chunk):
            self._log(line)

    def _log(self, line: bytes | LongLine) -> None:
        text = line.head + b" ..." if isinstance(line, LongLine) else line
        self._wire.log(text.decode("utf-8", "replace"))

    def _on_closed(self) -> None:
        for line in self._lines.finish():
            self._on_line(line, is_cut=True)
        self._wire.closed.set()
        self._incoming.end()

    def _deliver(self, message: SessionMessage) -> None:
        self._incoming.put(message)


class _Incoming:
    """The stream of incoming messages, read by one task of the SDK."""

    def __init__(self, pause: Callable[[bool], None]) -> None:
        self._pause = pause
        self._is_paused = False
        self._waiting: deque[list[SessionMessage]] = deque()
        self._last: dict[object, list[SessionMessage]] = {}
        self._taken = 0
        self._news = asyncio.Event()
        self._has_ended = False
        self._is_closed = False

    def put(self, message: SessionMessage) -> None:
        """Add a message, unless the session is closed."""
        if self._is_closed or self._has_ended:
            return
        key = _replaceable(message)
        if key is not None and len(self._waiting) > _MANY_WAITING and (place := self._last.get(key)) is not None:
            place[0] = message
            return
        place = [message]
        self._waiting.append(place)
        if key is not None:
            self._last[key] = place
        self._news.set()
        self._check()

    def end(self) -> None:
        """Mark the end of the stream."""
        self._has_ended = True
        self._news.set()

    async def receive(self) -> SessionMessage | Exception:
        while not self._waiting:
            if self._is_closed:
                raise anyio.ClosedResourceError
            if self._has_ended:
                raise anyio.EndOfStream
            self._news.clear()
            await self._news.wait()
        self._taken += 1
        if self._taken % _TURN == 0:
            await asyncio.sleep(0)  # otherwise this never yields while there are messages
            if not self._waiting:
                return await self.receive()
        place = self._waiting.popleft()
        if self._last.get(key := _replaceable(place[0])) is place:
            del self._last[key]
        self._check()
        return place[0]

    def close(self) -> None:
        self._is_closed = True
        self._waiting.clear()
        self._last.clear()
        self._news.set()

    async def aclose(self) -> None:
        self.close()

    def _check(self) -> None:
        """Pause or resume reading, depending on the queue's length."""
        if self._is_paused != (len(self._waiting) > (_MOST_WAITING // 2 if self._is_paused else _MOST_WAITING)):
            self._is_paused = not self._is_paused
            self._pause(self._is_paused)

    def __aiter__(self) -> _Incoming:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> _Incoming:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Outgoing:
    """The stream of outgoing messages."""

    def __init__(self, process: OwnedProcess, wire: Wire) -> None:
        self._process = process
        self._wire = wire

    async def send(self, item: SessionMessage, /) -> None:
        data = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
        self._wire.sent(item.message)
        try:
            await self._process.write(data)
        except OSError:
            raise anyio.BrokenResourceError from None

    async def aclose(self) -> None:
        return  # the process's exit closes it; until then a last message may still be written

    async def __aenter__(self) -> _Outgoing:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return


def _replaceable(item: SessionMessage) -> object:
    """Return the key of a message that a later one with the same key supersedes; ``None`` if there is none."""
    message = item.message
    if not isinstance(message, JSONRPCNotification):
        return None
    if message.method == "notifications/progress":
        token = (message.params or {}).get("progressToken")
        return ("progress", token) if isinstance(token, str | int) else None
    return message.method if message.method.endswith("/list_changed") else None


def _parse(line: bytes) -> JSONRPCMessage | None:
    try:
        return jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        pass
    # Invalid UTF-8 and lone surrogates (a string cut in the middle of an emoji) cost the characters concerned, not the
    # message.
    try:
        value = json.loads(line.decode("utf-8", "replace"))
        text = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        return jsonrpc_message_adapter.validate_json(text, by_name=False)
    except (ValueError, RecursionError):
        return None


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:.1f} MB"
