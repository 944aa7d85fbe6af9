"""An MCP server that wants people to sign in, and the provider where they do: both over HTTP, in a thread of a test."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request as Asked
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

TOOL = {"name": "whoami", "description": "Say who asks.", "inputSchema": {"type": "object"}}


class OAuthServer:
    """Keeps what was asked of it, so that a test can look.

    Attributes
    ----------
    origin : str
        Where it is; the MCP server is at `/mcp` there.
    bearers : list of str
        The `Authorization` of each request that the MCP server got.
    valid : dict
        Access tokens that it takes, and whose they are.
    refreshable : dict
        Refresh tokens that it takes once, and whose they are.
    expires_in : int
        How long it says that a token lasts.
    token : dict
        What it says of a token instead of what is true.
    missing_scope : str
        What no token may do that the tool needs.
    forbids_calls : bool
        Whether it refuses every call, and does not say why.
    renewal_takes : float
        How long the provider takes to renew a token, in seconds.
    revocation_status : int
        The status of its answer to a revocation. If it is not 200, it revokes nothing.
    revocation_error : str
        The error that this answer then names.
    on_ask : callable
        Called with the path when the provider is asked for a token or told to revoke one, before it does.
    """

    def __init__(self) -> None:
        self.origin = ""
        self.bearers: list[str] = []
        self.valid: dict[str, str] = {}
        self.refreshable: dict[str, str] = {}
        self.clients: dict[str, dict[str, Any]] = {}
        self.expires_in = 3600
        self.issued: list[str] = []
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.metadata: dict[str, Any] = {}
        self.token: dict[str, Any] = {}
        self.on_ask: Callable[[str], object] = lambda _: None
        self.renewal_takes = 0.0
        self.revocation_status = 200
        self.revocation_error = ""
        self.is_down = False
        self.is_open_until_called = False
        self.missing_scope = ""
        self.forbids_calls = False
        self._codes: dict[str, dict[str, str]] = {}

    @property
    def url(self) -> str:
        """The MCP server's."""
        return f"{self.origin}/mcp"

    @property
    def secrets(self) -> list[str]:
        """All that nobody else may see: tokens and secrets of clients."""
        return [*self.issued, *(str(client.get("client_secret", "")) or "none" for client in self.clients.values())]

    def grant(self, address: str, account: str = "ada", **more: str) -> str:
        """Sign in at the provider's page and allow; return where the browser is sent."""
        opener = build_opener(_NoRedirect)
        with opener.open(Request(f"{address}&{urlencode({'account': account, **more})}")) as answer:
            return str(answer.headers["Location"])

    def app(self) -> Starlette:
        """Return the application."""
        return Starlette(
            routes=[
                Route("/mcp", self._mcp, methods=["POST", "GET", "DELETE"]),
                Route("/.well-known/oauth-protected-resource/mcp", self._resource),
                Route("/.well-known/oauth-authorization-server", self._provider),
                Route("/register", self._register, methods=["POST"]),
                Route("/authorize", self._authorize),
                Route("/token", self._token, methods=["POST"]),
                Route("/revoke", self._revoke, methods=["POST"]),
            ]
        )

    async def _mcp(self, asked: Asked) -> Response:
        bearer = asked.headers.get("authorization", "")
        self.bearers.append(bearer)
        account = self.valid.get(bearer.removeprefix("Bearer "))
        message = await asked.json() if asked.method == "POST" else {}
        method = message.get("method", "")
        if account is None and not (self.is_open_until_called and method != "tools/call"):
            where = f'Bearer resource_metadata="{self.origin}/.well-known/oauth-protected-resource/mcp"'
            return JSONResponse({"error": "invalid_token"}, 401, headers={"WWW-Authenticate": where})
        if self.missing_scope and method == "tools/call":
            lacks = f'Bearer error="insufficient_scope", scope="{self.missing_scope}"'
            return JSONResponse({"error": "insufficient_scope"}, 403, headers={"WWW-Authenticate": lacks})
        if self.forbids_calls and method == "tools/call":
            return Response("no", 403)
        if asked.method != "POST":
            return Response(status_code=405 if asked.method == "GET" else 200)
        if "id" not in message:
            return Response(status_code=202)
        results: dict[str, Any] = {
            "initialize": {
                "protocolVersion": message.get("params", {}).get("protocolVersion", "2025-11-25"),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "remote", "version": "1"},
            },
            "tools/list": {"tools": [TOOL]},
            "tools/call": {"content": [{"type": "text", "text": f"you are {account}"}]},
            "ping": {},
        }
        if method not in results:
            error = {"code": -32601, "message": "no such method"}
            return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "error": error})
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": results[method]})

    async def _resource(self, _: Asked) -> Response:
        return JSONResponse({"resource": self.url, "authorization_servers": [self.origin]})

    async def _provider(self, _: Asked) -> Response:
        places = {
            "issuer": self.origin,
            "authorization_endpoint": f"{self.origin}/authorize",
            "token_endpoint": f"{self.origin}/token",
            "registration_endpoint": f"{self.origin}/register",
            "revocation_endpoint": f"{self.origin}/revoke",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
        }
        return JSONResponse({**places, **self.metadata})

    async def _register(self, asked: Asked) -> Response:
        client = {
            **await asked.json(),
            "client_id": f"client-{len(self.clients)}",
            "client_secret": secrets.token_urlsafe(24),
            "token_endpoint_auth_method": "client_secret_basic",
        }
        self.clients[client["client_id"]] = client
        return JSONResponse(client, 201)

    async def _authorize(self, asked: Asked) -> Response:
        query = dict(asked.query_params)
        account = query.pop("account", None)
        if account is None:
            # a page of another origin with buttons: what a person sees of a provider
            links = [
                f'<a href="/authorize?{urlencode({**query, "account": who}).replace("&", "&amp;")}">{text}</a>'
                for who, text in (("ada", "Allow as ada"), ("nobody", "Deny"))
            ]
            return HTMLResponse(f"<title>Provider</title>{' '.join(links)}")
        self.asked.append(("authorize", query))
        answer = {"state": query["state"], "iss": self.origin}
        if account == "nobody":
            answer |= {"error": "access_denied", "error_description": "<b>you said no</b>"}
        else:
            answer["code"] = secrets.token_urlsafe(16)
            self._codes[answer["code"]] = {**query, "account": account}
        return RedirectResponse(f"{query['redirect_uri']}?{urlencode(answer)}", 302)

    async def _token(self, asked: Asked) -> Response:
        form = {key: values[0] for key, values in parse_qs((await asked.body()).decode()).items()}
        self.asked.append((form["grant_type"], form))
        self.on_ask("/token")
        if self.is_down:
            return Response(status_code=503)
        if form["grant_type"] == "refresh_token":
            await asyncio.sleep(self.renewal_takes)
            account = self.refreshable.pop(form["refresh_token"], None)
        else:
            code = self._codes.pop(form["code"], {})
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
            fits = code.get("code_challenge") == challenge and code.get("redirect_uri") == form["redirect_uri"]
            account = code.get("account") if fits else None
        if account is None:
            return JSONResponse({"error": "invalid_grant"}, 400)
        access, refresh = (f"{kind}-{secrets.token_urlsafe(24)}" for kind in ("access", "refresh"))
        self.valid[access], self.refreshable[refresh] = account, account
        self.issued += [access, refresh]
        token = {"access_token": access, "token_type": "Bearer", "refresh_token": refresh}
        return JSONResponse({**token, "expires_in": self.expires_in, **self.token})

    async def _revoke(self, asked: Asked) -> Response:
        form = {key: values[0] for key, values in parse_qs((await asked.body()).decode()).items()}
        self.asked.append(("revoke", form))
        self.on_ask("/revoke")
        if self.revocation_status != 200:
            return JSONResponse({"error": self.revocation_error}, self.revocation_status)
        self.refreshable.pop(form["token"], None)
        return Response()


class _NoRedirect(HTTPRedirectHandler):
    def http_error_302(self, req: Any, fp: Any, code: int, msg: str, headers: Any) -> Any:
        del req, code, msg, headers
        return fp

    http_error_301 = http_error_303 = http_error_307 = http_error_302


@contextmanager
def running_oauth_server() -> Iterator[OAuthServer]:
    """Run one in a thread."""
    remote = OAuthServer()
    with serving(remote.app()) as remote.origin:
        yield remote


@contextmanager
def serving(app: Starlette) -> Iterator[str]:
    """Serve an application in a thread; return its origin."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
    listening = socket.create_server(("127.0.0.1", 0))  # it listens already: nobody is refused
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(60)
        listening.close()


def query_of(url: str) -> dict[str, str]:
    """Return the parameters of an address."""
    return {key: values[0] for key, values in parse_qs(urlsplit(url).query).items()}
