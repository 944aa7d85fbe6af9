"""MCP over streamable HTTP for users' Jupyter servers: one endpoint for each central server.

The caller is the owner of the token in the header. While a request waits, its first event has an id. A caller whose
connection breaks comes back with that id, to this process or its successor, and gets the answer. If the caller does not
come back, the call is withdrawn. What a central server asks, logs and reports as progress goes to the caller on the
stream of the call; the answer to a question comes in a message of its own, in the same session.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import secrets
from collections.abc import Mapping
from math import ceil
from typing import Any, Final, cast

from mcp_types import URL_ELICITATION_REQUIRED
from tornado import web
from tornado.iostream import StreamClosedError

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.hub_reviews import HubReview
from jupyter_agentbox.core.questions import NOBODY
from jupyter_agentbox.core.reported_origins import origin_in
from jupyter_agentbox.exceptions import (
    AgentBoxError,
    SignInRequiredError,
    StorageError,
    ToolCallRejectedError,
    TooManyRequestsError,
    UnknownApprovalError,
)
from jupyter_agentbox.services.calls.manager import FinishedCall
from jupyter_agentbox.services.json_answers import answer_text
from jupyter_agentbox.services.questions.handlers import LONGEST_ANSWER

from .client_log_levels import LEVELS
from .handlers import HubServiceHandler, client_message
from .mcp_json import (
    failure,
    initialized,
    modes_of_session,
    new_session,
    progress,
    result_to_json,
    tool_to_json,
    with_review,
)
from .open_calls import EventId, OpenCall, OpenCalls, as_id, read_event_id
from .questions import answer_of, modes_of
from .rate_limits import LONGEST
from .sign_in_addresses import SIGN_IN_PAGE

log = logging.getLogger(__name__)

SESSION_HEADER: Final = "Mcp-Session-Id"
LAST_EVENT_HEADER: Final = "Last-Event-ID"
#: Seconds between heartbeats while an answer is awaited: proxies close connections that are silent for a minute.
HEARTBEAT: Final = 15.0
#: Tells callers this interval: a proxy whose service was killed may keep their connection open but silent.
HEARTBEAT_HEADER: Final = "Agentbox-Heartbeat"

_INVALID_REQUEST: Final = -32600
_METHOD_NOT_FOUND: Final = -32601
_INVALID_PARAMS: Final = -32602
_INTERNAL_ERROR: Final = -32603


class McpHandler(HubServiceHandler):
    """The endpoint of a central server."""

    _call: OpenCall | None = None
    #: The number of the last message to the caller that was sent, on this connection or the one before it.
    _last_sent: int = 0
    #: How many of the tool's reports of progress there were when the last one was sent on this connection.
    _reports_sent: int = 0

    def initialize(self, public_url: str) -> None:
        """Store the service's public URL."""
        self._public_url = public_url

    @property
    def _open_calls(self) -> OpenCalls:
        return self.parts.open_calls

    def check_xsrf_cookie(self) -> None:
        """Skip the check: cookies are not used here."""

    async def prepare(self) -> None:
        """Ask the Hub who owns the token, which may have been revoked.

        Callers that send too fast wait: with one token before the Hub is asked, with all of a user's tokens afterwards.
        """
        token = self.hub_auth.get_token(self, in_cookie=False)
        if token and not await self._is_its_turn(hashlib.sha256(token.encode()).hexdigest()):
            return
        caller = await self.caller_by_header(use_cache=False)
        if caller is None:
            raise web.HTTPError(403, "this needs a token of a user who may use this service")
        if not caller.is_user:
            raise web.HTTPError(403, "only users can call tools, but this token belongs to a service")
        if await self._is_its_turn(f"user {caller.name}"):
            self.caller = caller

    async def _is_its_turn(self, who: str) -> bool:
        """Wait for the caller's turn; if the message is refused, answer it and return ``False``."""
        limiter = self.parts.call_limiter if self.request.method == "POST" else self.parts.return_limiter
        try:
            await limiter.turn(who)
        except TooManyRequestsError as error:
            self.set_status(429)
            self.set_header("Retry-After", str(ceil(LONGEST)))  # raising an error would drop the header
            self._finish_error(None, _INTERNAL_ERROR, str(error))
            return False
        return True

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Answer with an error in MCP's format."""
        error = kwargs.get("exc_info", (None, None, None))[1]
        told = error.log_message if isinstance(error, web.HTTPError) and status_code < 500 else None
        if isinstance(error, AgentBoxError):
            self.set_status(503)
            told = client_message(error)
        if not self._headers_written:
            self._finish_error(None, _INTERNAL_ERROR, told or self._reason)

    async def get(self, _server: str) -> None:
        """Send the rest of an answer whose connection broke. There is no other stream."""
        last = self.request.headers.get(LAST_EVENT_HEADER)
        if last is None:
            # MCP clients try to open a stream each time they connect.
            self.set_status(405)
            self.set_header("Allow", "POST, DELETE")
            self._finish_error(None, _METHOD_NOT_FOUND, "the only streams here are answers to calls")
            return
        try:
            event = read_event_id(last)
            call = self._open_calls.find(event.request_id, self.caller)
            if call is None:
                await self.parts.reviews.get_own(event.request_id, self.caller)
                # A proxy may have sent the same request twice, and the other one may have been faster.
                call = self._open_calls.find(event.request_id, self.caller) or self._resumed(event)
            self._last_sent = event.number
        except UnknownApprovalError:
            raise web.HTTPError(410, "you have no such call") from None  # 404 would mean the session
        await self._answer_when_done(call)

    def _resumed(self, event: EventId) -> OpenCall:
        def on_running(request: ApprovalRequest) -> None:
            self._open_calls.runs(call, request)

        call = OpenCall(
            user=self.caller.name,
            session=self._session,
            message_id=event.message_id,
            task=self.parts.calls.resume(
                event.request_id, caller=self.caller, on_waiting=lambda _: None, on_running=on_running
            ),
            request_id=event.request_id,
            progress_token=event.progress_token,
            modes=modes_of_session(self._session),
        )
        return call

    def delete(self, _server: str) -> None:
        """End a session: cancel its remaining calls."""
        self._open_calls.cancel_session(self.caller.name, self._session)
        self.set_status(204)

    async def post(self, server: str) -> None:
        """Answer a message."""
        if server not in self.parts.calls.servers:
            raise web.HTTPError(404, "there is no such central server")
        try:
            message = json.loads(self.request.body)
        except (ValueError, RecursionError):
            raise web.HTTPError(400, "the body must be JSON") from None
        if isinstance(message, dict) and "method" not in message and ("result" in message or "error" in message):
            self._hear_answer(message)
            self.set_status(202)
            return
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            self._finish_error(None, _INVALID_REQUEST, "the body must be one request or notification")
            return
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        if "id" not in message:
            self._hear(message["method"], params)
            self.set_status(202)
            return
        if as_id(message["id"]) is None:
            self._finish_error(None, _INVALID_REQUEST, "the `id` of a request must be a string or an integer")
            return
        await self._answer(server, message["method"], message["id"], params)

    def on_connection_close(self) -> None:
        """Give a disconnected client some time to come back."""
        if self._call is not None:
            self._open_calls.drop(self._call, self)

    @property
    def _session(self) -> str:
        return str(self.request.headers.get(SESSION_HEADER, ""))

    def _hear(self, method: str, params: Mapping[str, Any]) -> None:
        if method == "notifications/cancelled":
            self._open_calls.cancel(self.caller.name, self._session, params.get("requestId"))

    def _hear_answer(self, message: Mapping[str, Any]) -> None:
        """Pass on an answer to a question. One that is too long counts as none; one that is too late has no effect."""
        is_short = len(self.request.body) <= LONGEST_ANSWER
        answer = answer_of(message, self.caller.reviewer) if is_short else NOBODY
        self._open_calls.answer(self.caller.name, self._session, message.get("id"), answer)

    async def _answer(self, server: str, method: str, id: object, params: Mapping[str, Any]) -> None:
        match method:
            case "initialize":
                self.set_header(SESSION_HEADER, new_session(modes_of(params)))
                self._finish_result(id, initialized(server, params))
            case "ping":
                self._finish_result(id, {})
            case "logging/setLevel":
                if self._open_calls.set_level(self.caller.name, self._session, params.get("level")):
                    self._finish_result(id, {})
                else:
                    self._finish_error(id, _INVALID_PARAMS, f"the `level` must be one of: {', '.join(LEVELS)}")
            case "tools/list":
                try:
                    tools = await self.parts.calls.list_tools(server, self.caller)
                except SignInRequiredError as error:
                    self._finish_json({"jsonrpc": "2.0", "id": id, "error": self._sign_in_first(error)})
                except AgentBoxError as error:
                    self._finish_error(id, _INTERNAL_ERROR, client_message(error))
                else:
                    self._finish_result(id, {"tools": [tool_to_json(tool) for tool in tools]})
            case "tools/call":
                await self._call_tool(server, id, params)
            case _:
                self._finish_error(id, _METHOD_NOT_FOUND, f"there is no method `{method:.80}`")

    async def _call_tool(self, server: str, id: object, params: Mapping[str, Any]) -> None:
        name, arguments, meta = params.get("name"), params.get("arguments"), params.get("_meta")
        if not isinstance(name, str) or not isinstance(arguments, dict | None):
            self._finish_error(id, _INVALID_PARAMS, "a call needs a `name`, and its `arguments` must be an object")
            return

        def on_waiting(request: ApprovalRequest) -> None:
            self._open_calls.waits(call, request)

        def on_running(request: ApprovalRequest) -> None:
            self._open_calls.runs(call, request)

        try:
            task = self.parts.calls.start(
                server,
                name,
                arguments or {},
                caller=self.caller,
                on_waiting=on_waiting,
                on_running=on_running,
                reported=origin_in(meta),
            )
        except AgentBoxError as error:
            self._finish_result(id, failure(str(error)))
            return
        call = OpenCall(
            user=self.caller.name,
            session=self._session,
            message_id=id,
            task=task,
            progress_token=as_id(meta.get("progressToken")) if isinstance(meta, dict) else None,
            modes=modes_of_session(self._session),
        )
        await self._answer_when_done(call)

    async def _answer_when_done(self, call: OpenCall) -> None:
        """Wait for a call and send its answer; if the connection breaks first, keep the call for the caller."""
        self._call = call
        self._open_calls.add(call, self)
        self.set_header("Content-Type", "text/event-stream")
        self.set_header(HEARTBEAT_HEADER, f"{HEARTBEAT:g}")
        try:
            await self._keep_alive(call)
            if not call.is_held_by(self):
                return
            if self.parts.calls.is_left(call.request_id):
                return  # end the stream without an answer: the caller comes back to the next process
            await self._send_messages(call, has_ended=True)
            await self._send_progress(call)
            await self._send({"jsonrpc": "2.0", "id": call.message_id, **await self._answer_of(call)})
        except StreamClosedError:
            self._open_calls.drop(call, self)
        else:
            self._open_calls.remove(call)

    async def _answer_of(self, call: OpenCall) -> Mapping[str, Any]:
        """Return the result of a call that has ended, with its review, or an error that tells the user to sign in."""
        try:
            result, by_rule = await _outcome(call.task)
        except SignInRequiredError as error:
            return {"error": self._sign_in_first(error)}
        if result.get("isError"):  # a client may show nobody what is not in the result
            notices = [{"type": "text", "text": text} for text in call.messages.notices]
            result = {**result, "content": [*result["content"], *notices]}
        return {"result": with_review(result, await self._review_of(call) if call.request_id else by_rule)}

    async def _keep_alive(self, call: OpenCall) -> None:
        """Keep the stream alive, and report the review and messages, until the call ends or has another connection."""
        said: HubReview | None = None
        has_begun = False
        if call.request_id:
            call.news.set()  # start over: what the previous connection sent may have been lost
        while not call.task.done() and call.is_held_by(self):
            news = asyncio.ensure_future(call.news.wait())
            try:
                await asyncio.wait([call.task, news], timeout=HEARTBEAT, return_when=asyncio.FIRST_COMPLETED)
            finally:
                news.cancel()
            if call.task.done() or not call.is_held_by(self):
                return
            if call.request_id and not has_begun:
                has_begun = True
                self._begin_events(call)
            call.news.clear()
            await self._send_messages(call)
            review = await self._review_of(call)  # at each heartbeat, too: an escalation changes who may decide
            if review != said and review is not None:
                said = review
                if call.progress_token is not None:
                    await self._send(progress(call.progress_token, review))
                    self._reports_sent = 0  # a client shows what it was told last, which is to be what the tool reports
            else:
                self.write(": waiting\n\n")
            await self._send_progress(call)
            await self.flush()

    async def _review_of(self, call: OpenCall) -> HubReview | None:
        """Return a call's review; ``None`` if nobody was asked or the request cannot be read."""
        try:
            return await self.parts.reviews.review_of(call.request_id, self._public_url) if call.request_id else None
        except AgentBoxError:
            return None

    def _begin_events(self, call: OpenCall) -> None:
        """Send the id with which the caller can come back if the connection breaks."""
        self.write(f"id: {self._event_id(call)}\nretry: {self._open_calls.retry}\nevent: message\ndata:\n\n")

    def _event_id(self, call: OpenCall) -> EventId:
        return EventId(
            request_id=call.request_id,
            message_id=cast("str | int", call.message_id),
            progress_token=call.progress_token,
            number=self._last_sent,
        )

    async def _send_messages(self, call: OpenCall, *, has_ended: bool = False) -> None:
        """Send the messages for the caller that were not sent yet, to the session that made the call."""
        if self._session != call.session:
            return
        for one in call.messages.after(self._last_sent):
            if not call.is_held_by(self):
                return
            self._last_sent = one.number
            if not (has_ended and one.is_question):
                await self._send(one.message, id=f"id: {self._event_id(call)}\n" if call.request_id else "")

    async def _send_progress(self, call: OpenCall) -> None:
        """Send what the tool reported last, unless it was sent, to the session that made the call."""
        if self._session == call.session and call.is_held_by(self) and self._reports_sent != call.messages.reports:
            self._reports_sent = call.messages.reports
            await self._send(call.messages.latest_progress)

    async def _send(self, message: Mapping[str, Any], *, id: str = "") -> None:
        self.write(f"{id}event: message\ndata: {answer_text(message)}\n\n")
        await self.flush()

    def _sign_in_first(self, error: SignInRequiredError) -> Mapping[str, Any]:
        """Return MCP's error that names a page for the person: here, the one on which users sign in, if they can."""
        if why := self.parts.sign_in_managers.why_nobody_can:
            no_page = f"you have to sign in, but nobody can, because {why}: tell your administrator"
            return {"code": _INTERNAL_ERROR, "message": no_page}
        message, page = error.advice or str(error), f"{self._public_url}{SIGN_IN_PAGE}"
        asked = {"mode": "url", "elicitationId": secrets.token_urlsafe(16), "url": page, "message": message}
        return {"code": URL_ELICITATION_REQUIRED, "message": message, "data": {"elicitations": [asked]}}

    def _finish_result(self, id: object, result: Mapping[str, Any]) -> None:
        self._finish_json({"jsonrpc": "2.0", "id": id, "result": result})

    def _finish_error(self, id: object, code: int, message: str) -> None:
        self._finish_json({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})

    def _finish_json(self, message: Mapping[str, Any]) -> None:
        self.set_header("Content-Type", "application/json")
        self.finish(answer_text(message))


async def _outcome(call: asyncio.Task[FinishedCall]) -> tuple[dict[str, Any], HubReview | None]:
    """Return a call's result and, if nobody was asked because a rule rejected it, the review that says so."""
    try:
        return result_to_json((await call).result), None
    except asyncio.CancelledError:
        return failure("the call was withdrawn before it finished"), None
    except ToolCallRejectedError as error:
        return failure(str(error)), HubReview(status="rejected", reason=error.reason)
    except SignInRequiredError:
        raise  # the caller gets an error that names the page
    except AgentBoxError as error:
        if isinstance(error, StorageError):
            log.warning("a call failed: %s", error)
        return failure(client_message(error)), None
    except Exception:
        # A boundary: whatever an adapter raises, the caller learns that the call failed, and the log has the details.
        log.exception("a call failed")
        return failure("the service failed; the service's log says why"), None
