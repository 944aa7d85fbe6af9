"""MCP over streamable HTTP, one endpoint for each central server, for the Jupyter servers of users.

A caller is who the token in the header belongs to. There is nothing to resume: who hangs up withdraws their call.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from tornado import web
from tornado.iostream import StreamClosedError

import jupyter_agentbox
from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.tools import ToolDescription, ToolResult
from jupyter_agentbox.exceptions import AgentBoxError
from jupyter_agentbox.services.calls.manager import FinishedCall

from .handlers import HubServiceHandler
from .reviews import approvers_of

log = logging.getLogger(__name__)

SESSION_HEADER: Final = "Mcp-Session-Id"
#: Seconds after which a waiting answer shows that it is still to come: proxies end what is silent for a minute.
PULSE: Final = 15.0

_INVALID_REQUEST: Final = -32600
_METHOD_NOT_FOUND: Final = -32601
_INVALID_PARAMS: Final = -32602
_INTERNAL_ERROR: Final = -32603

#: User, session, and the JSON of a request's id.
CallKey: TypeAlias = tuple[str, str, str]
#: The calls that a later message can cancel.
OpenCalls: TypeAlias = dict[CallKey, "asyncio.Task[FinishedCall]"]


class McpHandler(HubServiceHandler):
    """The endpoint of a central server."""

    _call: asyncio.Task[FinishedCall] | None = None

    def initialize(self, open_calls: OpenCalls, public_url: str) -> None:
        """Take what all handlers of these endpoints share."""
        self._open_calls = open_calls
        self._public_url = public_url

    def check_xsrf_cookie(self) -> None:
        """Check nothing: no cookie counts here."""

    async def prepare(self) -> None:
        """Find out whose token it is, from the Hub, which may have revoked it."""
        caller = await self.caller_by_header(use_cache=False)
        if caller is None:
            raise web.HTTPError(403, "a token of a user who may use this service is needed")
        if not caller.is_user:
            raise web.HTTPError(403, "tools are called for users, and this token is a service's")
        self.caller = caller

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer as MCP does."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        told = error.log_message if isinstance(error, web.HTTPError) and status_code < 500 else None
        if isinstance(error, AgentBoxError):
            self.set_status(503)
            told = str(error)
        if not self._headers_written:
            self._finish_error(None, _INTERNAL_ERROR, told or self._reason)

    def get(self, _server: str) -> None:
        """Refuse a stream of what nobody asked for: there is nothing of that kind."""
        raise web.HTTPError(405)

    def delete(self, _server: str) -> None:
        """End a session: cancel what it has not cancelled."""
        session = (self.caller.name, self._session)
        for key, call in list(self._open_calls.items()):
            if key[:2] == session:
                call.cancel()
        self.set_status(204)

    async def post(self, server: str) -> None:
        """Answer a message."""
        if server not in self.parts.calls.servers:
            raise web.HTTPError(404, "there is no such central server")
        try:
            message = json.loads(self.request.body)
        except (ValueError, RecursionError):
            raise web.HTTPError(400, "the body must be JSON") from None
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            self._finish_error(None, _INVALID_REQUEST, "the body must be one request or notification")
            return
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        if "id" not in message:
            self._hear(message["method"], params)
            self.set_status(202)
            return
        if isinstance(message["id"], bool) or not isinstance(message["id"], str | int):
            self._finish_error(None, _INVALID_REQUEST, "the `id` of a request must be a string or an integer")
            return
        await self._answer(server, message["method"], message["id"], params)

    def on_connection_close(self) -> None:
        """Withdraw the call of a client that is gone."""
        if self._call is not None:
            self._call.cancel()

    @property
    def _session(self) -> str:
        return str(self.request.headers.get(SESSION_HEADER, ""))

    def _hear(self, method: str, params: Mapping[str, Any]) -> None:
        if method == "notifications/cancelled":
            call = self._open_calls.get(self._key(params.get("requestId")))
            if call is not None:
                call.cancel()

    def _key(self, id: object) -> CallKey:
        return self.caller.name, self._session, json.dumps(id)

    async def _answer(self, server: str, method: str, id: object, params: Mapping[str, Any]) -> None:
        match method:
            case "initialize":
                self.set_header(SESSION_HEADER, secrets.token_urlsafe(16))
                self._finish_result(id, _initialized(server, params))
            case "ping":
                self._finish_result(id, {})
            case "tools/list":
                try:
                    tools = await self.parts.calls.list_tools(server, self.caller)
                except AgentBoxError as error:
                    self._finish_error(id, _INTERNAL_ERROR, str(error))
                else:
                    self._finish_result(id, {"tools": [tool_to_json(tool) for tool in tools]})
            case "tools/call":
                await self._call_tool(server, id, params)
            case _:
                self._finish_error(id, _METHOD_NOT_FOUND, f"no method `{method:.80}`")

    async def _call_tool(self, server: str, id: object, params: Mapping[str, Any]) -> None:
        name, arguments, meta = params.get("name"), params.get("arguments"), params.get("_meta")
        if not isinstance(name, str) or not isinstance(arguments, dict | None):
            self._finish_error(id, _INVALID_PARAMS, "a call has a `name`, and `arguments` that are an object")
            return
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        waiting: asyncio.Queue[ApprovalRequest] = asyncio.Queue()
        try:
            call = self.parts.calls.start(
                server, name, arguments or {}, caller=self.caller, on_waiting=waiting.put_nowait
            )
        except AgentBoxError as error:
            self._finish_result(id, failure(str(error)))
            return
        self._call = self._open_calls[self._key(id)] = call
        try:
            self.set_header("Content-Type", "text/event-stream")
            await self._pulse(call, waiting, token)
            await self._send({"jsonrpc": "2.0", "id": id, "result": await _outcome(call)})
        except StreamClosedError:
            call.cancel()
        finally:
            self._open_calls.pop(self._key(id), None)

    async def _pulse(
        self, call: asyncio.Task[FinishedCall], waiting: asyncio.Queue[ApprovalRequest], token: object
    ) -> None:
        """Show that the answer is to come, until it can be given."""
        told = asyncio.ensure_future(waiting.get())
        try:
            while not call.done():
                await asyncio.wait([call, told], timeout=PULSE, return_when=asyncio.FIRST_COMPLETED)
                if told.done():
                    if token is not None:
                        await self._send(_progress(token, waits_for(told.result(), self._public_url)))
                    told = asyncio.ensure_future(waiting.get())
                elif not call.done():
                    self.write(": waiting\n\n")
                    await self.flush()
        finally:
            told.cancel()

    async def _send(self, message: Mapping[str, Any]) -> None:
        self.write(f"event: message\ndata: {json.dumps(message)}\n\n")
        await self.flush()

    def _finish_result(self, id: object, result: Mapping[str, Any]) -> None:
        self._finish_json({"jsonrpc": "2.0", "id": id, "result": result})

    def _finish_error(self, id: object, code: int, message: str) -> None:
        self._finish_json({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})

    def _finish_json(self, message: Mapping[str, Any]) -> None:
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(message))


def waits_for(request: ApprovalRequest, url: str) -> str:
    """Say for whom a request waits, and where they find it."""
    approvers = approvers_of(request)
    who = "you" if approvers is None else f"{approvers.count} of the group {approvers.group}"
    return f"waits for {who} at {url}requests/{request.id}"


def tool_to_json(tool: ToolDescription) -> dict[str, Any]:
    """Return a tool as MCP lists it."""
    return {
        "name": tool.name,
        "inputSchema": tool.input_schema,
        **({"title": tool.title} if tool.title else {}),
        **({"description": tool.description} if tool.description else {}),
        **({"outputSchema": tool.output_schema} if tool.output_schema is not None else {}),
        **({"annotations": tool.annotations} if tool.annotations else {}),
    }


def result_to_json(result: ToolResult) -> dict[str, Any]:
    """Return a result as MCP sends it."""
    return {
        "content": list(result.content),
        "isError": result.is_error,
        **({} if result.structured is None else {"structuredContent": result.structured}),
        **({"_meta": result.meta} if result.meta else {}),
    }


def failure(text: str) -> dict[str, Any]:
    """Return the result of a call that was refused or failed, and why."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


async def _outcome(call: asyncio.Task[FinishedCall]) -> dict[str, Any]:
    try:
        return result_to_json((await call).result)
    except asyncio.CancelledError:
        return {
            "content": [{"type": "text", "text": "the call was withdrawn; it did not run to its end"}],
            "isError": True,
        }
    except AgentBoxError as error:
        return failure(str(error))
    except Exception:
        # A boundary: whatever an adapter raises, who waits is told that it failed, and the log has the rest.
        log.exception("a call of a central tool failed")
        return failure("the service failed; its log says why")


def _initialized(server: str, params: Mapping[str, Any]) -> dict[str, Any]:
    asked = params.get("protocolVersion")
    return {
        "protocolVersion": asked if asked in HANDSHAKE_PROTOCOL_VERSIONS else HANDSHAKE_PROTOCOL_VERSIONS[-1],
        "capabilities": {"tools": {}},
        "serverInfo": {"name": server, "version": jupyter_agentbox.__version__},
    }


def _progress(token: object, message: str) -> dict[str, Any]:
    params = {"progressToken": token, "progress": 0, "message": message}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
