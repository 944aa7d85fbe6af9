"""Opens connections to MCP servers, over both transports and in both protocol eras."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Final

import mcp
import mcp_types
from mcp.client.session import IncomingMessage, MessageHandlerFnT
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from jupyter_agentbox.core.tools import LogMessage
from jupyter_agentbox.exceptions import ServerConfigurationError, ToolServerError
from jupyter_agentbox.processes.environment import process_environment
from jupyter_agentbox.processes.process import Command
from jupyter_agentbox.processes.reaper import CANNOT_EXECUTE, NOT_FOUND

from .bearer_auth import SignedIn
from .configuration import HttpServer, StdioServer, is_central
from .elicitation import elicitation
from .headers_helper import HelperHeaders
from .limits import ServerLimits
from .logs import LogRing, Redactor
from .running_calls import RunningCalls
from .sent_requests import SentRequest
from .server_errors import text_of
from .sessions import Session, describe_exit
from .sign_ins import SignInStore
from .transport_http import HttpTransport
from .transport_stdio import StdioTransport
from .wire import Wire

#: How long a server may take to acknowledge a subscription, in seconds; without it, changes may be missed.
_ACKNOWLEDGEMENT: Final = 5.0
try:
    _VERSION = version("jupyter-agentbox")
except PackageNotFoundError:  # run from a source tree
    _VERSION = "0"


@asynccontextmanager
async def open_session(
    server: StdioServer | HttpServer,
    *,
    limits: ServerLimits,
    log: LogRing,
    redact: Redactor,
    on_tools_changed: Callable[[], None],
    on_log_message: Callable[[LogMessage], None] = lambda _: None,
    sign_ins: SignInStore | None = None,
    hub_service: str = "",
    is_shared: bool = False,
) -> AsyncIterator[Session]:
    """Connect to a server. Enter and exit in the same task, as the SDK's cancel scopes require.

    Raises
    ------
    ServerConfigurationError, ToolServerError
    """
    connector = _Connector(
        server=server,
        limits=limits,
        log=log,
        redact=redact,
        on_tools_changed=on_tools_changed,
        on_log_message=on_log_message,
        sign_ins=sign_ins,
        is_central=is_central(server, hub_service),
        is_shared=is_shared,
    )
    async with AsyncExitStack() as stack:
        session = await connector.connect(stack)
        watched = asyncio.Event()
        watch = asyncio.create_task(session.watch(watched))
        try:
            # before the tools are listed, so that no change is missed in between
            await _first(watch, asyncio.create_task(watched.wait()))
            yield session
        finally:
            watch.cancel()
            await asyncio.wait([watch])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Connector:
    """Connects to a server, with what `open_session` was given."""

    server: StdioServer | HttpServer
    limits: ServerLimits
    log: LogRing
    redact: Redactor
    on_tools_changed: Callable[[], None]
    on_log_message: Callable[[LogMessage], None]
    sign_ins: SignInStore | None
    is_central: bool
    is_shared: bool

    async def connect(self, stack: AsyncExitStack) -> Session:
        """Return a session that the stack closes, in the server's protocol era, or in the first of two that works."""
        modes = _modes(self.server)
        for mode in modes:
            calls = RunningCalls(is_shared=self.is_shared)
            pass_on = partial(_pass_on, listener=self.on_log_message, calls=calls)
            wire = Wire(self.log.add, self.redact, pass_on, calls.give_up)
            transport = self._transport(wire)
            client = self._client(mode, transport, wire, calls)
            try:
                await stack.enter_async_context(client)
            except Exception as error:  # noqa: BLE001
                # boundary: the SDK raises its own, the transport's and anyio's errors here, alone or in groups
                if mode != modes[-1] and _ended_at_probe(transport, wire):
                    self.log.begin(
                        again="the server ended at its first request, `server/discover`: it was started again "
                        "with the older protocol"
                    )
                    continue
                raise self._start_error(transport, error) from None
            return Session(
                client,
                transport,
                wire=wire,
                calls=calls,
                name=self.server.name,
                log=self.log,
                redact=self.redact,
                is_central=self.is_central,
            )
        raise AssertionError("the last mode returns or raises")

    def _client(
        self, mode: str, transport: StdioTransport | HttpTransport, wire: Wire, calls: RunningCalls
    ) -> mcp.Client:
        return mcp.Client(
            transport,
            mode=mode,
            cache=None,
            read_timeout_seconds=self.limits.start_timeout + 5,  # for requests without one: reading a changed list
            client_info=mcp_types.Implementation(name="jupyter-agentbox", version=_VERSION),
            log_level="info",  # in 2026-07-28 a server logs only to clients that ask for it
            message_handler=_message_handler(wire, self.on_tools_changed),
            elicitation_callback=elicitation(calls, self.log.add, is_central=self.is_central),
        )

    def _transport(self, wire: Wire) -> StdioTransport | HttpTransport:
        server = self.server
        if isinstance(server, HttpServer):
            auth: SignedIn | HelperHeaders | None = None
            if server.headers_helper:
                auth = HelperHeaders(server, limits=self.limits, on_secrets=self.redact.learn, log=self.log)
            elif self.sign_ins is not None and self.sign_ins.is_for(server.name):
                auth = SignedIn(server, self.sign_ins, on_secret=self.redact.learn)
            return HttpTransport(server, wire=wire, message_cap=self.limits.message_cap, auth=auth)
        command = Command(
            argv=(program(server), *server.args),
            env=process_environment(os.environ, server.env),
            cwd=server.cwd or self.limits.default_cwd(),
            memory=self.limits.memory,
        )
        return StdioTransport(command, wire=wire, message_cap=self.limits.message_cap)

    def _start_error(self, transport: StdioTransport | HttpTransport, error: Exception) -> ToolServerError:
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        message = str(error) if isinstance(error, ToolServerError) else text_of(error, self.redact)
        if isinstance(transport, StdioTransport) and isinstance(error, MCPError) and error.code == CONNECTION_CLOSED:
            message = describe_exit(transport)
        text = f"`{self.server.name}` did not start: {self.redact(message)}"
        if isinstance(transport, HttpTransport) and transport.wants_sign_in:
            return transport.refusal(text)
        return ToolServerError(f"{text}{_elsewhere(self.server, self.limits)}")


