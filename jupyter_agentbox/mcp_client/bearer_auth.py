"""Sends a sign-in's token with each request, and renews it silently.

Nothing here waits for a person while code calls a tool.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import httpx2
from mcp.client.auth.utils import extract_field_from_www_auth

from jupyter_agentbox.exceptions import ToolServerError

from .configuration import HttpServer
from .provider_addresses import is_safe_address
from .response_body import drop_body
from .sign_ins import SignIn, SignInStore
from .token_requests import refresh, revoke
from .trust_keys import trust_key_of

_log = logging.getLogger(__name__)
#: How long before its expiry a token is renewed, in seconds.
_MARGIN: Final = 30.0
#: How long, in seconds, to wait for another renewal of the same sign-in; below, the time between two attempts.
_LONGEST_RENEWAL: Final = 70.0
_PAUSE: Final = 0.05


class SignedIn(httpx2.Auth):
    """Sends a sign-in's token with each request; renews it before it expires, and once when it is refused.

    Parameters
    ----------
    server : HttpServer
        The server. Tokens of a sign-in to another address are not sent to it.
    sign_ins : SignInStore
        Stores the sign-ins.
    on_secret : callable
        Called with each secret value.

    Attributes
    ----------
    is_signed_in : bool
        Whether there is a token to send.
    was_signed_in : bool
        Whether there was one.
    how_to_sign_in, how_to_get_rights : str
        What people do to sign in, and to sign in with rights that their sign-in lacks.
    """

    def __init__(self, server: HttpServer, sign_ins: SignInStore, *, on_secret: Callable[[str], None]) -> None:
        self._server = server
        self._sign_ins = sign_ins
        self._on_secret = on_secret
        self._trust_key = trust_key_of(server)
        self._lock = asyncio.Lock()
        self._sign_in: SignIn | None = None
        self._unkept: SignIn | None = None
        self._renewals: set[asyncio.Task[SignIn | None]] = set()
        self.is_signed_in = False
        self.was_signed_in = False
        self.how_to_sign_in = sign_ins.how_to_sign_in
        self.how_to_get_rights = sign_ins.how_to_get_rights

    async def load(self) -> None:
        """Load the stored sign-in, which may have changed since: somebody signed in, or out."""
        found = await asyncio.to_thread(self._sign_ins.load, self._server.name, self._trust_key)
        self._set(found if is_safe_address(self._server.url) else None)

    async def async_auth_flow(self, request: httpx2.Request) -> Any:
        """Send a request with the current token."""
        used = await self._current()
        if used is None:
            yield request
            return
        request.headers["Authorization"] = _bearer(used)
        response = yield request
        if response.status_code != 401:
            return
        renewed = await self._renewed(used)
        if renewed is not None:
            await drop_body(response)
            request.headers["Authorization"] = _bearer(renewed)
            yield request  # the server did not recognize the client, and so did nothing

    async def _current(self) -> SignIn | None:
        found = self._sign_in
        if found is not None and found.expires_at is not None and time.time() > found.expires_at - _MARGIN:
            return await self._renewed(found) or self._sign_in
        return found

    async def _renewed(self, used: SignIn) -> SignIn | None:
        """Return the successor of a token that is refused or about to expire, if there is one.

        Runs in a separate task: a provider accepts each refresh token once, and a cancelled call must not lose the next
        one.
        """
        task = asyncio.create_task(self._renew(used))
        self._renewals.add(task)
        task.add_done_callback(self._renewals.discard)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(task)

    async def _renew(self, used: SignIn) -> SignIn | None:
        async with self._lock:
            if self._sign_in is not None and self._sign_in.tokens != used.tokens:
                return self._sign_in
            async with self._alone():
                # another process of this user may have renewed it; each refresh token works once
                await self._load_again()
                if self._sign_in is None or self._sign_in.tokens != used.tokens:
                    return self._sign_in
                if not used.tokens.get("refresh_token"):
                    return None
                renewed = await refresh(self._server, used)
                kept = await asyncio.to_thread(self._replace, used, renewed)
                self._set(kept)
                if kept is None and renewed is not None:  # somebody signed out, and the provider knows only the old one
                    await revoke(self._server, renewed)
                return kept

    async def _load_again(self) -> None:
        """Load the stored sign-in within a request, which fails alone, and is not sent, if that is impossible.

        A renewed sign-in that could not be stored is stored first: the stored one has a refresh token that was used.
        """
        if self._unkept is not None and self._sign_in is not None:
            await asyncio.to_thread(self._replace, self._unkept, self._sign_in)
        try:
            await self.load()
        except ToolServerError as error:
            raise httpx2.ConnectError(str(error)) from None

    @contextlib.asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Hold the lock under which only one process of this user renews the sign-in.

        One that holds it longer than a renewal takes is not waited for. No thread waits: whoever holds the lock needs
        one to go on, and there may be no more.
        """
        name, until = self._server.name, time.monotonic() + _LONGEST_RENEWAL
        while (let_go := await asyncio.to_thread(self._sign_ins.begin_renewal, name)) is None:
            if time.monotonic() > until:
                break
            await asyncio.sleep(_PAUSE)
        try:
            yield
        finally:
            if let_go is not None:
                let_go()

    def _set(self, found: SignIn | None) -> None:
        self._sign_in = found
        self.is_signed_in = found is not None
        self.was_signed_in = self.was_signed_in or self.is_signed_in
        for key in ("access_token", "refresh_token"):
            if found is not None and found.tokens.get(key):
                self._on_secret(str(found.tokens[key]))

    def _replace(self, used: SignIn, renewed: SignIn | None) -> SignIn | None:
        try:
            kept = self._sign_ins.replace(self._server.name, used, renewed)
        except OSError as error:
            _log.warning("the renewed sign-in to %s could not be kept: %s", self._server.name, error.strerror)
            self._unkept = self._unkept or used
            return renewed
        self._unkept = None
        return kept


def _bearer(sign_in: SignIn) -> str:
    return f"Bearer {sign_in.tokens.get('access_token')}"


def missing_scope(response: httpx2.Response) -> str | None:
    """Return the scopes that a token lacks according to the server (RFC 6750), if it says so."""
    if response.status_code != 403 or extract_field_from_www_auth(response, "error") != "insufficient_scope":
        return None
    return extract_field_from_www_auth(response, "scope") or ""
