"""A person's sign-in to an MCP server with the SDK's OAuth client: to the provider's page, and back with a code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, OAuthFlowError, OAuthTokenError
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata
from mcp_types import LATEST_PROTOCOL_VERSION
from pydantic import AnyUrl, ValidationError

from jupyter_agentbox.exceptions import ServerConfigurationError, SignInError, ToolServerError

from .configuration import HttpServer
from .oauth_context import InMemoryTokenStorage, dumped, sign_in_of
from .provider_addresses import LOOPBACK, is_safe_address, may_lead_to
from .provider_client import LONGEST_STEP, origin_of, provider_client
from .response_body import drop_body
from .sign_ins import SignIn
from .trust_keys import trust_key_of

#: The client name with which this program registers at a provider.
CLIENT_NAME: Final = "Jupyter AgentBox"
#: How long a person may take to return from the provider's page, in seconds.
TIME_TO_SIGN_IN: Final = 600.0
_LONGEST_REASON: Final = 300
_LONGEST_ADDRESS: Final = 8_000
#: Parameters of the authorization URL that must occur once, with this program's values.
_OURS: Final = ("response_type", "client_id", "redirect_uri", "state", "code_challenge", "code_challenge_method")


class Authorization:
    """A sign-in in progress: to the provider's page, and back with a code.

    Parameters
    ----------
    server : HttpServer
        The server to sign in to.
    redirect : str
        The redirect address.
    known : SignIn or None
        An earlier sign-in, whose client registration is reused.

    Attributes
    ----------
    address : str
        The authorization URL, after `begin`.
    state : str
        The state that the provider returns with the code; secret.
    """

    def __init__(self, server: HttpServer, *, redirect: str, known: SignIn | None = None) -> None:
        self._server = server
        self._redirect = redirect
        self._storage = InMemoryTokenStorage(_client_of(server, redirect, known))
        self._context: OAuthContext | None = None
        self._answer: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()
        self._asked = asyncio.Event()
        self._task: asyncio.Task[SignIn] | None = None
        self.address = ""
        self.state = ""

    async def begin(self) -> None:
        """Discover the provider and its authorization URL.

        Raises
        ------
        ServerConfigurationError
            If such a server does not support sign-in.
        ToolServerError
            If the server does not require it, or the provider cannot be found or used.
        """
        if self._server.has_authorization:
            raise ServerConfigurationError(
                f"`{self._server.name}` has an `Authorization` header in its configuration: remove it to sign in"
            )
        if self._server.headers_helper:
            raise ServerConfigurationError(
                f"`{self._server.name}` has a `headersHelper` in its configuration: remove it to sign in"
            )
        if not is_safe_address(self._server.url):
            raise ServerConfigurationError(f"`{self._server.name}` is not reached over https: nobody can sign in to it")
        self._task = asyncio.create_task(self._run(), name=f"sign-in to {self._server.name}")
        # nobody may await it after its timeout; asyncio would then report an unretrieved exception
        self._task.add_done_callback(lambda done: done.cancelled() or done.exception())
        asked = asyncio.create_task(self._asked.wait())
        try:
            done, _ = await asyncio.wait([self._task, asked], timeout=LONGEST_STEP, return_when=asyncio.FIRST_COMPLETED)
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
            If the provider, or the server, rejects it.
        """
        if self._task is None or self._answer.done():
            raise SignInError("this sign-in is over: begin it again")
        self._answer.set_result(AuthorizationCodeResult(code=code, state=state, iss=issuer))
        try:
            async with asyncio.timeout(LONGEST_STEP):
                return await self._task
        except TimeoutError:
            raise ToolServerError(f"signing in to `{self._server.name}` failed: its provider took too long") from None

    def cancel(self) -> None:
        """Abandon the sign-in."""
        if self._task is not None:
            self._task.cancel()

    def on_end(self, callback: Callable[[str], object]) -> None:
        """Call `callback` when the sign-in ends, with the error; empty if it succeeded or was abandoned."""
        if self._task is not None:
            self._task.add_done_callback(lambda task: callback("" if task.cancelled() else str(task.exception() or "")))

    async def _run(self) -> SignIn:
        name = self._server.name
        try:
            async with asyncio.timeout(TIME_TO_SIGN_IN):
                status, context = await self._ask()
        except TimeoutError:
            raise ToolServerError(f"nobody signed in to `{name}` within {TIME_TO_SIGN_IN / 60:.0f} minutes") from None
        # the SDK computes with the provider's claims about a token's lifetime
        except (OAuthFlowError, SignInError, httpx2.HTTPError, httpx2.StreamError, ValueError, OverflowError) as error:
            raise ToolServerError(f"signing in to `{name}` failed: {_reason(error)}") from None
        tokens = self._storage.tokens
        if tokens is None or status == 401:
            raise ToolServerError(f"`{name}` does not accept the token that its provider gave: ask its operator")
        return sign_in_of(
            trust_key_of(self._server),
            tokens,
            dumped(self._storage.client),
            dumped(context.oauth_metadata),
            dumped(context.protected_resource_metadata),
        )

    async def _ask(self) -> tuple[int, OAuthContext]:
        """Send a request without effect, which makes the SDK run its OAuth flow."""
        is_local = urlsplit(self._redirect).hostname in LOOPBACK
        metadata = OAuthClientMetadata(
            client_name=CLIENT_NAME,
            redirect_uris=[AnyUrl(self._redirect)],
            application_type="native" if is_local else "web",
        )
        provider = _FirstSignIn(
            self._server.url,
            metadata,
            self._storage,
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
            raise SignInError("the provider does not bind codes to whoever asks for them (PKCE)")
        # the endpoint may have a query, after which the SDK adds a second question mark
        address = address.replace("?response_type=code&", "&response_type=code&") if address.count("?") > 1 else address
        if self._server.oauth.scopes:
            address = _with(address, "scope", " ".join(self._server.oauth.scopes))
        names = [name for name, _ in parse_qsl(urlsplit(address).query)]
        is_ours = all(names.count(name) == 1 for name in _OURS) and len(address) <= _LONGEST_ADDRESS
        if not is_ours or urlsplit(address).fragment or not may_lead_to(self._server.url, address):
            raise SignInError(f"the provider's page is not used: {origin_of(address)}")
        self.address = address
        self.state = dict(parse_qsl(urlsplit(address).query))["state"]
        self._asked.set()

    async def _wait(self) -> AuthorizationCodeResult:
        return await self._answer


class _FirstSignIn(OAuthClientProvider):
    """The SDK's client, starting the flow even if a server accepts any connection and refuses only calls."""

    async def async_auth_flow(self, request: httpx2.Request) -> Any:
        flow = super().async_auth_flow(request)
        is_first = True
        try:
            outgoing = await flow.__anext__()
            while True:
                response = yield outgoing
                if is_first and response.status_code != 401:
                    await drop_body(response)
                    response = httpx2.Response(401, request=request)
                is_first = False
                outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()


def _client_of(server: HttpServer, redirect: str, known: SignIn | None) -> OAuthClientInformationFull | None:
    """Return this program's registration at the provider, if there is one."""
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
    # Jupyter's port changes, and a registration is for exactly one redirect address.
    return registered if registered.redirect_uris and AnyUrl(redirect) in registered.redirect_uris else None


def _with(address: str, key: str, value: str) -> str:
    parts = urlsplit(address)
    query = [(name, old) for name, old in parse_qsl(parts.query, keep_blank_values=True) if name != key]
    return parts._replace(query=urlencode([*query, (key, value)])).geturl()


def _reason(error: Exception) -> str:
    """Return why it failed, without the provider's response, which may contain tokens or codes."""
    if isinstance(error, OAuthTokenError):
        return "the provider did not give a token for the code"
    if isinstance(error, ValidationError):
        return "an answer of the provider is malformed"
    return str(error).partition("\n")[0][:_LONGEST_REASON] or type(error).__name__
