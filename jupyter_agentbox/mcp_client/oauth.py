"""Signing in to MCP servers with the SDK's OAuth client, and sending what a sign-in gave.

A person signs in once (`Authorization`); after that each request carries the token, which is renewed without a word
(`SignedIn`). Nothing here waits for a person while code calls a tool.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, cast
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, OAuthFlowError, OAuthTokenError
from mcp.client.auth.oauth2 import OAuthContext
from mcp.client.auth.utils import extract_field_from_www_auth
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from mcp_types import LATEST_PROTOCOL_VERSION
from pydantic import AnyUrl, ValidationError

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.exceptions import ServerConfigurationError, SignInError, ToolServerError

from .configuration import HttpServer
from .provider_addresses import LOOPBACK, is_safe_address, may_lead_to
from .response_body import CappedBody
from .sign_ins import SignIn, SignIns
from .trust_keys import trust_key_of

_log = logging.getLogger(__name__)

#: As what this program registers itself with a provider.
CLIENT_NAME: Final = "Jupyter AgentBox"
#: Seconds for one request to a provider.
_PATIENCE: Final = 30.0
#: Seconds that a person may take between the button and the way back from the provider.
TIME_TO_SIGN_IN: Final = 600.0
#: The longest answer of a provider that is read, in bytes.
_LONGEST_ANSWER: Final = 1_000_000
#: A token is renewed so many seconds before its end.
_MARGIN: Final = 30.0
#: Seconds for all requests to a provider between two steps of a person's: one that answers bit by bit is given up.
_LONGEST_STEP: Final = 60.0
#: Seconds in which a provider can be told that somebody signed out.
_LONGEST_GOODBYE: Final = 10.0
_LONGEST_REASON: Final = 300
_LONGEST_ADDRESS: Final = 8_000
_LONGEST_TOKEN: Final = 32_000
#: Seconds for which a token is believed to last at most: a year.
_LONGEST_LIFE: Final = 366 * 86_400
#: What the address of a provider's page has once, and from here.
_OURS: Final = ("response_type", "client_id", "redirect_uri", "state", "code_challenge", "code_challenge_method")


def _stay_silent(record: logging.LogRecord) -> bool:
    del record
    return False


# The SDK logs what it could not read, and that can be a token. What went wrong is told here, in words of our own.
for _name in ("mcp.client.auth.oauth2", "mcp.client.auth.utils"):
    logging.getLogger(_name).addFilter(_stay_silent)


class SignedIn(httpx2.Auth):
    """Sends the token of a sign-in with each request, and renews it: before it ends, and once when it is refused.

    Parameters
    ----------
    server : HttpServer
        The server: what a sign-in to another address gave is not sent to it.
    sign_ins : SignIns
        Where sign-ins are kept.
    on_secret : callable
        Gets each value that must not be shown.

    Attributes
    ----------
    is_signed_in : bool
        Whether there is a token to send.
    was_signed_in : bool
        Whether there was one.
    """

    def __init__(self, server: HttpServer, sign_ins: SignIns, *, on_secret: Callable[[str], None]) -> None:
        self._server = server
        self._sign_ins = sign_ins
        self._on_secret = on_secret
        self._trust_key = trust_key_of(server)
        self._lock = asyncio.Lock()
        self._sign_in: SignIn | None = None
        self._renewals: set[asyncio.Task[SignIn | None]] = set()
        self.is_signed_in = False
        self.was_signed_in = False

    async def load(self) -> None:
        """Read what is kept, which may have changed since: somebody signed in, or out."""
        found = await asyncio.to_thread(self._sign_ins.load, self._server.name, self._trust_key)
        self._set(found if is_safe_address(self._server.url) else None)

    async def async_auth_flow(self, request: httpx2.Request) -> Any:
        """Send a request with the token that holds."""
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
            await _drop_body(response)
            request.headers["Authorization"] = _bearer(renewed)
            yield request  # the server did nothing: it did not know who asked

    async def _current(self) -> SignIn | None:
        found = self._sign_in
        if found is not None and found.expires_at is not None and time.time() > found.expires_at - _MARGIN:
            return await self._renewed(found) or self._sign_in
        return found

    async def _renewed(self, used: SignIn) -> SignIn | None:
        """Return what came after a token that is refused or about to end; ``None`` if nothing can.

        In a task of its own: a provider takes each refresh token once, and a call that is cancelled meanwhile must not
        lose the next one.
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
                await self.load()  # another process of this user may have renewed it, and a provider takes each once
                if self._sign_in is None or self._sign_in.tokens != used.tokens:
                    return self._sign_in
                if not used.tokens.get("refresh_token"):
                    return None
                renewed = await _refresh(self._server, used)
                self._set(await asyncio.to_thread(self._replace, used, renewed))
                return self._sign_in

    @contextlib.asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """Wait until no other process of this user renews the same sign-in."""
        let_go = await asyncio.to_thread(self._sign_ins.begin_renewal, self._server.name)
        try:
            yield
        finally:
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
            return self._sign_ins.replace(self._server.name, used, renewed)
        except OSError as error:
            _log.warning("the renewed sign-in to %s could not be kept: %s", self._server.name, error.strerror)
            return renewed


