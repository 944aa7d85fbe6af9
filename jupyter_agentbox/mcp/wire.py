"""What both transports do with messages on their way: know the open requests, repair answers, fail one request."""

from __future__ import annotations

import asyncio
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

from .tool_lists import repair_tool_list

#: Key in an error's ``data`` under which this package notes what became of a request; servers do not know it.
FATE: Final = "jupyter_agentbox.fate"
#: The request never reached the tool.
NOT_SENT: Final = "not_sent"
#: The request was cut off; what it did is not known.
INTERRUPTED: Final = "interrupted"
#: The tool answered, but the answer cannot be used.
UNUSABLE: Final = "unusable"


class Wire:
    """One connection's open requests.

    Parameters
    ----------
    log : callable
        Gets a line for whatever was repaired or ignored.
    """

    def __init__(self, log: Callable[[str], None]) -> None:
        self.log = log
        self.closed = asyncio.Event()
        self.has_received = False
        self.tools_are_stale = True
        self._open: dict[RequestId, JSONRPCRequest] = {}
        self._version = "2025-11-25"

    def sent(self, message: JSONRPCMessage) -> None:
        """Note an outgoing message."""
        if isinstance(message, JSONRPCRequest):
            self._open[message.id] = message
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            cancelled = (message.params or {}).get("requestId")
            if isinstance(cancelled, (int, str)):
                self.settle(cancelled)

    def received(self, message: JSONRPCMessage) -> JSONRPCMessage:
        """Note an incoming message and return it, repaired if need be."""
        self.has_received = True
        if isinstance(message, (JSONRPCResponse, JSONRPCError)) and message.id is not None:
            request = self.settle(message.id)
            if request is not None and isinstance(message, JSONRPCResponse):
                self._repair(request, message)
        return message

    def settle(self, request_id: RequestId) -> JSONRPCRequest | None:
        """Forget an open request and return it. Servers may answer ``7`` with ``"7"``."""
        if request_id not in self._open and isinstance(request_id, str) and request_id.isdecimal():
            request_id = int(request_id)
        return self._open.pop(request_id, None)

    def only_call(self) -> RequestId | None:
        """Return the id of the one tool call that is open; ``None`` if there is none, or more than one."""
        calls = [request.id for request in self._open.values() if request.method == "tools/call"]
        return calls[0] if len(calls) == 1 else None

    def failure(self, request_id: RequestId, message: str, fate: str) -> SessionMessage | None:
        """Return an answer that fails this request alone; ``None`` if it is not open."""
        request = self.settle(request_id)
        if request is None:
            return None
        error = ErrorData(code=INTERNAL_ERROR, message=message, data={FATE: fate})
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request.id, error=error))

    def _repair(self, request: JSONRPCRequest, response: JSONRPCResponse) -> None:
        if request.method == "initialize":
            version = response.result.get("protocolVersion")
            self._version = version if isinstance(version, str) else self._version
        elif request.method == "tools/list":
            meta: dict[str, Any] = (request.params or {}).get("_meta") or {}
            version = meta.get(PROTOCOL_VERSION_META_KEY, self._version)
            response.result = repair_tool_list(response.result, version, self.log)
