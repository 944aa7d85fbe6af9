"""Sign-ins to MCP servers in progress; each belongs to the person and the browser that began it."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from jupyter_agentbox.background import in_background
from jupyter_agentbox.core.ports import Ids
from jupyter_agentbox.core.tools import ServerStatus
from jupyter_agentbox.exceptions import AgentBoxError, ServerConfigurationError, SignInError, TooManyRequestsError
from jupyter_agentbox.mcp_client.configuration import HttpServer
from jupyter_agentbox.mcp_client.sign_ins import SignIn, SignInStore
from jupyter_agentbox.mcp_client.trust_keys import trust_key_of

if TYPE_CHECKING:
    from jupyter_agentbox.mcp_client.authorization import Authorization

#: Maximum number of sign-ins begun within `_PERIOD` seconds, which is as long as each may take: many providers register
#: a client for each, and would at last refuse everybody.
MOST: Final = 20
_PERIOD: Final = 600.0
_LONGEST_REASON: Final = 100
_AGAIN: Final = "press “Sign in” again where you did before"


class SignInServers(Protocol):
    """The part of the MCP servers that this module uses."""

    def http_server(self, name: str) -> HttpServer:
        """Return a server that supports sign-in."""

    async def stop(self, name: str) -> ServerStatus:
        """Stop the server until its next use."""

    async def start(self, name: str) -> ServerStatus:
        """Start the server unless it is running."""

    async def signed_out(self, name: str) -> None:
        """Stop a server after its sign-in was forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A sign-in that was begun.

    Parameters
    ----------
    address : str
        The URL of the provider's page.
    state : str
        Identifies the sign-in; the provider returns it.
    browser_key : str
        A secret that only the browser that began has, and must present on return.
    """

    address: str = field(repr=False)
    state: str = field(repr=False)
    browser_key: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderAnswer:
    """The provider's answer, as carried by the browser. None of it is trusted.

    Parameters
    ----------
    state : str
        Identifies the sign-in.
    code : str
        The authorization code.
    issuer : str or None
        The provider's issuer identifier.
    error : str
        Why there is no code.
    """

    state: str = field(repr=False)
    code: str = field(default="", repr=False)
    issuer: str | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pending:
    server: HttpServer
    person: str
    browser_key: str = field(repr=False)
    authorization: Authorization


class SignInManager:
    """Manages people's sign-ins to MCP servers.

    Parameters
    ----------
    servers : SignInServers
        The MCP servers.
    sign_ins : SignInStore
        Stores the sign-ins.
    ids : Ids
        Generates unguessable values.
    on_change : callable
        Called when a sign-in failed, or the last failure was cleared.
    """

    def __init__(
        self,
        *,
        servers: SignInServers,
        sign_ins: SignInStore,
        ids: Ids,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._servers = servers
        self._sign_ins = sign_ins
        self._ids = ids
        self._on_change = on_change
        self._begun_at: deque[float] = deque(maxlen=MOST)
        self._failures: dict[str, str] = {}
        self._pending: dict[str, _Pending] = {}

    async def begin(self, name: str, *, person: str, redirect: str) -> Begun:
        """Discover the provider of a server. An earlier sign-in of the same person to it is abandoned.

        Parameters
        ----------
        name : str
            The server.
        person : str
            Who signs in.
        redirect : str
            The redirect address, validated by the caller.

        Raises
        ------
        UnknownServerError, ServerConfigurationError, ToolServerError
        TooManyRequestsError
            If too many were begun a short time ago.
        """
        server = self._servers.http_server(name)
        now = time.monotonic()
        if len(self._begun_at) == MOST and now - self._begun_at[0] < _PERIOD:
            raise TooManyRequestsError(
                f"{MOST} sign-ins were begun within {_PERIOD / 60:.0f} minutes: wait some minutes"
            )
        self._begun_at.append(now)
        self.cancel(name, person=person)
        self._set_failure(name, "")
        authorization = await self._begun(server, redirect)
        state = authorization.state
        begun = Begun(address=authorization.address, state=state, browser_key=self._ids.new())
        self._pending[state] = _Pending(
            server=server, person=person, browser_key=begun.browser_key, authorization=authorization
        )
        authorization.on_end(lambda reason: self._end(state, reason))
        return begun

    def failure_of(self, name: str) -> str:
        """Return why the last sign-in to a server failed; empty if it did not, or a new one was begun."""
        return self._failures.get(name, "")

    def cancel(self, name: str, *, person: str) -> None:
        """Abandon a person's sign-in to a server: its provider's answer is no longer accepted."""
        for state, pending in [*self._pending.items()]:
            if (pending.server.name, pending.person) == (name, person):
                del self._pending[state]
                pending.authorization.cancel()

    def _end(self, state: str, reason: str) -> None:
        """Record why an unfinished sign-in ended, such as by timeout."""
        if (pending := self._pending.pop(state, None)) is not None:
            self._set_failure(pending.server.name, reason)

    def _set_failure(self, name: str, reason: str) -> None:
        if reason != self.failure_of(name):
            self._failures.pop(name, None)
            if reason:
                self._failures[name] = reason
            self._on_change()

    async def _begun(self, server: HttpServer, redirect: str) -> Authorization:
        authorization_type = await asyncio.to_thread(_import_authorization)
        known = await asyncio.to_thread(self._sign_ins.load, server.name, trust_key_of(server))
        authorization = authorization_type(server, redirect=redirect, known=known)
        await authorization.begin()
        return authorization

    async def finish(self, name: str, answer: ProviderAnswer, *, person: str, browser_key: str) -> None:
        """Complete a sign-in with the provider's answer, and start the server with it.

        A sign-in of another person or browser is left unchanged.

        Raises
        ------
        SignInError
            If it ended, or was not begun by this person in this browser for this server at its present address; or the
            provider denied it.
        UnknownServerError, ServerConfigurationError
            If the server cannot be used any more, or the sign-in cannot be stored.
        ToolServerError
            If the provider issues no token.
        """
        pending = self._pending.get(answer.state)
        if pending is None or pending.server.name != name:
            raise SignInError(f"this sign-in is over, or was never begun here: {_AGAIN}")
        if pending.person != person or not hmac.compare_digest(pending.browser_key.encode(), browser_key.encode()):
            raise SignInError(f"this sign-in was begun by somebody else, or in another browser: {_AGAIN}")
        if trust_key_of(self._servers.http_server(name)) != trust_key_of(pending.server):
            raise SignInError(f"the address of `{name}` has changed since you began: {_AGAIN}")
        del self._pending[answer.state]
        try:
            await self._keep(name, answer, pending.authorization)
        except AgentBoxError as error:
            self._set_failure(name, str(error))
            raise
        # Not a restart: that would cut off a call that starts meanwhile, which already has the new token.
        await self._servers.stop(name)
        in_background(self._start(name), what=f"starting the MCP server {name}")

    async def _keep(self, name: str, answer: ProviderAnswer, authorization: Authorization) -> None:
        if answer.error or not answer.code:
            authorization.cancel()
            raise SignInError(f"the provider did not sign you in to `{name}`: {_reason(answer)}")
        found = await authorization.finish(code=answer.code, state=answer.state, issuer=answer.issuer)
        try:
            await asyncio.to_thread(self._sign_ins.keep, name, found)
        except OSError as error:
            raise ServerConfigurationError(f"the sign-in to `{name}` could not be kept: {error.strerror}") from None

    async def sign_out(self, name: str) -> None:
        """Forget the sign-in to a server, here and at its provider; stop the server.

        Raises
        ------
        UnknownServerError, ServerConfigurationError, ToolServerError
        """
        server = self._servers.http_server(name)
        self._set_failure(name, "")
        revoke = await asyncio.to_thread(_import_revoke)
        found = await asyncio.to_thread(self._sign_ins.load, name, trust_key_of(server))
        try:
            await asyncio.to_thread(self._sign_ins.forget, name)
        except OSError as error:
            raise ServerConfigurationError(
                f"the sign-in to `{name}` could not be forgotten: {error.strerror}"
            ) from None
        await self._servers.signed_out(name)  # before notifying the provider, which may take a while
        if found is not None:
            await revoke(server, found)

    def close(self) -> None:
        """Abandon all sign-ins in progress."""
        for pending in [*self._pending.values()]:
            pending.authorization.cancel()

    async def _start(self, name: str) -> None:
        await self._servers.start(name)


def _reason(answer: ProviderAnswer) -> str:
    """Return why there is no code. `access_denied` means that the person pressed *Cancel*."""
    if answer.error == "access_denied":
        return "it was cancelled there, or denied"
    return answer.error[:_LONGEST_REASON] or "it sent no code"


def _import_authorization() -> type[Authorization]:
    # Late, and in a thread: see `import_connections`.
    from jupyter_agentbox.mcp_client.authorization import Authorization  # noqa: PLC0415

    return Authorization


def _import_revoke() -> Callable[[HttpServer, SignIn], Awaitable[object]]:
    # Late, and in a thread: see `import_connections`.
    from jupyter_agentbox.mcp_client.token_requests import revoke  # noqa: PLC0415

    return revoke