async def _drop_body(response: httpx2.Response) -> None:
    """Read nothing of an answer after which another request follows: the client would read all of it."""
    await cast(httpx2.AsyncByteStream, response.stream).aclose()
    response.stream = httpx2.ByteStream(b"")


def _bearer(sign_in: SignIn) -> str:
    return f"Bearer {sign_in.tokens.get('access_token')}"


async def _refresh(server: HttpServer, used: SignIn) -> SignIn | None:
    """Ask the provider for the next token; ``None`` if it says that the sign-in has ended.

    Raises
    ------
    httpx2.ConnectError
        If the provider does not answer. The request that waits for it is not sent.
    """
    try:
        async with asyncio.timeout(_LONGEST_STEP):
            answer = await _ask_for_next(server, used)
        if answer.status_code >= 500 or answer.status_code == 429:
            raise httpx2.ConnectError(f"the sign-in could not be renewed: HTTP {answer.status_code}")
        if answer.status_code != 200:
            return None
        token = _checked(OAuthToken.model_validate_json(answer.content))
        before = OAuthToken.model_validate(used.tokens)
    except (ValidationError, OAuthTokenError):
        return None
    except TimeoutError:
        raise httpx2.ConnectError("the sign-in could not be renewed: its provider took too long") from None
    except (httpx2.HTTPError, httpx2.StreamError, SignInError) as error:
        raise httpx2.ConnectError(f"the sign-in could not be renewed: {error}") from None
    token.scope = token.scope or before.scope
    token.refresh_token = token.refresh_token or before.refresh_token
    return _sign_in(used.trust_key, token, used.client, used.provider, used.resource)


async def _ask_for_next(server: HttpServer, used: SignIn) -> httpx2.Response:
    context = _context(server, used)
    data = {
        "grant_type": "refresh_token",
        "refresh_token": str(used.tokens["refresh_token"]),
        "client_id": str(used.client.get("client_id", "")),
    }
    if context.should_include_resource_param(LATEST_PROTOCOL_VERSION):
        data["resource"] = context.get_resource_url()
    data, headers = context.prepare_token_auth(data, {"Accept": "application/json"})
    async with provider_client(server) as client:
        return await client.post(_token_endpoint(server, context), data=data, headers=headers)


def _checked(token: OAuthToken) -> OAuthToken:
    """Return a token that can be sent, with a life that can be reckoned with.

    Raises
    ------
    OAuthTokenError
        If it is none: RFC 6750 has printable ASCII, and nothing else gets into a header whole.
    """
    for value in (token.access_token, token.refresh_token or "none"):
        if not 0 < len(value) <= _LONGEST_TOKEN or not value.isascii() or not value.isprintable() or " " in value:
            raise OAuthTokenError("the provider gave a token that cannot be sent")
    if token.expires_in is not None:
        token.expires_in = min(max(token.expires_in, 0), _LONGEST_LIFE)
    return token


