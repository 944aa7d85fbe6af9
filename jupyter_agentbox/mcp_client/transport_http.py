"""MCP over streamable HTTP: the SDK's transport, with a client whose errors affect only the failed request.

In the SDK, an exception of the HTTP client (a refused connection, a response cut off midway) ends the task group shared
by all calls of the connection. Here it becomes the response to its own request.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AsyncExitStack, nullcontext
from contextvars import Context
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final

import httpx2
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST, JSONRPCError, JSONRPCMessage, JSONRPCResponse

from jupyter_agentbox.exceptions import SignInRequiredError, ToolServerError

from .answer_delivery import AnswerDelivery
from .bearer_auth import SignedIn, missing_scope
from .configuration import HttpServer
from .headers_helper import HelperHeaders
from .response_body import cap_body, describe, longest_silence
from .sent_requests import RequestFailure, SentRequest, answering, current, current_answer, sent_in
from .wire import Wire

#: Timeout of connecting and sending, in seconds; reading is limited by the call's own timeout.
_CONNECT_TIMEOUT: Final = 30.0
#: Timeout of ending the session, in seconds; its response has no effect.
_END_TIMEOUT: Final = 2.0
_SET_HEADERS: Final = "set `headers` in mcp.json"
_LONGEST_SCOPE: Final = 200
_LARGEST_ERROR_BODY: Final = 64 * 1024
#: Maximum size in bytes of a text, other than a JSON-RPC error, that is read as a server's message about a session.
_LONGEST_REFUSAL: Final = 300
_OLDER: Final = "; the older HTTP+SSE transport is not supported: use the server's streamable HTTP URL"
_NEVER_SENT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol)


class HttpTransport:
    """A streamable HTTP endpoint as an SDK transport: an async context manager of a pair of streams.

    Parameters
    ----------
    server : HttpServer
        The endpoint and headers. The SDK follows redirects only within its origin, so no header leaves it.
    wire : Wire
        The connection's open requests.
    message_cap : int
        Maximum size of a message, in bytes. A longer one fails only its own request.
    auth : SignedIn, HelperHeaders or None
        Sends the token of a person's sign-in, or a program's headers; ``None`` for neither.

    Attributes
    ----------
    wants_sign_in : str
        How a person can authorize this client; empty if the last response did not require it.
    lacks_rights : bool
        Whether that is because the present sign-in lacks scopes.
    """

    def __init__(
        self, server: HttpServer, *, wire: Wire, message_cap: int, auth: SignedIn | HelperHeaders | None = None
    ) -> None:
        self._server = server
        self._wire = wire
        self._cap = message_cap
        # a configured header authenticates the client; a token would replace it
        self._auth = None if server.has_authorization and isinstance(auth, SignedIn) else auth
        self.wants_sign_in = ""
        self.lacks_rights = False
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> tuple[_Incoming, _Outgoing]:
        """Create the client; nothing is sent yet."""
        if self._auth is not None:
            await self._auth.load()
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(
                ContainedClient(
                    cap=self._cap,
                    on_session_lost=self._wire.lose,
                    on_answer=self._look_at,
                    hint_for=self._hint_for,
                    on_answer_lost=self._wire.on_answer_lost,
                    auth=self._auth,
                    # compression would hide a response's size from the limit, and an invalid one breaks the connection
                    headers={"Accept-Encoding": "identity", **self._server.headers},
                    timeout=httpx2.Timeout(_CONNECT_TIMEOUT, read=None),
                    limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20),
                )
            )
            read, write = await stack.enter_async_context(
                streamable_http_client(self._server.url, http_client=client, max_sse_event_size=None)
            )
            self._stack = stack.pop_all()
        return _Incoming(read, self._wire), _Outgoing(write, self._wire)

    @property
    def is_signed_in(self) -> bool:
        """Whether requests carry the token of a sign-in."""
        return isinstance(self._auth, SignedIn) and self._auth.is_signed_in

    def refusal(self, message: str) -> ToolServerError:
        """Return the error for a refused request; of a type of its own if signing in would help."""
        if not self.wants_sign_in:
            return ToolServerError(message)
        error = SignInRequiredError(message)
        error.lacks_rights = self.lacks_rights
        error.advice = self.wants_sign_in
        return error

    def _look_at(self, response: httpx2.Response) -> str:
        """Return what a person can do about an authentication error; empty for other responses."""
        scope = missing_scope(response)
        self.lacks_rights = scope is not None and self.is_signed_in
        if response.status_code != 401 and scope is None:
            self.wants_sign_in = ""
            return ""
        if isinstance(self._auth, HelperHeaders):
            return "it does not accept the headers that its `headersHelper` printed"
        if self._auth is None:
            is_refused = self._server.has_authorization
            return "it does not accept the `Authorization` of `headers` in mcp.json" if is_refused else _SET_HEADERS
        if scope is not None:
            rights = f" ({scope[:_LONGEST_SCOPE]})" if scope else ""
            self.wants_sign_in = f"the sign-in lacks rights that it needs{rights}: {self._auth.how_to_get_rights}"
        elif self._auth.was_signed_in:
            self.wants_sign_in = f"the sign-in has ended: {self._auth.how_to_sign_in}"
        else:
            self.wants_sign_in = f"it wants you to sign in: {self._auth.how_to_sign_in}"
        return self.wants_sign_in

    def _hint_for(self, status: int) -> str:
        """Return what may help after a refusal that gives no reason: here, other rights at the provider."""
        if status != HTTPStatus.FORBIDDEN or not isinstance(self._auth, SignedIn) or not self._auth.is_signed_in:
            return ""
        return f"; if the sign-in lacks rights: {self._auth.how_to_get_rights}"

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """End the session, and close the client."""
        try:
            return await self._stack.__aexit__(kind, error, trace)
        finally:
            self._wire.closed.set()


class ContainedClient(httpx2.AsyncClient):
    """An HTTP client that returns a JSON-RPC error where others raise.

    Parameters
    ----------
    cap : int
        Maximum size of a response, in bytes; for event streams, of each event.
    on_session_lost : callable
        Called when the server no longer knows the session.
    on_answer : callable
        Called with each response; returns what a person can do about an authentication error, or else an empty string.
    hint_for : callable
        Called with the status of a refusal that gives no reason; returns what may help, to end the message.
    on_answer_lost : callable
        Called with the call, if known, whose server waits in vain for a person's answer, and with the reason.
    """

    def __init__(
        self,
        *,
        cap: int,
        on_session_lost: Callable[[], None],
        on_answer: Callable[[httpx2.Response], str],
        hint_for: Callable[[int], str],
        on_answer_lost: Callable[[SentRequest | None, str], None] = lambda _, __: None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._cap = cap
        self._on_answer = on_answer
        self._hint_for = hint_for
        self._on_session_lost = on_session_lost
        self._answers = AnswerDelivery(self._send_within, reason_of=_reason_of, on_lost=on_answer_lost)

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request. The one that ends a session has a short timeout, and a person's answer is sent meanwhile."""
        if (answer := current_answer()) is not None:
            return self._answers.begin(request, answer, **options)
        if request.method != "DELETE":
            return await self._send(request, **options)
        return await self._send_within(_END_TIMEOUT, request, **options)

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        """Stop sending answers, and close the connections."""
        await self._answers.aclose()
        await super().__aexit__(kind, error, trace)

    async def _send_within(self, seconds: float, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            async with asyncio.timeout(seconds):
                return await self._send(request, **options)
        except TimeoutError:
            return _error(request, 504, INTERNAL_ERROR, "the server did not answer in time", RequestFailure.INTERRUPTED)

    async def _send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        try:
            response = await super().send(request, **options)
        except httpx2.HTTPError as error:
            failure = RequestFailure.NOT_SENT if isinstance(error, _NEVER_SENT) else RequestFailure.INTERRUPTED
            return _error(request, 502, INTERNAL_ERROR, f"no answer over HTTP: {describe(error)}", failure)
        advice = self._on_answer(response)
        if response.status_code < 400:
            kind = response.headers.get("content-type", "").lower()
            is_events, is_json = kind.startswith("text/event-stream"), kind.startswith("application/json")
            if response.is_success and (sent := current()) is not None:
                # The SDK fetches the rest of a response that ends early with a GET of its own, whose failure says
                # nothing about the call.
                sent.is_taken = True
            if not is_events and not is_json and response.status_code == 200 and (sent := current()) is not None:
                sent.fail(RequestFailure.UNUSABLE, f"its answer is not MCP but {kind or 'of no type'}")
            encoding = response.headers.get("content-encoding", "identity")
            if encoding != "identity" and (sent := current()) is not None:
                sent.fail(RequestFailure.UNUSABLE, f"its answer is compressed ({encoding:.40}), although nobody asked")
            cap_body(
                response,
                self._cap,
                by_event=is_events,
                sent=current(),
                silence=longest_silence(response.headers) if is_events else None,
            )
            return response
        return await self._refusal(request, response, advice)

    async def _refusal(self, request: httpx2.Request, response: httpx2.Response, advice: str) -> httpx2.Response:
        status = f"HTTP {response.status_code} {response.reason_phrase}".rstrip()
        text = await _read_body(response)
        body = _error_in(text)
        if MCP_SESSION_ID in request.headers and _is_about_session(response.status_code, text, body):
            self._on_session_lost()
            return _error(
                request, 404, INVALID_REQUEST, "the server has ended this session", RequestFailure.SESSION_LOST
            )
        if advice:
            return _error(
                request,
                response.status_code,
                INTERNAL_ERROR,
                f"the server answered {status}; {advice}",
                RequestFailure.REFUSED,
            )
        if body is not None:
            return response
        failure = RequestFailure.NOT_SENT if response.status_code < 500 else RequestFailure.INTERRUPTED
        is_older = response.status_code in (404, 405) and request.url.path.rstrip("/").endswith("/sse")
        hint = _OLDER if is_older else self._hint_for(response.status_code)
        return _error(request, response.status_code, INTERNAL_ERROR, f"the server answered {status}{hint}", failure)


async def _read_body(response: httpx2.Response) -> bytes:
    """Return the body of an error response; empty if it breaks off or is too long."""
    cap_body(response, _LARGEST_ERROR_BODY)
    try:
        return await response.aread()
    except (httpx2.HTTPError, httpx2.StreamError):
        return b""
    finally:
        await response.aclose()


async def _reason_of(response: httpx2.Response) -> str:
    """Return the reason that a refusal gives; empty for none."""
    error = _error_in(await _read_body(response))
    return "" if error is None else str(error["error"].get("message", ""))


def _error_in(text: bytes) -> dict[str, Any] | None:
    """Return the JSON-RPC error in a response's body, if there is one."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) and isinstance(body.get("error"), dict) and "jsonrpc" in body else None


def _is_about_session(status: int, text: bytes, error: dict[str, Any] | None) -> bool:
    """Whether a response says that the request's session is unknown.

    By the specification, that is 404. The TypeScript SDK responds 400, with an error that is not about the request and
    so has no id; the Python SDK used to send a line of plain text.
    """
    if status != 400:
        return status == 404
    if error is None:
        return len(text) <= _LONGEST_REFUSAL and b"session" in text.lower()
    return error.get("id") is None and "session" in str(error["error"].get("message")).lower()


class _Incoming:
    """The SDK's stream of incoming messages, through the wire."""

    def __init__(self, inner: ReadStream[SessionMessage | Exception], wire: Wire) -> None:
        self._inner = inner
        self._wire = wire

    @property
    def last_context(self) -> Context | None:
        """The context of the last message: that of the request whose response contained it."""
        found: Context | None = getattr(self._inner, "last_context", None)
        return found

    async def receive(self) -> SessionMessage | Exception:
        while True:
            item = await self._inner.receive()
            if self._is_for_sdk(item):
                return item

    def _is_for_sdk(self, item: SessionMessage | Exception) -> bool:
        """Pass a message through the wire; return whether the SDK is to see it."""
        if not isinstance(item, SessionMessage):
            return True
        return self._wire.received(item.message, sent_in(self.last_context)) is not None

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> _Incoming:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        while True:
            item = await self._inner.__anext__()
            if self._is_for_sdk(item):
                return item

    async def __aenter__(self) -> _Incoming:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._wire.closed.set()
        return await self._inner.__aexit__(kind, error, trace)


class _Outgoing:
    """The SDK's stream of outgoing messages, through the wire."""

    def __init__(self, inner: WriteStream[SessionMessage], wire: Wire) -> None:
        self._inner = inner
        self._wire = wire

    async def send(self, item: SessionMessage, /) -> None:
        self._wire.sent(item.message)
        with answering() if _is_answer(item.message) else nullcontext():
            await self._inner.send(item)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> _Outgoing:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)


def _is_answer(message: JSONRPCMessage) -> bool:
    """Whether a message is an answer to a question of the server; one to a `ping` is empty."""
    return isinstance(message, JSONRPCError) or (isinstance(message, JSONRPCResponse) and bool(message.result))


def _error(request: httpx2.Request, status: int, code: int, message: str, failure: RequestFailure) -> httpx2.Response:
    if (sent := current()) is not None:
        sent.fail(failure, message)
    error = {"code": code, "message": message}
    return httpx2.Response(status, json={"jsonrpc": "2.0", "id": None, "error": error}, request=request)
