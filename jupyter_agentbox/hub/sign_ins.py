"""Users' sign-ins to central MCP servers: in the service's database, each used for its own user's calls only."""

from __future__ import annotations

import asyncio
import errno
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar
from urllib.parse import quote
from weakref import WeakValueDictionary

from jupyter_agentbox.core.ports import Ids
from jupyter_agentbox.core.tools import ServerStatus
from jupyter_agentbox.exceptions import ServerConfigurationError, StorageError, ToolServerError
from jupyter_agentbox.mcp_client.configuration import HttpServer
from jupyter_agentbox.mcp_client.provider_addresses import is_safe_address
from jupyter_agentbox.mcp_client.sign_ins import SignIn, sign_in_from_json
from jupyter_agentbox.services.servers.sign_ins import SignInManager
from jupyter_agentbox.storage.sign_ins import SqlSignInStore

from .callers import Caller
from .central_servers import CentralServers
from .policy_in_force import PolicyInForce
from .sign_in_keys import SignInKeys

log = logging.getLogger(__name__)

T = TypeVar("T")

#: The page on which users sign in, and that to which providers send them back, below the service's address.
SIGN_IN_PAGE: Final = "servers"
CALLBACK: Final = "sign-in/callback/"
_NOT_NOW: Final = "the service's database cannot be used at the moment. Try again later"


class SignInStores:
    """The sign-ins of all users.

    Parameters
    ----------
    store : SqlSignInStore
        The database.
    keys : SignInKeys
        Encrypts what is stored there.
    policy : PolicyInForce
        Says to which servers users sign in.
    public_url : str
        The service's address for people, with a slash at the end.
    keep_days : float or None
        How many days a sign-in is kept after it was made or last renewed; ``None`` for ever.
    """

    def __init__(
        self,
        store: SqlSignInStore,
        keys: SignInKeys,
        *,
        policy: PolicyInForce,
        public_url: str,
        keep_days: float | None = None,
    ) -> None:
        self.store = store
        self.keys = keys
        self.policy = policy
        self._keep_days = keep_days
        self.page = f"{public_url}{SIGN_IN_PAGE}"
        self._locks: WeakValueDictionary[tuple[str, str], threading.Lock] = WeakValueDictionary()
        self._guard = threading.Lock()

    def read_keys(self) -> None:
        """Read the keys if users sign in to any server. Their file is created if it does not exist.

        Raises
        ------
        OSError, ValueError
            If the file cannot be used.
        """
        if self.policy.current.sign_in_servers:
            self.keys.read()

    async def remove_old(self) -> None:
        """Delete the sign-ins that are too old.

        Raises
        ------
        StorageError
        """
        if self._keep_days is not None and (removed := await self.store.remove_old(self._keep_days)):
            log.info("%d sign-ins to central servers were removed: not renewed for %g days", removed, self._keep_days)

    async def aclose(self) -> None:
        """Close the database."""
        await self.store.aclose()

    def of(self, user: str) -> UserSignIns:
        """Return the sign-ins of one user."""
        return UserSignIns(self, user)

    def lock_of(self, user: str, server: str) -> threading.Lock:
        """Return the lock that the renewal of a sign-in holds. It exists as long as somebody refers to it."""
        with self._guard:
            return self._locks.setdefault((user, server), threading.Lock())