def _context(server: HttpServer, sign_in: SignIn) -> OAuthContext:
    context = OAuthContext(
        server_url=server.url,
        client_metadata=OAuthClientMetadata(redirect_uris=None),
        storage=_Notes(None),
        redirect_handler=None,
        callback_handler=None,
    )
    context.client_info = OAuthClientInformationFull.model_validate(sign_in.client)
    context.oauth_metadata = OAuthMetadata.model_validate(sign_in.provider) if sign_in.provider else None
    if sign_in.resource:
        context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(sign_in.resource)
    return context


def _token_endpoint(server: HttpServer, context: OAuthContext) -> str:
    if context.oauth_metadata is not None:
        return str(context.oauth_metadata.token_endpoint)
    return f"{context.get_authorization_base_url(server.url)}/token"


async def revoke(server: HttpServer, found: SignIn) -> None:
    """Ask the provider of a sign-in that was forgotten here to do so too, if it offers that.

    One that does not answer, or not soon, is not waited for.
    """
    # Whatever it says: what was kept is gone.
    with contextlib.suppress(httpx2.HTTPError, httpx2.StreamError, SignInError, OAuthTokenError, ValidationError):
        context = _context(server, found)
        endpoint = context.oauth_metadata.revocation_endpoint if context.oauth_metadata is not None else None
        kind = "refresh_token" if found.tokens.get("refresh_token") else "access_token"
        if endpoint is None or not found.tokens.get(kind):
            return
        data = {
            "token": str(found.tokens[kind]),
            "token_type_hint": kind,
            "client_id": str(found.client.get("client_id", "")),
        }
        data, headers = context.prepare_token_auth(data, {})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LONGEST_GOODBYE), provider_client(server) as client:
                await client.post(str(endpoint), data=data, headers=headers)


@contextlib.asynccontextmanager
async def provider_client(server: HttpServer, **options: Any) -> AsyncIterator[httpx2.AsyncClient]:
    """Open a client that asks only addresses to which the server may lead, and reads no endless answer."""

    async def check(request: httpx2.Request) -> None:
        url = str(request.url)
        if not may_lead_to(server.url, url):
            raise SignInError(f"`{server.name}` names an address to sign in at that is not used: {_origin(url)}")

    async def bound(response: httpx2.Response) -> None:
        response.stream = CappedBody(response.stream, cap=_LONGEST_ANSWER)

    hooks: dict[str, Any] = {"request": [check], "response": [bound]}
    async with httpx2.AsyncClient(
        timeout=_PATIENCE, event_hooks=hooks, headers={"Accept-Encoding": "identity"}, **options
    ) as client:
        yield client


class _Notes:
    """What the SDK's client is given to begin with, and what it gives back: nothing is kept before all went well."""

    def __init__(self, client: OAuthClientInformationFull | None) -> None:
        self.client = client
        self.tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = _checked(tokens)  # before it is sent: the SDK's next step

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class _FirstSignIn(OAuthClientProvider):
    """The SDK's client, which begins also where a server lets anybody connect and refuses only calls."""

    async def async_auth_flow(self, request: httpx2.Request) -> Any:
        flow = super().async_auth_flow(request)
        is_first = True
        try:
            outgoing = await flow.__anext__()
            while True:
                response = yield outgoing
                if is_first and response.status_code != 401:
                    await _drop_body(response)
                    response = httpx2.Response(401, request=request)
                is_first = False
                outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()


