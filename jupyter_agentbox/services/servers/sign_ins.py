"""Sign-ins to MCP servers that are on their way: each belongs to the person and the browser that began it."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from jupyter_agentbox.background import in_background
from jupyter_agentbox.core.ports import Ids
from jupyter_agentbox.core.tools import ServerStatus
from jupyter_agentbox.exceptions import AgentBoxError, ServerConfigurationError, SignInError, TooManyRequestsError
from jupyter_agentbox.mcp_client.configuration import HttpServer
from jupyter_agentbox.mcp_client.sign_ins import SignIn, SignIns
from jupyter_agentbox.mcp_client.trust_keys import trust_key_of

if TYPE_CHECKING:
    from jupyter_agentbox.mcp_client.authorization import Authorization

#: As many may be on their way at the same time.
MOST: Final = 20
_LONGEST_REASON: Final = 100
_AGAIN: Final = "press *Sign in* in JupyterLab again"


class SignInServers(Protocol):
    """What is used of the MCP servers."""

    def http_server(self, name: str) -> HttpServer:
        """Return a server to which people may sign in."""

    async def stop(self, name: str) -> ServerStatus:
        """Stop the server until its next use."""

    async def start(self, name: str) -> ServerStatus:
        """Start the server unless it runs."""

    async def signed_out(self, name: str) -> None:
        """Stop a server whose sign-in was forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A sign-in that was begun.

    Parameters
    ----------
    address : str
        The provider's page.
    state : str
        What names the sign-in: the provider sends it back.
    browser_key : str
        What the browser has to show on the way back: only that one has it.
    """

    address: str = field(repr=False)
    state: str = field(repr=False)
    browser_key: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderAnswer:
    """What a browser brings back from the provider. All of it can be anybody's.

    Parameters
    ----------
    state : str
        Names the sign-in.
    code : str
        What the tokens are given for.
    issuer : str or None
        Who the provider says it is.
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
    """Lets people sign in to MCP servers and out again.

    Parameters
    ----------
    servers : SignInServers
        The MCP servers.
    sign_ins : SignIns
        Where sign-ins are kept.
    ids : Ids
        Makes what nobody can guess.
    on_change : callable
        Called when a sign-in failed, or the last failure is over.
    """

    def __init__(
        self,
        *,
        servers: SignInServers,
        sign_ins: SignIns,
        ids: Ids,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._servers = servers
        self._sign_ins = sign_ins
        self._ids = ids
        self._on_change = on_change
        self._failures: dict[str, str] = {}
        self._pending: dict[str, _Pending] = {}
        self._beginning = 0

    async def begin(self, name: str, *, person: str, redirect: str) -> Begun:
        """Find the provider of a server. An earlier sign-in of the same person to it is given up.

        Parameters
        ----------
        name : str
            The server.
        person : str
            Who signs in.
        redirect : str
            Where the provider sends them back to: checked by the caller.

        Raises
        ------
        UnknownServerError, ServerConfigurationError, ToolServerError
        TooManyRequestsError
            If others have begun too many.
        """
        server = self._servers.http_server(name)
        self.cancel(name, person=person)
        self._set_failure(name, "")
        if len(self._pending) + self._beginning >= MOST:
            raise TooManyRequestsError(f"{MOST} sign-ins have been begun and not ended: wait some minutes")
        self._beginning += 1
        try:
            authorization = await self._begun(server, redirect)
        finally:
            self._beginning -= 1
        state = authorization.state
        begun = Begun(address=authorization.address, state=state, browser_key=self._ids.new())
        self._pending[state] = _Pending(
            server=server, person=person, browser_key=begun.browser_key, authorization=authorization
        )
        authorization.on_end(lambda reason: self._end(state, reason))
        return begun

    def failure_of(self, name: str) -> str:
        """Return why the last sign-in to a server came to nothing; empty if none did since one was begun."""
        return self._failures.get(name, "")

    def cancel(self, name: str, *, person: str) -> None:
        """Give up what a person has begun for a server: its provider's answer is not taken any more."""
        for state, pending in [*self._pending.items()]:
            if (pending.server.name, pending.person) == (name, person):
                del self._pending[state]
                pending.authorization.cancel()

    def _end(self, state: str, reason: str) -> None:
        """Say why a sign-in is over that nobody finished, such as one whose time is over."""
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
        """Take what the provider sent, and start the server with it.

        A sign-in that is somebody else's, or another browser's, is left as it is.

        Raises
        ------
        SignInError
            If it is over, or was not begun by this person in this browser for this server; or the provider denied it.
        ToolServerError
            If the provider does not give a token.
        """
        pending = self._pending.get(answer.state)
        if pending is None or pending.server.name != name:
            raise SignInError(f"this sign-in is over, or was never begun here: {_AGAIN}")
        if pending.person != person or not hmac.compare_digest(pending.browser_key.encode(), browser_key.encode()):
            raise SignInError(f"this sign-in was begun by somebody else, or in another browser: {_AGAIN}")
        del self._pending[answer.state]
        try:
            await self._keep(name, answer, pending.authorization)
        except AgentBoxError as error:
            self._set_failure(name, str(error))
            raise
        # Not a restart: that would cut off a call which begins meanwhile, and already has the new token.
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
        """Forget the sign-in to a server, here and at its provider; the server is stopped.

        Raises
        ------
        UnknownServerError, ServerConfigurationError
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
        await self._servers.signed_out(name)  # before the provider is told, which may take its time
        if found is not None:
            await revoke(server, found)

    def close(self) -> None:
        """Give up all that are on their way."""
        for pending in [*self._pending.values()]:
            pending.authorization.cancel()

    async def _start(self, name: str) -> None:
        await self._servers.start(name)


def _reason(answer: ProviderAnswer) -> str:
    """Return why there is no code. `access_denied` is what a provider says of whoever pressed *Cancel* there."""
    if answer.error == "access_denied":
        return "it was cancelled there, or denied"
    return answer.error[:_LONGEST_REASON] or "it sent no code"


def _import_authorization() -> type[Authorization]:
    # Late, and in a thread: see `import_connections`.
    from jupyter_agentbox.mcp_client.authorization import Authorization  # noqa: PLC0415

    return Authorization


def _import_revoke() -> Callable[[HttpServer, SignIn], Awaitable[None]]:
    # Late, and in a thread: see `import_connections`.
    from jupyter_agentbox.mcp_client.token_requests import revoke  # noqa: PLC0415

    return revoke