def _pass_on(
    message: LogMessage,
    during: SentRequest | None,
    *,
    listener: Callable[[LogMessage], None],
    calls: RunningCalls,
) -> None:
    """Forward a server's log message."""
    listener(message)
    calls.logged(message, during)


async def _first(kept: asyncio.Task[None], helper: asyncio.Task[bool]) -> None:
    """Wait until one of the tasks is done, or for the timeout; then cancel the helper."""
    try:
        await asyncio.wait([kept, helper], timeout=_ACKNOWLEDGEMENT, return_when=asyncio.FIRST_COMPLETED)
    finally:
        helper.cancel()


def _modes(server: StdioServer | HttpServer) -> tuple[str, ...]:
    era = server.protocol_era
    if era in HANDSHAKE_PROTOCOL_VERSIONS:
        return ("legacy",)
    if era not in ("auto", "legacy", *MODERN_PROTOCOL_VERSIONS):
        known = ", ".join(("auto", "legacy", *MODERN_PROTOCOL_VERSIONS))
        raise ServerConfigurationError(f'`{server.name}` has an unknown "protocolEra" {era!r:.40}; use one of {known}')
    return ("auto", "legacy") if era == "auto" and isinstance(server, StdioServer) else (era,)


def _ended_at_probe(transport: StdioTransport | HttpTransport, wire: Wire) -> bool:
    """Whether this may be an old server that exits on an unknown request instead of refusing it."""
    if not isinstance(transport, StdioTransport) or wire.has_received:
        return False
    return wire.closed.is_set() and transport.process.returncode not in (CANNOT_EXECUTE, NOT_FOUND)


def program(server: StdioServer) -> str:
    """Return the program to run: this Python for a bare ``python``, as in Jupyter's kernelspecs.

    The `PATH` of a Jupyter server started from a desktop, or by a service, usually leads to another Python. A
    configured `PATH` is respected.
    """
    major, minor = sys.version_info[:2]
    is_ours = server.command in ("python", f"python{major}", f"python{major}.{minor}") and "PATH" not in server.env
    return sys.executable if is_ours and sys.executable else server.command


def _elsewhere(server: StdioServer | HttpServer, limits: ServerLimits) -> str:
    """Explain the working directory of a server that may have expected this process's."""
    if isinstance(server, HttpServer) or server.cwd or (place := limits.default_cwd()) is None:
        return ""
    return (
        f" (it started in {place}, because a sandboxed kernel can write where this process works;"
        " if it needs another directory, set its `cwd`)"
    )


def _message_handler(wire: Wire, on_tools_changed: Callable[[], None]) -> MessageHandlerFnT:
    async def handle(message: IncomingMessage) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            wire.tools_are_stale = True
            on_tools_changed()

    return handle