class Authorization:
    """One sign-in on its way: to the provider's page, and back with a code.

    Parameters
    ----------
    server : HttpServer
        What to sign in to.
    redirect : str
        Where the provider sends the person back to.
    known : SignIn or None
        An earlier sign-in, as whose client this program is known to the provider.

    Attributes
    ----------
    address : str
        The provider's page, once `begin` has returned.
    state : str
        What the provider sends back with the code: nobody else knows it.
    """

    def __init__(self, server: HttpServer, *, redirect: str, known: SignIn | None = None) -> None:
        self._server = server
        self._redirect = redirect
        self._notes = _Notes(_client_of(server, redirect, known))
        self._context: OAuthContext | None = None
        self._answer: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()
        self._asked = asyncio.Event()
        self._task: asyncio.Task[SignIn] | None = None
        self.address = ""
        self.state = ""

    async def begin(self) -> None:
        """Find the provider and the address of its page.

        Raises
        ------
        ServerConfigurationError
            If nobody can sign in to such a server.
        ToolServerError
            If the server does not ask for that, or the provider cannot be found or used.
        """
        if self._server.has_authorization:
            raise ServerConfigurationError(
                f"`{self._server.name}` has an `Authorization` header in its configuration: remove it to sign in"
            )
        if not is_safe_address(self._server.url):
            raise ServerConfigurationError(f"`{self._server.name}` is not reached over https: nobody can sign in to it")
        self._task = asyncio.create_task(self._run(), name=f"sign-in to {self._server.name}")
        # nobody may be waiting when its time is over; without a look asyncio reports that as lost
        self._task.add_done_callback(lambda done: done.cancelled() or done.exception())
        asked = asyncio.create_task(self._asked.wait())
        try:
            done, _ = await asyncio.wait(
                [self._task, asked], timeout=_LONGEST_STEP, return_when=asyncio.FIRST_COMPLETED
            )
        except asyncio.CancelledError:
            self.cancel()
            raise
        finally:
            asked.cancel()
        if self._task.done():
            self._task.result()  # raises: without the provider's page there is no token
        if not done:
            self.cancel()
            raise ToolServerError(f"signing in to `{self._server.name}` failed: its provider took too long")

    async def finish(self, *, code: str, state: str, issuer: str | None) -> SignIn:
        """Exchange the code for tokens.

        Raises
        ------
        ToolServerError
            If the provider, or the server, does not take it.
        """
        if self._task is None or self._answer.done():
            raise SignInError("this sign-in is over: begin it again")
        self._answer.set_result(AuthorizationCodeResult(code=code, state=state, iss=issuer))
        try:
            async with asyncio.timeout(_LONGEST_STEP):
                return await self._task
        except TimeoutError:
            raise ToolServerError(f"signing in to `{self._server.name}` failed: its provider took too long") from None

    def cancel(self) -> None:
        """Give it up."""
        if self._task is not None:
            self._task.cancel()

    def on_end(self, callback: Callable[[], None]) -> None:
        """Call when it is over, however it ended."""
        if self._task is not None:
            self._task.add_done_callback(lambda _: callback())

    async def _run(self) -> SignIn:
        name = self._server.name
        try:
            async with asyncio.timeout(TIME_TO_SIGN_IN):
                status, context = await self._ask()
        except TimeoutError:
            raise ToolServerError(f"nobody signed in to `{name}` in time") from None
        # the SDK reckons with what a provider says of a token's life
        except (OAuthFlowError, SignInError, httpx2.HTTPError, httpx2.StreamError, ValueError, OverflowError) as error:
            raise ToolServerError(f"signing in to `{name}` failed: {_reason(error)}") from None
        tokens = self._notes.tokens
        if tokens is None or status == 401:
            raise ToolServerError(f"`{name}` does not take the token that its provider gave")
        return _sign_in(
            trust_key_of(self._server),
            tokens,
            _dump(self._notes.client),
            _dump(context.oauth_metadata),
            _dump(context.protected_resource_metadata),
        )

    async def _ask(self) -> tuple[int, OAuthContext]:
        """Send what has no effect; what comes before its answer is the SDK's flow."""
        is_local = urlsplit(self._redirect).hostname in LOOPBACK
        metadata = OAuthClientMetadata(
            client_name=CLIENT_NAME,
            redirect_uris=[AnyUrl(self._redirect)],
            application_type="native" if is_local else "web",
        )
        provider = _FirstSignIn(
            self._server.url,
            metadata,
            self._notes,
            redirect_handler=self._show,
            callback_handler=self._wait,
        )
        self._context = provider.context
        headers = {
            **self._server.headers,
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": LATEST_PROTOCOL_VERSION,
        }
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        async with (
            provider_client(self._server, auth=provider) as client,
            client.stream("POST", self._server.url, json=ping, headers=headers) as response,
        ):
            return response.status_code, provider.context

    async def _show(self, address: str) -> None:
        metadata = self._context.oauth_metadata if self._context is not None else None
        methods = metadata.code_challenge_methods_supported if metadata is not None else None
        if methods is not None and "S256" not in methods:
            raise SignInError("the provider does not bind codes to who asks for them (PKCE)")
        # its endpoint may have parameters of its own; the SDK puts a second question mark after them
        address = address.replace("?response_type=code&", "&response_type=code&") if address.count("?") > 1 else address
        if self._server.oauth.scopes:
            address = _with(address, "scope", " ".join(self._server.oauth.scopes))
        names = [name for name, _ in parse_qsl(urlsplit(address).query)]
        is_ours = all(names.count(name) == 1 for name in _OURS) and len(address) <= _LONGEST_ADDRESS
        if not is_ours or urlsplit(address).fragment or not may_lead_to(self._server.url, address):
            raise SignInError(f"the provider's page is not used: {_origin(address)}")
        self.address = address
        self.state = dict(parse_qsl(urlsplit(address).query))["state"]
        self._asked.set()

    async def _wait(self) -> AuthorizationCodeResult:
        return await self._answer