class UserSignIns:
    """The sign-ins of one user (a `SignInStore`). All methods block, and are called in threads.

    Parameters
    ----------
    stores : SignInStores
        The sign-ins of all users.
    user : str
        The user.
    """

    def __init__(self, stores: SignInStores, user: str) -> None:
        self._stores = stores
        self._user = user
        self.how = f"open {stores.page}"

    def is_for(self, name: str) -> bool:
        """Whether users sign in to a server, according to the policy."""
        return name in self._stores.policy.current.sign_in_servers

    def load(self, name: str, trust_key: str) -> SignIn | None:
        """Return the sign-in to a server; ``None`` if the user has not signed in at its present address.

        Raises
        ------
        ToolServerError
            If the database or the key cannot be read.
        """
        try:
            content = _run(self._stores.store.load(self._user, name))
        except StorageError as error:
            log.warning("a sign-in could not be read: %s", error)
            raise ToolServerError(_NOT_NOW) from None
        return self._decrypt(name, content, trust_key)

    def keep(self, name: str, sign_in: SignIn) -> None:
        """Store a sign-in, replacing an earlier one to the same server.

        Raises
        ------
        OSError
            If it cannot be stored.
        """
        self._change(name, lambda _: self._stores.keys.encrypt(self._user, name, sign_in.to_json()))

    def replace(self, name: str, before: SignIn, after: SignIn | None) -> SignIn | None:
        """Replace a sign-in, or with ``None`` delete it, if it is still stored; return the stored one afterwards.

        Raises
        ------
        OSError
            If it cannot be stored.
        """

        def changed(content: bytes | None) -> bytes | None:
            kept = self._decrypt(name, content, before.trust_key)
            if kept is None or kept.tokens != before.tokens:
                return content
            return None if after is None else self._stores.keys.encrypt(self._user, name, after.to_json())

        return self._decrypt(name, self._change(name, changed), before.trust_key)

    def forget(self, name: str) -> None:
        """Delete the sign-in to a server.

        Raises
        ------
        OSError
            If it cannot be deleted.
        """
        self._change(name, lambda _: None)

    def begin_renewal(self, name: str) -> Callable[[], None]:
        """Wait for the lock that the renewal of this sign-in holds; return its release function."""
        lock = self._stores.lock_of(self._user, name)
        lock.acquire()
        return lock.release

    def _decrypt(self, name: str, content: bytes | None, trust_key: str) -> SignIn | None:
        if content is None:
            return None
        return sign_in_from_json(self._stores.keys.decrypt(self._user, name, content), trust_key)

    def _change(self, name: str, changed: Callable[[bytes | None], bytes | None]) -> bytes | None:
        try:
            return _run(self._stores.store.change(self._user, name, changed))
        except StorageError as error:
            log.warning("a sign-in could not be written: %s", error)
            raise OSError(errno.EIO, _NOT_NOW) from None
        except ToolServerError as error:  # the keys cannot be read
            raise OSError(errno.EIO, str(error)) from None


class UserSignInManagers:
    """Users' sign-ins in progress.

    Parameters
    ----------
    stores : SignInStores
        The sign-ins of all users.
    servers : CentralServers
        The central servers.
    ids : Ids
        Generates unguessable values.
    public_url : str
        The service's address for people, with a slash at the end.
    """

    def __init__(self, stores: SignInStores, servers: CentralServers, *, ids: Ids, public_url: str) -> None:
        self.stores = stores
        self._servers = servers
        self._ids = ids
        self._public_url = public_url
        self._servers_of: dict[str, _ServersOf] = {}
        self._managers: dict[str, SignInManager] = {}

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach the service over https."""
        return self._public_url.startswith("https:")

    def of(self, caller: Caller) -> SignInManager:
        """Return the manager of one user's sign-ins."""
        servers = self._servers_of.setdefault(caller.name, _ServersOf(self._servers, caller))
        servers.caller = caller  # the groups may have changed since
        if caller.name not in self._managers:
            self._managers[caller.name] = SignInManager(
                servers=servers, sign_ins=self.stores.of(caller.name), ids=self._ids
            )
        return self._managers[caller.name]

    async def signed_in(self, caller: Caller) -> dict[str, bool]:
        """Return the servers to which users sign in, and whether this one has.

        Raises
        ------
        ToolServerError
        """
        own, mine = self._servers.own_of(caller), self.stores.of(caller.name)
        policy = self.stores.policy.current
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
        if why := why_no_redirect(self._public_url):
            raise ServerConfigurationError(f"nobody can sign in here, because {why}: tell your administrator")
        return f"{self._public_url}{CALLBACK}{quote(name, safe='')}"

    def close(self) -> None:
        """Abandon all sign-ins in progress."""
        for manager in self._managers.values():
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


def why_no_redirect(public_url: str) -> str:
    """Return why providers cannot send people back to the service; empty if they can."""
    if "://" not in public_url:
        return "`HubService.public_url` is not set to the address that people open"
    return "" if is_safe_address(public_url) else "the address that people open does not begin with https"


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Wait for the database in a thread without an event loop."""
    return asyncio.run(work)
