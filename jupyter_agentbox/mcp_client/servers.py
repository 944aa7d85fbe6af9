"""All configured MCP servers, and the calls that run on them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from jupyter_agentbox.background import in_background
from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.ports import CallListener
from jupyter_agentbox.core.text import did_you_mean
from jupyter_agentbox.core.tools import (
    ConfigurationProblem,
    LogMessage,
    ServerStatus,
    ToolDescription,
    ToolResult,
)
from jupyter_agentbox.exceptions import ServerConfigurationError, UnknownServerError, UnknownToolError

from .arguments import check_is_json
from .configuration import Configuration, ConfigurationSource, HttpServer, StartableServer, UnusableServer
from .limits import ServerLimits
from .process_slots import ProcessSlots
from .registration import command_or_address, entry_text
from .server import ManagedServer, import_connections
from .sign_ins import SignInStore

_log = logging.getLogger(__name__)
#: How long, in seconds, a call after a description reuses its configuration; a later one checks again.
_DESCRIBED: Final = 0.05


class McpServers:
    """Runs tools on the configured servers (implements `ToolCatalog` and `ToolCaller`).

    The configuration is checked on every use, and once for a tool that is described and then called at once: a server
    whose entry changed is stopped, and restarts on its next use; the others are unaffected.

    Parameters
    ----------
    source : ConfigurationSource
        Source of the configured servers.
    limits : ServerLimits
        Resource limits and default working directory of each server.
    on_change : callable
        Called when a server's status, its tools or the configuration changed.
    on_log : callable
        Called with a server's name and its log notification. Untrusted text.
    clock : callable
        Monotonic clock, in seconds.
    sign_ins : SignInStore, optional
        People's sign-ins; without it, nobody can sign in to a server.
    hub_service : str
        The address of the Hub service, whose word on who approved a call counts; empty for none.
    is_shared : bool
        Whether several people use the servers, so that it must be known whose call a question belongs to.
    where_to_look : callable, optional
        Returns a sentence that says where people find more about a server that fails at its start.
    slots : ProcessSlots, optional
        The slots of programs, shared with other servers; by default, as many as the limits permit.
    """

    def __init__(
        self,
        *,
        source: ConfigurationSource,
        limits: ServerLimits,
        on_change: Callable[[], None] = lambda: None,
        on_log: Callable[[str, LogMessage], None] = lambda _, __: None,
        clock: Callable[[], float] = time.monotonic,
        sign_ins: SignInStore | None = None,
        hub_service: str = "",
        is_shared: bool = False,
        where_to_look: Callable[[StartableServer], str] = lambda _: "",
        slots: ProcessSlots | None = None,
    ) -> None:
        self._source = source
        self._limits = limits
        self._on_change = [on_change]
        self._on_log = on_log
        self._clock = clock
        self._sign_ins = sign_ins
        self._hub_service = hub_service
        self._is_shared = is_shared
        self._where_to_look = where_to_look
        self._loaded = Configuration()
        self._described_at: float | None = None
        self._slots = slots or ProcessSlots(limits.most_processes)
        self._servers: dict[str, ManagedServer] = {}
        self._retiring: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def follow(self, on_change: Callable[[], None]) -> None:
        """Also call this function when a server's status, its tools or the configuration changed."""
        self._on_change.append(on_change)

    def servers(self) -> Sequence[ServerStatus]:
        """Return all configured servers, running or not, in configuration order."""
        self._reload()
        return tuple(server.status for server in self._servers.values())

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all servers as of the last look at the configuration. Can be read in any thread."""
        return tuple(self._servers)

    def problems(self) -> Sequence[ConfigurationProblem]:
        """Return the problems in the configuration files."""
        self._reload()
        return self._loaded.problems

    def known_tools(self, server: str) -> Sequence[ToolDescription] | None:
        """Return the server's tools as last listed; ``None`` if not listed yet. Starts nothing.

        Raises
        ------
        UnknownServerError
        """
        known = self._server(server).known_tools
        return None if known is None else tuple(known.values())

    async def list_tools(self, server: str) -> Sequence[ToolDescription]:
        """Return the server's tools, starting it if necessary.

        Raises
        ------
        UnknownServerError, ServerConfigurationError, ToolServerError
        """
        return tuple((await self._server(server).tools()).values())

    async def describe(self, server: str, tool: str) -> ToolDescription:
        """Return a tool's description, starting the server if necessary.

        Raises
        ------
        UnknownServerError, UnknownToolError, ServerConfigurationError, ToolServerError
        """
        described = self._server(server)
        self._described_at = self._clock()
        tools = await described.tools()
        try:
            return tools[tool]
        except KeyError:
            raise UnknownToolError(f"the server `{server}` has no tool `{tool}`{did_you_mean(tool, tools)}") from None

    def trust_key(self, name: str) -> str:
        """Return a server's trust key; empty if there is no server of this name."""
        self._reload()
        server = self._servers.get(name)
        return "" if server is None else server.trust_key

    def entry_text(self, name: str) -> str:
        """Return what a server's trust key covers, a line each, without secrets; empty if there is no such server."""
        self._reload()
        server = self._servers.get(name)
        return "" if server is None else entry_text(server.configuration)

    def command_or_address_of(self, name: str) -> str:
        """Return a server's command or address in one line, without secrets; empty if there is none of this name."""
        self._reload()
        server = self._servers.get(name)
        return "" if server is None else command_or_address(server.configuration)

    async def call_tool(self, call: ToolCall, *, listener: CallListener | None = None) -> ToolResult:
        """Run the call once. Cancelling the task cancels the call on the server.

        Its timeout starts here, after a person has approved it.

        Raises
        ------
        ToolArgumentsError
            If an argument cannot be sent as JSON.
        UnknownServerError, UnknownToolError, ServerConfigurationError, ToolServerError, ToolCallInterruptedError
            A tool that fails by itself does not raise: its result has `is_error`.
        """
        check_is_json(call.arguments)  # the SDK would silently alter what is not JSON
        server = self._described(call.server) or self._server(call.server)
        return await server.call_tool(call, listener)

    async def restart(self, name: str) -> ServerStatus:
        """Stop and start the server now, regardless of earlier failures; return its status.

        Raises
        ------
        UnknownServerError
        """
        server = self._server(name)
        if not self._is_closed:
            await server.restart()
        return server.status

    async def start(self, name: str) -> ServerStatus:
        """Start the server now, unless it is running, regardless of earlier failures; return its status.

        Raises
        ------
        UnknownServerError
        """
        server = self._server(name)
        if not self._is_closed:
            await server.start()
        return server.status

    async def stop(self, name: str) -> ServerStatus:
        """Stop the server, which interrupts its running calls; it restarts on its next use.

        Raises
        ------
        UnknownServerError
        """
        server = self._server(name)
        await server.stop()
        return server.status

    def http_server(self, name: str) -> HttpServer:
        """Return a server that supports sign-in.

        Raises
        ------
        UnknownServerError
        ServerConfigurationError
            If it is a local process, or its configuration is unusable.
        """
        configuration = self._server(name).configuration
        if isinstance(configuration, HttpServer):
            return configuration
        reason = configuration.error if isinstance(configuration, UnusableServer) else "it is a program of yours"
        raise ServerConfigurationError(f"nobody can sign in to `{name}`: {reason}")

    async def signed_out(self, name: str) -> None:
        """Stop a server whose sign-in was forgotten.

        Raises
        ------
        UnknownServerError
        """
        server = self._server(name)
        await server.stop()
        server.signed_out()

    async def stop_all(self) -> None:
        """Stop all servers concurrently; each restarts on its next use."""
        await asyncio.gather(*(server.stop() for server in self._servers.values()))

    async def stop_idle(self) -> None:
        """Stop programs that were unused for `ServerLimits.idle_timeout`; each restarts on its next use."""
        seconds = self._limits.idle_timeout
        if seconds is not None:
            await asyncio.gather(*(server.stop_if_idle(seconds) for server in self._servers.values()))

    async def preload(self) -> None:
        """Import the SDK, in a thread. Optional: without it, the first start of a server takes a second longer."""
        await asyncio.to_thread(import_connections)

    async def aclose(self) -> None:
        """Stop all servers concurrently. Takes a few seconds if some do not exit by themselves."""
        self._is_closed = True
        await asyncio.gather(*(server.stop(for_good=True) for server in self._servers.values()), *self._retiring)

    def _described(self, name: str) -> ManagedServer | None:
        """Return a server if the configuration was looked at a moment ago, for a description; that counts once."""
        at, self._described_at = self._described_at, None
        return self._servers.get(name) if at is not None and self._clock() - at < _DESCRIBED else None

    def _server(self, name: str) -> ManagedServer:
        self._reload()
        try:
            return self._servers[name]
        except KeyError:
            known = ", ".join(f"`{known}`" for known in self._servers) or "none"
            problems = "".join(f"; {problem}" for problem in self._loaded.problems)
            raise UnknownServerError(
                f"no MCP server `{name}` is configured in mcp.json (configured: {known})"
                f"{did_you_mean(name, self._servers)}{problems}"
            ) from None

    def _reload(self) -> None:
        loaded = self._source.load()
        if loaded is self._loaded or self._is_closed:
            return
        self._loaded = loaded
        for problem in loaded.problems:
            _log.warning("MCP servers: %s", problem)
        old, self._servers = self._servers, {}
        for name, configuration in loaded.servers.items():
            server = old.get(name)
            if server is None or server.configuration != configuration:
                server = ManagedServer(
                    configuration,
                    limits=self._limits,
                    clock=self._clock,
                    on_change=self._announce,
                    on_log_message=partial(self._on_log, name),
                    sign_ins=self._sign_ins,
                    slots=self._slots,
                    hub_service=self._hub_service,
                    is_shared=self._is_shared,
                    where_to_look=self._where_to_look,
                )
            else:
                server.configuration = configuration  # it may have moved in its file
                del old[name]
            self._servers[name] = server
        for server in old.values():
            self._retire(server)
        self._announce()

    def _announce(self) -> None:
        for notify in self._on_change:
            try:
                notify()
            except Exception:  # noqa: BLE001
                # boundary: a listener's error must not affect a server's owner
                _log.exception("announcing a change of the MCP servers failed")

    def _retire(self, server: ManagedServer) -> None:
        if server.is_active:
            task = in_background(
                server.stop(for_good=True), what=f"stopping the MCP server {server.configuration.name}"
            )
            self._retiring.add(task)
            task.add_done_callback(self._retiring.discard)