def _client_of(server: HttpServer, redirect: str, known: SignIn | None) -> OAuthClientInformationFull | None:
    """Return as whom the provider knows this program; ``None`` if it does not."""
    configured = server.oauth
    if configured.client_id is not None:
        return OAuthClientInformationFull(
            client_id=configured.client_id,
            client_secret=configured.client_secret,
            redirect_uris=[AnyUrl(redirect)],
            token_endpoint_auth_method="client_secret_basic" if configured.client_secret else "none",
        )
    if known is None or known.trust_key != trust_key_of(server):
        return None
    try:
        registered = OAuthClientInformationFull.model_validate(known.client)
    except ValidationError:
        return None
    # Jupyter's port changes, and a registration is for exactly one address to come back to.
    return registered if registered.redirect_uris and AnyUrl(redirect) in registered.redirect_uris else None


def _sign_in(
    trust_key: str, token: OAuthToken, client: JsonObject, provider: JsonObject | None, resource: JsonObject | None
) -> SignIn:
    return SignIn(
        trust_key=trust_key,
        tokens=_dump(token),
        expires_at=None if token.expires_in is None else time.time() + token.expires_in,
        client=client,
        provider=provider,
        resource=resource,
    )


def _dump(model: Any) -> JsonObject:
    return {} if model is None else cast(JsonObject, model.model_dump(mode="json", exclude_none=True))


def _with(address: str, key: str, value: str) -> str:
    parts = urlsplit(address)
    query = [(name, old) for name, old in parse_qsl(parts.query, keep_blank_values=True) if name != key]
    return parts._replace(query=urlencode([*query, (key, value)])).geturl()


def _origin(url: str) -> str:
    """Return what may be shown of an address: not its query, which has secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}"


def _reason(error: Exception) -> str:
    """Return why it failed, without what a provider answered: that may have tokens or codes."""
    if isinstance(error, OAuthTokenError):
        return "the provider did not give a token for the code"
    if isinstance(error, ValidationError):
        return "an answer of the provider is malformed"
    return str(error).partition("\n")[0][:_LONGEST_REASON] or type(error).__name__


def missing_scope(response: httpx2.Response) -> str | None:
    """Return the rights that a server says a token lacks (RFC 6750); ``None`` if it does not say that."""
    if response.status_code != 403 or extract_field_from_www_auth(response, "error") != "insufficient_scope":
        return None
    return extract_field_from_www_auth(response, "scope") or ""
