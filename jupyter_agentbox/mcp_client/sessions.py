"""An open connection to an MCP server, with its list of tools and its calls."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import mcp
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    REQUEST_TIMEOUT,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    ElicitRequest,
    InputRequests,
    InputRequiredResult,
    InputResponses,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from jupyter_agentbox.core.calls import JsonObject, ToolCall
from jupyter_agentbox.core.hub_reviews import HubReview, review_in
from jupyter_agentbox.core.ports import CallListener
from jupyter_agentbox.core.reported_origins import ORIGIN_KEY, ReportedOrigin
from jupyter_agentbox.core.tools import Progress, ToolDescription, ToolResult
from jupyter_agentbox.exceptions import (
    SignInRequiredError,
    ToolCallInterruptedError,
    ToolServerError,
    UnknownToolError,
)

from .elicitation import question_of, result_of
from .logs import LONGEST_LINE, LONGEST_LOG_MESSAGE, LogRing, Redactor
from .running_calls import RunningCall, RunningCalls
from .sent_requests import RequestFailure, SentRequest, current, following
from .server_errors import bounded, hint_for, sign_in_url, text_of
from .tool_lists import MOST_TOOLS, describe, is_wrapper
from .transport_http import HttpTransport
from .transport_stdio import StdioTransport
from .wire import BLOCKS_AT_ONCE, UNSUPPORTED, Wire

#: A list with more pages than this is considered endless.
MOST_PAGES: Final = 100
#: The SDK's messages for an event stream that ended without a response. If a server uses them for its own errors, they
#: are handled in the more careful way: it is unknown what its tool did.
_ENDED: Final = ("SSE stream ended ", "SSE stream failed: ")
#: How often a call is resent with answers for its server; below, the delay in seconds if none are needed.
MOST_ROUNDS: Final = 20
_NEXT_ROUND: Final = 0.25
#: Timeout for the SDK, which cannot exclude waits for a person; ours can.
_FOR_EVER: Final = float("inf")
_RESULT: Final[TypeAdapter[CallToolResult | InputRequiredResult]] = TypeAdapter(CallToolResult | InputRequiredResult)
_BLOCKS: Final[TypeAdapter[list[ContentBlock]]] = TypeAdapter(list[ContentBlock])
#: Seconds to wait for further responses from a server that no longer knows the session.
_LAST_ANSWERS: Final = 2.0


class SessionLostError(ToolServerError):
    """The server no longer knows the session, and so did nothing."""


class Session:
    """An open connection. Calls can be concurrent, from any task.

    Parameters
    ----------
    client : mcp.Client
        The entered client; the task that entered it also exits it.
    transport : StdioTransport or HttpTransport
        The client's transport.
    wire : Wire
        The connection's open requests.
    calls : RunningCalls
        The connection's running calls.
    name : str
        The server's name, for messages.
    log : LogRing
        The server's log.
    redact : Redactor
        Removes the configuration's secrets from messages.
    is_central : bool
        Whether it belongs to the Hub service, which knows who approved a call; others' claims about that are ignored.
    """

    def __init__(
        self,
        client: mcp.Client,
        transport: StdioTransport | HttpTransport,
        *,
        wire: Wire,
        calls: RunningCalls,
        name: str,
        log: LogRing,
        redact: Redactor,
        is_central: bool = False,
    ) -> None:
        self._client = client
        self._transport = transport
        self._wire = wire
        self._calls = calls
        self._name = name
        self._log = log
        self._redact = redact
        self._is_central = is_central
        self._tools: dict[str, ToolDescription] = {}
        self._wrapped: frozenset[str] = frozenset()
        self._listing = asyncio.Lock()

    @property
    def protocol_version(self) -> str:
        """The negotiated version."""
        return self._client.protocol_version

    async def let_go(self) -> None:
        """Wait briefly for more responses of a server that no longer knows the session, so each call gets its own."""
        if self._wire.is_lost:
            await self._wire.emptied(_LAST_ANSWERS)

    @property
    def is_signed_in(self) -> bool:
        """Whether its requests carry the token of a sign-in."""
        return isinstance(self._transport, HttpTransport) and self._transport.is_signed_in

    @property
    def _refusal(self) -> Callable[[str], ToolServerError]:
        return self._transport.refusal if isinstance(self._transport, HttpTransport) else ToolServerError

    @property
    def closed(self) -> asyncio.Event:
        """Set when the connection has ended."""
        return self._wire.closed

    async def tools(self) -> dict[str, ToolDescription]:
        """Return the server's tools by name, listing them if they are unknown or have changed.

        Raises
        ------
        ToolServerError
        """
        async with self._listing:
            if self._wire.tools_are_stale:
                self._wire.tools_are_stale = False  # first, so that a change during the request is not lost
                try:
                    self._tools = await self._list_tools()
                except BaseException:
                    self._wire.tools_are_stale = True
                    raise
                self._wrapped = frozenset(n for n, tool in self._tools.items() if is_wrapper(tool.output_schema))
        return self._tools

    def is_lost_with(self, error: ToolServerError) -> bool:
        """Whether a call failed because the server no longer knows this session."""
        return isinstance(error, SessionLostError)

    async def has_same(self, other: Session, tool: str) -> bool:
        """Whether the server's description of a tool is the same as in another session.

        Raises
        ------
        ToolServerError
        """
        return (await self.tools()).get(tool) == other._tools.get(tool)

    async def _list_tools(self) -> dict[str, ToolDescription]:
        found: dict[str, ToolDescription] = {}
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(MOST_PAGES):
            try:
                page = await self._client.list_tools(cursor=cursor, cache_mode="bypass")
            except (MCPError, ValidationError) as error:
                message = f"the list of tools of `{self._name}` could not be read: {self._explain(error)}"
                wanted = self._sign_in_at_hub(error, f"`{self._name}` cannot be used yet")
                raise wanted or self._refusal(message) from None
            for tool in page.tools:
                if tool.name in found:
                    self._log.add(f"tool `{tool.name}` is listed twice; the first one counts")
                else:
                    found[tool.name] = describe(tool)
            cursor = page.next_cursor
            if cursor is None:
                return found
            if cursor in seen or len(found) >= MOST_TOOLS:
                break
            seen.add(cursor)
        self._log.add(f"the list of tools does not end: stopped after {len(found)} tools")
        return found

    async def call_tool(self, call: ToolCall, *, seconds: float, listener: CallListener | None) -> ToolResult:
        """Run the call, once. Cancelling the task cancels the call on the server.

        Parameters
        ----------
        seconds : float
            Timeout of the tool, in seconds, not counting waits for a person.
        listener : CallListener or None
            Receives progress and log messages, and asks questions.

        Raises
        ------
        UnknownToolError, ToolServerError, SessionLostError, ToolCallInterruptedError
        """
        # a known tool does not wait for a changed list to be read again
        if call.tool not in self._tools and call.tool not in await self.tools():
            raise UnknownToolError(f"the server `{self._name}` has no tool `{call.tool}`")
        params = CallToolRequestParams.model_validate(
            {"name": call.tool, "arguments": dict(call.arguments), "_meta": self._meta(call, listener)}
        )
        self._wire.asked_in_vain = ""
        running = RunningCall(listener, seconds)
        with self._calls.running(running), following() as sent:
            running.sent = sent
            try:
                async with running.limit:
                    result = await self._answered(call, params, listener)
                    content = await _parsed(sent.long_content) if sent.long_content else _dumped(result.content)
                    return self._result(call.tool, result, content)
            except TimeoutError:
                if running.lost_answer:
                    reason = bounded(running.lost_answer, self._redact)
                    lost = f"the answer to its question did not reach the server: {reason}"
                    raise await self._interrupted(call.qualified_name, lost) from None
                timed_out = MCPError(code=REQUEST_TIMEOUT, message="the time of the call is over")
                raise await self._error(call, timed_out, sent, seconds) from None
            except MCPError as error:
                raise await self._error(call, error, sent, seconds) from None
            except (ValidationError, _InvalidContentError) as error:
                problem = _first_problem(error) if isinstance(error, ValidationError) else error
                message = f"`{call.qualified_name}` ran, but its result is not valid MCP: {problem}"
                raise ToolServerError(message) from None

    async def _answered(
        self, call: ToolCall, params: CallToolRequestParams, listener: CallListener | None
    ) -> CallToolResult:
        """Send the call, and resend it with answers if the server first asks a person."""
        for _ in range(MOST_ROUNDS):
            # Not `Client.call_tool`, which fails a call whose result does not match the output schema. The tool has
            # already run, and its result as it is is worth more than an error.
            result = await self._client.session.send_request(
                CallToolRequest(params=params),
                _RESULT,
                request_read_timeout_seconds=_FOR_EVER,
                progress_callback=self._progress(listener),
            )
            if isinstance(result, CallToolResult):
                return result
            if (sent := current()) is not None:
                sent.is_answered = False
                sent.is_taken = True  # from now on the tool may have run
            responses = await self._responses(call, result.input_requests or {})
            update = {"input_responses": responses or None, "request_state": result.request_state}
            params = params.model_copy(update=update)
        raise ToolServerError(f"`{call.qualified_name}` asked {MOST_ROUNDS} times for more input, and was cancelled")

    async def _responses(self, call: ToolCall, requests: InputRequests) -> InputResponses:
        """Return a person's answers to the questions for which a call was sent back."""
        if not requests:
            await asyncio.sleep(_NEXT_ROUND)
        responses: InputResponses = {}
        for key, request in requests.items():
            if not isinstance(request, ElicitRequest):
                raise ToolServerError(
                    f"`{call.qualified_name}` asks for {UNSUPPORTED.get(request.method, request.method)},"
                    " which is not supported: pass everything it needs as arguments"
                )
            try:
                question = question_of(request.params)
            except ValueError as error:
                raise ToolServerError(
                    f"`{call.qualified_name}` asks a question that cannot be shown: {error}"
                ) from None
            answer = await self._calls.ask(question, current())
            if answer is None:
                raise ToolServerError(f"`{call.qualified_name}` asks a question, and there is nobody to ask")
            responses[key] = result_of(answer, question.mode)
        return responses

    def _result(self, tool: str, result: CallToolResult, content: Sequence[JsonObject]) -> ToolResult:
        structured = result.structured_content
        return ToolResult(
            content=(*content, *self._hint(result, content)),
            structured=structured,
            wrapped=tool in self._wrapped and isinstance(structured, dict) and set(structured) == {"result"},
            is_error=bool(result.is_error),
            meta=cast(JsonObject, dict(result.meta or {})),
            review=self._clean(review_in(result.meta or {})),
        )

    def _hint(self, result: CallToolResult, content: Sequence[JsonObject]) -> Sequence[JsonObject]:
        """Return a block with what a person can do about a tool's error, if that is known; the Hub service adds it."""
        texts = [str(block.get("text", "")) for block in content] if result.is_error and not self._is_central else []
        hint = hint_for("\n".join(texts))
        return [{"type": "text", "text": hint}] if hint else []

    def _progress(self, listener: CallListener | None) -> ProgressFnT | None:
        if listener is None:
            return None
        sent = current()

        async def report(progress: float, total: float | None, message: str | None) -> None:
            text = self._redact.head(message or "", LONGEST_LOG_MESSAGE)[:LONGEST_LINE]
            review = self._clean(sent.review) if sent is not None else None
            listener.progressed(Progress(progress=progress, total=total, message=text, review=review))

        return report

    def _meta(self, call: ToolCall, listener: CallListener | None) -> dict[str, Any] | None:
        """Return metadata identifying the call in our record, only for the Hub service, whose record has it, too."""
        if not self._is_central or listener is None:
            return None
        origin = call.origin
        reported = ReportedOrigin(
            request_id=listener.request_id,
            kernel_id=origin.kernel_id,
            notebook_path=origin.notebook_path,
            cell_id=origin.cell_id,
            isolation=origin.isolation.value,
            has_own_settings=origin.has_own_settings,
        )
        return {ORIGIN_KEY: reported.to_json()}

    def _clean(self, review: HubReview | None) -> HubReview | None:
        """Return the server's information on whom it asks, without secrets, if it is accepted from this server."""
        return None if review is None or not self._is_central else review.redacted(self._redact)

    async def _error(self, call: ToolCall, error: MCPError, sent: SentRequest, seconds: float) -> ToolServerError:
        name = call.qualified_name
        match sent.failure:
            case RequestFailure.NOT_SENT | RequestFailure.REFUSED | RequestFailure.SESSION_LOST:
                return self._not_run(sent)(f"`{name}` did not run: {sent.reason}")
            case RequestFailure.UNUSABLE:
                return ToolServerError(f"`{name}` ran, but {sent.reason}")
            case RequestFailure.CUT_OFF:
                reason = await self._reason("the connection ended")
                message = f"`{name}` ran, but was cut off in the middle of its answer: {reason}"
                return ToolCallInterruptedError(f"{message}{self._last_words()}")
            case RequestFailure.INTERRUPTED:
                return await self._interrupted(name, sent.reason)
        if not sent.is_answered:
            if error.code == REQUEST_TIMEOUT:
                return ToolCallInterruptedError(
                    f"`{name}` did not finish within {seconds:g} s and was cancelled; it may have had "
                    'an effect. To change the limit, set the server\'s "timeout" in mcp.json'
                )
            return await self._interrupted(name, error.error.message)
        if error.code == CONNECTION_CLOSED and (not sent.is_refused or error.error.message.startswith(_ENDED)):
            return await self._interrupted(name, error.error.message)
        if error.code == HEADER_MISMATCH:
            self._wire.tools_are_stale = True
            return ToolServerError(f"`{name}` did not run: its description on the server has changed; call it again")
        asked = f" (it asked for {what}, which is not supported)" if (what := self._wire.asked_in_vain) else ""
        if (wanted := self._sign_in_at_hub(error, f"`{name}` did not run")) is not None:
            return wanted
        explained = self._explain(error)
        hint = "" if self._is_central else hint_for(explained)
        return ToolServerError(f"the server refused `{name}`: {explained}{asked}" + (f"\n{hint}" if hint else ""))

    def _sign_in_at_hub(self, error: Exception, failed: str) -> SignInRequiredError | None:
        """Return the error for an answer of the Hub service that says where the user has to sign in, if it is one."""
        if not self._is_central or not isinstance(error, MCPError) or not (url := sign_in_url(error)):
            return None
        wanted = SignInRequiredError(f"{failed}; {bounded(error.error.message, self._redact)}")
        wanted.url = url
        return wanted

    def _not_run(self, sent: SentRequest) -> Callable[[str], ToolServerError]:
        if sent.failure is RequestFailure.SESSION_LOST:
            return SessionLostError
        return self._refusal if sent.failure is RequestFailure.REFUSED else ToolServerError

    async def _interrupted(self, name: str, reason: str) -> ToolCallInterruptedError:
        reason = self._redact(await self._reason(reason))
        return ToolCallInterruptedError(
            f"`{name}` was cut off: {reason}. It may have had an effect; it is not repeated{self._last_words()}"
        )

    def _last_words(self) -> str:
        """Return the end of the server's log; nothing if others share the server: it may be about their calls."""
        return "" if self._calls.is_shared else self._log.tail()

    async def _reason(self, message: str) -> str:
        if not isinstance(self._transport, StdioTransport):
            return message
        await self._transport.process.wait(1)  # its last output and exit status come shortly after its pipe closes
        return describe_exit(self._transport)

    def describe_end(self) -> str:
        """Describe how the connection ended."""
        if isinstance(self._transport, StdioTransport):
            return describe_exit(self._transport)
        return "the connection ended"

    def _explain(self, error: Exception) -> str:
        if isinstance(error, ValidationError):
            return f"the answer is not valid MCP: {_first_problem(error)}"
        return text_of(error, self._redact)

    async def watch(self, watched: asyncio.Event) -> None:
        """Subscribe to changes of the tool list on servers that require it (2026-07-28 and later).

        Parameters
        ----------
        watched : asyncio.Event
            Set once no change can be missed.
        """
        tools = self._client.server_capabilities.tools  # unknown if the version is configured
        if self.protocol_version not in MODERN_PROTOCOL_VERSIONS or (tools is not None and not tools.list_changed):
            return
        with contextlib.suppress(MCPError, SubscriptionLost, ListenNotSupportedError, TimeoutError):
            async with self._client.listen(tools_list_changed=True) as subscription:
                watched.set()
                async for _ in subscription:
                    pass  # the message handler sees each change, too


