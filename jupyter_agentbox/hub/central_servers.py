"""Central MCP servers, shared or one per user, with credentials that users never get."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from jupyter_agentbox.background import in_background
from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.ports import CallListener
from jupyter_agentbox.core.tools import ToolDescription, ToolResult
from jupyter_agentbox.exceptions import UnknownServerError
from jupyter_agentbox.mcp_client.configuration import Configuration
from jupyter_agentbox.mcp_client.limits import ServerLimits
from jupyter_agentbox.mcp_client.process_slots import ProcessSlots
from jupyter_agentbox.mcp_client.servers import McpServers
from jupyter_agentbox.mcp_client.sign_ins import SignInStore
from jupyter_agentbox.mcp_client.trust_keys import trust_key_of

from .callers import Caller
from .policy_file import PolicyFile
from .policy_in_force import PolicyInForce

#: Stands for every user, where it matters only whether an entry is another than before.
_ANYBODY: Final = "user"


class _Entries:
    """The entries of one user, or the shared ones; a `ConfigurationSource`.

    Parameters
    ----------
    configuration : Configuration
        The entries.
    """

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration

    def change(self, configuration: Configuration) -> bool:
        """Replace the entries; return whether they differ from before."""
        is_other = configuration != self.configuration
        if is_other:
            self.configuration = configuration
        return is_other

    def load(self) -> Configuration:
        return self.configuration


class _OwnServers:
    """One user's own servers.

    Parameters
    ----------
    entries : _Entries
        Their configuration.
    servers : McpServers
        The servers.
    now : float
        The time of their first use, in seconds.
    """

    def __init__(self, entries: _Entries, servers: McpServers, now: float) -> None:
        self.entries = entries
        self.groups: frozenset[str] = frozenset()
        self.servers = servers
        self.used_at = now
        self.calls = 0


class CentralServers:
    """Runs the tools of central servers for users.

    A server whose entry contains the user's name or groups, or to which each user signs in, runs once for each user
    until it is idle. All other servers run once and are shared. All programs share one limit of their number.

    Parameters
    ----------
    policy : PolicyInForce
        Provides the current entries.
    environment : mapping
        The service's environment, for variables in the entries.
    limits : ServerLimits
        The limits of servers. After `idle_timeout`, a user's own servers are stopped, and shared programs.
    sign_ins_of : callable
        Returns a user's sign-ins.
    clock : callable
        Returns monotonic seconds.

    Attributes
    ----------
    shared : McpServers
        The servers that all users share.
    """

    def __init__(
        self,
        *,
        policy: PolicyInForce,
        environment: Mapping[str, str],
        limits: ServerLimits,
        sign_ins_of: Callable[[str], SignInStore | None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._policy = policy
        self._environment = environment
        self._limits = limits
        self._slots = ProcessSlots(limits.most_processes, advice="try again when one of them has answered")
        self._sign_ins_of = sign_ins_of
        self._clock = clock
        self._entries = _Entries(policy.current.servers_for(environment))
        self.shared = McpServers(source=self._entries, limits=limits, clock=clock, slots=self._slots, is_shared=True)
        self._own: dict[str, _OwnServers] = {}
        self._trust_keys: tuple[PolicyFile, Mapping[str, str]] | None = None
        policy.follow(self._follow)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all central servers."""
        return self._policy.current.servers

    async def list_tools(self, server: str, caller: Caller) -> Sequence[ToolDescription]:
        """Return a server's tools for a user. Starts the server if necessary.

        Raises
        ------
        UnknownServerError, ServerConfigurationError, ToolServerError
        """
        return await self._servers(server, caller).list_tools(server)

    def trust_key(self, server: str) -> str:
        """Return the trust key of a server's entry, as for a user without groups; empty if there is no such server."""
        policy = self._policy.current
        if self._trust_keys is None or self._trust_keys[0] is not policy:
            shared, own = (policy.servers_for(self._environment, user=user).servers for user in ("", _ANYBODY))
            self._trust_keys = policy, {name: trust_key_of(one) for name, one in {**shared, **own}.items()}
        return self._trust_keys[1].get(server, "")

    def of(self, caller: Caller) -> UserTools:
        """Return the tools as one user sees them."""
        return UserTools(self, caller)

    def own_of(self, caller: Caller) -> McpServers:
        """Return the servers that run for this user alone. Starts nothing."""
        return self._own_of(caller).servers

    async def describe(self, server: str, tool: str, caller: Caller) -> ToolDescription:
        """Return one tool for a user. Starts its server if necessary.

        Raises
        ------
        UnknownServerError, UnknownToolError, ServerConfigurationError, ToolServerError
        """
        return await self._servers(server, caller).describe(server, tool)

    async def call_tool(self, call: ToolCall, caller: Caller, *, listener: CallListener | None = None) -> ToolResult:
        """Run a user's call once.

        Raises
        ------
        UnknownServerError, UnknownToolError, ServerConfigurationError, ToolServerError, ToolCallInterruptedError
        """
        servers = self._servers(call.server, caller)
        own = self._own.get(caller.name) if call.server in self._policy.current.own_servers else None
        if own is None:
            return await servers.call_tool(call, listener=listener)
        own.calls += 1
        try:
            return await servers.call_tool(call, listener=listener)
        finally:
            own.calls -= 1
            own.used_at = self._clock()

    async def stop_idle(self) -> None:
        """Stop users' own servers, and shared programs, that have been idle for too long."""
        if self._limits.idle_timeout is None:
            return
        limit = self._clock() - self._limits.idle_timeout
        idle = [name for name, own in self._own.items() if own.calls == 0 and own.used_at < limit]
        own_servers = [self._own.pop(name).servers.aclose() for name in idle]
        await asyncio.gather(self.shared.stop_idle(), *own_servers)

    def _follow(self, before: PolicyFile, now: PolicyFile) -> None:
        """Apply a new policy. Servers whose entries changed are stopped, and start again at their next use.

        So are those to which users sign in from now on, or no longer: a connection keeps the sign-in that it has.
        """
        others = before.sign_in_servers ^ now.sign_in_servers
        if self._entries.change(now.servers_for(self._environment)):
            self.shared.servers()
        for name, own in self._own.items():
            if own.entries.change(now.servers_for(self._environment, user=name, groups=own.groups)):
                own.servers.servers()
            for server in others.intersection(own.entries.configuration.servers):
                in_background(_stop(own.servers, server), what=f"stopping the MCP server {server}")

    async def aclose(self) -> None:
        """Stop all servers."""
        own = [one.servers.aclose() for one in self._own.values()]
        self._own.clear()
        await asyncio.gather(self.shared.aclose(), *own)

    def _servers(self, server: str, caller: Caller) -> McpServers:
        policy = self._policy.current
        if server not in policy.servers:
            raise UnknownServerError(f"there is no central server `{server:.80}`")
        return self._own_of(caller).servers if server in policy.own_servers else self.shared

    def _own_of(self, caller: Caller) -> _OwnServers:
        """Return a user's servers. Those whose entries change with the user's current groups are restarted."""
        configuration = self._policy.current.servers_for(self._environment, user=caller.name, groups=caller.groups)
        own = self._own.get(caller.name)
        if own is None:
            entries = _Entries(configuration)
            servers = McpServers(
                source=entries,
                limits=self._limits,
                clock=self._clock,
                sign_ins=self._sign_ins_of(caller.name),
                slots=self._slots,
            )
            own = _OwnServers(entries, servers, self._clock())
            self._own[caller.name] = own
        else:
            own.entries.change(configuration)
        own.groups = caller.groups
        own.used_at = self._clock()
        return own


class UserTools:
    """The central tools as one user sees them (the port `ToolCaller`).

    Parameters
    ----------
    servers : CentralServers
        All central servers.
    caller : Caller
        The user.
    """

    def __init__(self, servers: CentralServers, caller: Caller) -> None:
        self._servers = servers
        self._caller = caller

    async def describe(self, server: str, tool: str) -> ToolDescription:
        """Return one tool. Starts its server if necessary."""
        return await self._servers.describe(server, tool, self._caller)

    async def call_tool(self, call: ToolCall, *, listener: CallListener | None = None) -> ToolResult:
        """Run the call once."""
        return await self._servers.call_tool(call, self._caller, listener=listener)


async def _stop(servers: McpServers, name: str) -> None:
    await servers.stop(name)
