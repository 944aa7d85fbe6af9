"""Users' sign-ins to central MCP servers: in the service's database, each used for its own user's calls only."""

from __future__ import annotations

import asyncio
import errno
import logging
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from jupyter_agentbox.exceptions import StorageError, ToolServerError
from jupyter_agentbox.mcp_client.sign_ins import SignIn, sign_in_from_json
from jupyter_agentbox.storage.sign_ins import SqlSignInTable

from .policy_in_force import PolicyInForce
from .sign_in_addresses import SIGN_IN_PAGE
from .sign_in_keys import SignInKeys

log = logging.getLogger(__name__)

T = TypeVar("T")

#: Seconds for which the service waits at its end for providers that renew a sign-in, and between two looks.
_LAST_RENEWALS: Final = 5.0
_PAUSE: Final = 0.02
_NOT_NOW: Final = "the service's database cannot be used at the moment. Try again later"


class CentralSignIns:
    """The sign-ins of all users to central servers.

    Parameters
    ----------
    table : SqlSignInTable
        The table in which they are.
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
        table: SqlSignInTable,
        keys: SignInKeys,
        *,
        policy: PolicyInForce,
        public_url: str,
        keep_days: float | None = None,
    ) -> None:
        self.table = table
        self.keys = keys
        self.policy = policy
        self._keep_days = keep_days
        self.page = f"{public_url}{SIGN_IN_PAGE}"
        self._lock = threading.Lock()
        self._renewals: set[tuple[str, str]] = set()

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
        if self._keep_days is not None and (removed := await self.table.remove_old(self._keep_days)):
            log.info("%d sign-ins to central servers were removed: not renewed for %g days", removed, self._keep_days)

    async def aclose(self) -> None:
        """Close the database, after a moment for running renewals: each refresh token works once."""
        until = time.monotonic() + _LAST_RENEWALS
        while self._renewals and time.monotonic() < until:  # noqa: ASYNC110  # the set is also changed in threads
            await asyncio.sleep(_PAUSE)
        await self.table.aclose()

    def of(self, user: str) -> UserSignInStore:
        """Return the sign-ins of one user."""
        return UserSignInStore(self, user)

    def begin_renewal(self, user: str, server: str) -> Callable[[], None] | None:
        """Begin the renewal of a sign-in; return the function that ends it, or ``None`` if one is running."""
        renewal = user, server
        with self._lock:
            if renewal in self._renewals:
                return None
            self._renewals.add(renewal)
        return lambda: self._renewals.discard(renewal)


class UserSignInStore:
    """The sign-ins of one user to central servers (a `SignInStore`). All methods block, and are called in threads.

    Parameters
    ----------
    sign_ins : CentralSignIns
        The sign-ins of all users.
    user : str
        The user.
    """

    def __init__(self, sign_ins: CentralSignIns, user: str) -> None:
        self._sign_ins = sign_ins
        self._user = user
        self.how_to_sign_in = f"open {sign_ins.page}"
        self.how_to_get_rights = (
            f"open {sign_ins.page}, sign out of it there, and sign in again; if that does not help, your administrator"
            " has to add them to its `scopes`"
        )

    def is_for(self, name: str) -> bool:
        """Whether users sign in to a server, according to the policy."""
        return name in self._sign_ins.policy.current.sign_in_servers

    def load(self, name: str, trust_key: str) -> SignIn | None:
        """Return the sign-in to a server; ``None`` if the user has not signed in at its present address.

        Raises
        ------
        ToolServerError
            If the database or the key cannot be read.
        """
        try:
            content = _run(self._sign_ins.table.load(self._user, name))
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
        self._change(name, lambda _: self._sign_ins.keys.encrypt(self._user, name, sign_in.to_json()))

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
            return None if after is None else self._sign_ins.keys.encrypt(self._user, name, after.to_json())

        return self._decrypt(name, self._change(name, changed), before.trust_key)

    def forget(self, name: str) -> None:
        """Delete the sign-in to a server.

        Raises
        ------
        OSError
            If it cannot be deleted.
        """
        self._change(name, lambda _: None)

    def begin_renewal(self, name: str) -> Callable[[], None] | None:
        """Take the lock that a sign-in's renewal holds; return its release function, or ``None`` if another has it."""
        return self._sign_ins.begin_renewal(self._user, name)

    def _decrypt(self, name: str, content: bytes | None, trust_key: str) -> SignIn | None:
        if content is None:
            return None
        return sign_in_from_json(self._sign_ins.keys.decrypt(self._user, name, content), trust_key)

    def _change(self, name: str, changed: Callable[[bytes | None], bytes | None]) -> bytes | None:
        try:
            return _run(self._sign_ins.table.change(self._user, name, changed))
        except StorageError as error:
            log.warning("a sign-in could not be written: %s", error)
            raise OSError(errno.EIO, _NOT_NOW) from None
        except ToolServerError as error:  # the keys cannot be read
            raise OSError(errno.EIO, str(error)) from None


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Wait for the database in a thread without an event loop."""
    return asyncio.run(work)