def describe_exit(transport: StdioTransport) -> str:
    """Describe how the server's process ended."""
    status = transport.process.returncode
    if status is None:
        return "the server closed its output"
    if status > 128:
        return f"the server was ended by signal {status - 128}"
    return f"the server ended with status {status}"


def _dumped(blocks: list[ContentBlock]) -> Sequence[JsonObject]:
    """Return content blocks as JSON."""
    found: list[JsonObject] = _BLOCKS.dump_python(blocks, by_alias=True, mode="json", exclude_none=True)
    return found


async def _parsed(content: Sequence[Any]) -> Sequence[JsonObject]:
    """Return many content blocks that the SDK has not parsed; between some of them, the event loop gets a turn.

    Raises
    ------
    _InvalidContentError
    """
    found: list[JsonObject] = []
    for start in range(0, len(content), BLOCKS_AT_ONCE):
        await asyncio.sleep(0)
        try:
            found += _dumped(_BLOCKS.validate_python(content[start : start + BLOCKS_AT_ONCE], by_name=False))
        except ValidationError as error:
            raise _InvalidContentError(_first_problem(error, start)) from None
    return found


class _InvalidContentError(Exception):
    """A content block is not valid MCP; the text says which, and why."""


def _first_problem(error: ValidationError, start: int | None = None) -> str:
    """Describe an error and its position, without the value: results do not belong in messages.

    Parameters
    ----------
    start : int, optional
        The number of the first content block, if it is an error in a list of those.
    """
    first = error.errors(include_input=False, include_url=False)[0]
    place = first["loc"] if start is None else ("content", start + int(first["loc"][0]), *first["loc"][1:])
    return f"{'.'.join(map(str, place))}: {first['msg']}"
