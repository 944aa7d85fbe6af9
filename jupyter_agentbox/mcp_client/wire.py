"""Message handling shared by both transports: tracking open requests, repairing responses, failing single requests."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable
from typing import Any, Final

from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    PROTOCOL_VERSION_META_KEY,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from jupyter_agentbox.core.hub_reviews import review_in
from jupyter_agentbox.core.tools import LogMessage

from .logs import Redactor, read_log_message
from .sent_requests import RequestFailure, SentRequest, current
from .tool_lists import repair_tool_list

#: Requests of servers, besides elicitation, none of which is supported: what they ask for, in messages.
UNSUPPORTED: Final = {
    "sampling/createMessage": "an answer of a language model (sampling)",
    "roots/list": "directories to work in (roots)",
}
#: How many content blocks are parsed at once. If a result has more, the session parses them in steps, not the SDK.
BLOCKS_AT_ONCE: Final = 500


class Wire:
    """The open requests of a connection.

    Parameters
    ----------
    log : callable
        Called with a line for whatever was repaired or ignored.
    redact : Redactor
        Removes the configuration's secrets from log messages.
    on_log_message : callable
        Called with a message for each of the server's log notifications and unsupported requests, and with the call to
        which it belongs, if known.
    on_answer_lost : callable
        Called with the call, if known, whose server waits in vain for a person's answer, and with the reason.
    """

    def __init__(
        self,
        log: Callable[[str], None],
        redact: Redactor,
        on_log_message: Callable[[LogMessage, SentRequest | None], None] = lambda _, __: None,
        on_answer_lost: Callable[[SentRequest | None, str], None] = lambda _, __: None,
    ) -> None:
        self.log = log
        self._redact = redact
        self.on_answer_lost = on_answer_lost
        self._on_log_message = on_log_message
        self.asked_in_vain = ""
        self.closed = asyncio.Event()
        self._settled = asyncio.Event()
        self.is_lost = False
        self.has_received = False
        self.tools_are_stale = True
        self._open: dict[RequestId, tuple[JSONRPCRequest, SentRequest | None]] = {}
        self._version = "2025-11-25"

    def sent(self, message: JSONRPCMessage) -> None:
        """Record an outgoing message."""
        if isinstance(message, JSONRPCRequest):
            self._open[message.id] = message, current()
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            cancelled = (message.params or {}).get("requestId")
            if isinstance(cancelled, (int, str)):
                self.settle(cancelled)

    def received(self, message: JSONRPCMessage, during: SentRequest | None = None) -> JSONRPCMessage | None:
        """Record an incoming message and return it, repaired if necessary; ``None`` if the SDK is not to see it.

        It does not see log messages, and progress that is no finite number, at which it would end the connection.

        Parameters
        ----------
        message : JSONRPCMessage
            The message.
        during : SentRequest, optional
            The call in whose response it came, if known.
        """
        self.has_received = True
        if isinstance(message, JSONRPCNotification) and message.method == "notifications/message":
            self._pass_on(read_log_message(message.params or {}, self._redact), during)
            return None
        if isinstance(message, JSONRPCNotification) and message.method == "notifications/progress":
            params = message.params or {}
            if not all(_is_usable(params.get(key)) for key in ("progress", "total")):
                self.log("a progress notification was dropped: its progress or total is not a finite number")
                return None
            self._note_review(params)
        if isinstance(message, JSONRPCRequest) and (what := UNSUPPORTED.get(message.method)) is not None:
            self.asked_in_vain = what
            warning = f"the server asked for {what}, which is not supported"
            self._pass_on(LogMessage(level="warning", logger="", text=warning), during)
        if isinstance(message, (JSONRPCResponse, JSONRPCError)) and message.id is not None:
            request, sent = self.settle(message.id)
            if sent is not None:
                sent.is_answered, sent.is_refused = True, isinstance(message, JSONRPCError)
            if request is not None and isinstance(message, JSONRPCResponse):
                self._repair(request, message)
                if sent is not None and request.method == "tools/call":
                    _set_apart(message.result, sent)
        return message

    def lists_tools(self, request_id: RequestId | None) -> bool:
        """Whether this is an open request for the server's tools."""
        request, _ = self._open.get(request_id, (None, None)) if request_id is not None else (None, None)
        return request is not None and request.method == "tools/list"

    def settle(self, request_id: RequestId) -> tuple[JSONRPCRequest | None, SentRequest | None]:
        """Close a request; return it, as message and as sent. Servers may respond to ``7`` with ``"7"``."""
        if request_id not in self._open and isinstance(request_id, str) and request_id.isdecimal():
            request_id = int(request_id)
        self._settled.set()
        return self._open.pop(request_id, (None, None))

    def lose(self) -> None:
        """Record that the server no longer knows the session."""
        self.is_lost = True
        self.closed.set()

    async def emptied(self, seconds: float) -> None:
        """Wait until no call is open, for at most this many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while any(request.method == "tools/call" for request, _ in self._open.values()):
                    self._settled.clear()
                    await self._settled.wait()

    def only_call(self) -> RequestId | None:
        """Return the id of the only open tool call; ``None`` if there is none, or more than one."""
        calls = [request.id for request, _ in self._open.values() if request.method == "tools/call"]
        return calls[0] if len(calls) == 1 else None

    def failure(self, request_id: RequestId, message: str, failure: RequestFailure) -> SessionMessage | None:
        """Return a response that fails this request alone; ``None`` if it is not open."""
        request, sent = self.settle(request_id)
        if request is None:
            return None
        if sent is not None:
            sent.fail(failure, message)
        error = ErrorData(code=INTERNAL_ERROR, message=message)
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request.id, error=error))

    def _note_review(self, params: dict[str, Any]) -> None:
        """Record the part of a progress notification that the SDK does not forward. Its token is the request's id."""
        token, meta = params.get("progressToken"), params.get("_meta")
        _, sent = self._open.get(token, (None, None)) if isinstance(token, (int, str)) else (None, None)
        review = review_in(meta) if isinstance(meta, dict) else None
        if sent is not None and review is not None:  # what the tool itself reports later has none
            sent.review = review

    def _pass_on(self, message: LogMessage, during: SentRequest | None) -> None:
        self.log(str(message).replace("\n", " "))
        self._on_log_message(message, during)

    def _repair(self, request: JSONRPCRequest, response: JSONRPCResponse) -> None:
        if request.method == "initialize":
            version = response.result.get("protocolVersion")
            self._version = version if isinstance(version, str) else self._version
        elif request.method == "tools/list":
            meta: dict[str, Any] = (request.params or {}).get("_meta") or {}
            version = meta.get(PROTOCOL_VERSION_META_KEY, self._version)
            response.result = repair_tool_list(response.result, version, self.log)


def _is_usable(progress: object) -> bool:
    """Whether the SDK can convert a number to a finite float; it ignores whatever is not a number."""
    if not isinstance(progress, (int, float)):
        return True
    try:
        return math.isfinite(progress)
    except OverflowError:
        return False


def _set_apart(result: dict[str, Any], sent: SentRequest) -> None:
    """Move many content blocks from a result to the request, where the session finds them."""
    content = result.get("content")
    if isinstance(content, list) and len(content) > BLOCKS_AT_ONCE:
        sent.long_content, result["content"] = content, []
