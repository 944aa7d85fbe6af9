"""Users' sign-ins to central MCP servers in progress, and which of these servers they have signed in to."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

from jupyter_agentbox.core.ports import Ids
from jupyter_agentbox.core.tools import ServerStatus
from jupyter_agentbox.exceptions import ServerConfigurationError
from jupyter_agentbox.mcp_client.configuration import HttpServer
from jupyter_agentbox.services.servers.sign_ins import SignInManager

from .callers import Caller
from .central_servers import CentralServers
from .sign_in_addresses import CALLBACK, why_no_redirect
from .sign_ins import CentralSignIns


class SignInManagers:
    """A `SignInManager` for each user.

    Parameters
    ----------
    sign_ins : CentralSignIns
        The sign-ins of all users.
    servers : CentralServers
        The central servers.
    ids : Ids
        Generates unguessable values.
    public_url : str
        The service's address for people, with a slash at the end.
    """

    def __init__(self, sign_ins: CentralSignIns, servers: CentralServers, *, ids: Ids, public_url: str) -> None:
        self._sign_ins = sign_ins
        self._servers = servers
        self._ids = ids
        self._public_url = public_url
        self._users: dict[str, tuple[_ServersOf, SignInManager]] = {}

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach the service over https."""
        return self._public_url.startswith("https:")

    @property
    def why_nobody_can(self) -> str:
        """Why no provider can send people back to the service; empty if they can."""
        return why_no_redirect(self._public_url)

    def of(self, caller: Caller) -> SignInManager:
        """Return the manager of one user's sign-ins."""
        if caller.name not in self._users:
            servers, sign_ins = _ServersOf(self._servers, caller), self._sign_ins.of(caller.name)
            self._users[caller.name] = servers, SignInManager(servers=servers, sign_ins=sign_ins, ids=self._ids)
        servers, manager = self._users[caller.name]
        servers.caller = caller  # the groups may have changed since
        return manager

    async def signed_in(self, caller: Caller) -> dict[str, bool]:
        """Return the servers to which users sign in, and whether this one has.

        Raises
        ------
        ToolServerError
        """
        own, mine = self._servers.own_of(caller), self._sign_ins.of(caller.name)
        policy = self._sign_ins.policy.current
        found = {name: own.trust_key(name) for name in policy.servers if name in policy.sign_in_servers}

        def look() -> dict[str, bool]:
            return {name: mine.load(name, trust_key) is not None for name, trust_key in found.items()}

        return await asyncio.to_thread(look)

    def redirect_for(self, name: str) -> str:
        """Return the address to which a server's provider sends people back; each server has its own.

        Raises
        ------
        ServerConfigurationError
            If the service's address for people is not known, or others could read what the provider sends there.
        """
        if why := self.why_nobody_can:
            raise ServerConfigurationError(f"nobody can sign in here, because {why}: tell your administrator")
        return f"{self._public_url}{CALLBACK}{quote(name, safe='')}"

    def close(self) -> None:
        """Abandon all sign-ins in progress."""
        for _, manager in self._users.values():
            manager.close()


class _ServersOf:
    """The central servers as one user's (a `SignInServers`).

    Parameters
    ----------
    servers : CentralServers
        The central servers.
    caller : Caller
        The user, with their groups at the last request.
    """

    def __init__(self, servers: CentralServers, caller: Caller) -> None:
        self._servers = servers
        self.caller = caller

    def http_server(self, name: str) -> HttpServer:
        return self._servers.own_of(self.caller).http_server(name)

    async def start(self, name: str) -> ServerStatus:
        return await self._servers.own_of(self.caller).start(name)

    async def stop(self, name: str) -> ServerStatus:
        return await self._servers.own_of(self.caller).stop(name)

    async def signed_out(self, name: str) -> None:
        await self._servers.own_of(self.caller).signed_out(name)
