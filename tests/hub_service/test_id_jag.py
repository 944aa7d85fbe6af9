"""Tokens of a central server for users who never sign in there: their sign-in to the Hub is exchanged for them."""

from __future__ import annotations

import base64
import json
import logging
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.exceptions import ToolServerError
from jupyter_agentbox.hub.id_jag import read_exchange
from tests.oauth_server import OAuthServer, serving

from .service import running_service
from .test_sign_ins import SERVER, remote, whoami

__all__ = ["remote"]

HUB_TOKEN, SECRET = "token-for-auth-states", "secret:of/the client"
URN = "urn:ietf:params:oauth:"


class Providers:
    """A Hub with what users' sign-ins left there, their identity provider, and the server's authorization server.

    Attributes
    ----------
    members : set of str
        Who may use the server, as the identity provider's administrators say.
    assertions : list of str
        All that the identity provider gave.
    """

    def __init__(self, remote: OAuthServer) -> None:
        self.origin = ""
        self.members = {"ada", "bob"}
        self.assertions: list[str] = []
        self.metadata: dict[str, Any] = {}
        self._remote = remote
        self._open: dict[str, tuple[str, str]] = {}

    def app(self) -> Starlette:
        """Return the application."""
        return Starlette(
            routes=[
                Route("/hub/api/users/{name}", self._user),
                Route("/idp/.well-known/openid-configuration", self._provider),
                Route("/idp/token", self._assert, methods=["POST"]),
                Route("/.well-known/oauth-authorization-server/idp", self._page),
                Route("/.well-known/oauth-authorization-server/as", self._server),
                Route("/as/token", self._give, methods=["POST"]),
            ]
        )

    async def _user(self, asked: Request) -> Response:
        if asked.headers["authorization"] != f"Bearer {HUB_TOKEN}":
            return JSONResponse({"status": 403}, 403)
        return JSONResponse({"auth_state": {"id_token": f"id-token-of-{asked.path_params['name']}"}})

    async def _page(self, _: Request) -> Response:
        """Answer as providers do that have a page for every address."""
        return Response("<p>Sign in</p>", media_type="text/html")

    async def _provider(self, _: Request) -> Response:
        found = {"issuer": f"{self.origin}/idp", "token_endpoint": f"{self.origin}/idp/token"}
        return JSONResponse({**found, **self.metadata})

    async def _server(self, _: Request) -> Response:
        return JSONResponse({"issuer": f"{self.origin}/as", "token_endpoint": f"{self.origin}/as/token"})

    async def _assert(self, asked: Request) -> Response:
        form = dict(await asked.form())
        user = str(form.pop("subject_token")).removeprefix("id-token-of-")
        assert form == {
            "grant_type": f"{URN}grant-type:token-exchange",
            "requested_token_type": f"{URN}token-type:id-jag",
            "subject_token_type": f"{URN}token-type:id_token",
            "audience": f"{self.origin}/as",
            "resource": self._remote.url,
            "scope": "contacts.read",
        }
        pair = base64.b64decode(asked.headers["authorization"].removeprefix("Basic ")).decode()
        if pair != "hub%20client:secret%3Aof%2Fthe%20client":
            return JSONResponse({"error": "invalid_client"}, 401)
        if user not in self.members:
            return JSONResponse({"error": "access_denied", "error_description": f"not {form}"}, 400)
        assertion = f"assertion-{secrets.token_urlsafe(24)}"
        self.assertions.append(assertion)
        self._open[assertion] = user, str(form["resource"])
        return JSONResponse(
            {"access_token": assertion, "issued_token_type": f"{URN}token-type:id-jag", "token_type": "N_A"}
        )

    async def _give(self, asked: Request) -> Response:
        form = dict(await asked.form())
        user, resource = self._open.pop(str(form["assertion"]), ("", ""))
        is_ours = (form["client_id"], form["client_secret"], form["resource"]) == ("agentbox", SECRET, resource)
        if form["grant_type"] != f"{URN}grant-type:jwt-bearer" or not is_ours:
            return JSONResponse({"error": "invalid_grant"}, 400)
        token = f"access-{secrets.token_urlsafe(24)}"
        self._remote.valid[token] = user
        return JSONResponse({"access_token": token, "token_type": "Bearer", "expires_in": 60})


@pytest.fixture
def providers(remote: OAuthServer) -> Iterator[Providers]:
    found = Providers(remote)
    with serving(found.app()) as found.origin:
        yield found


def settings_of(providers: Providers, directory: Path) -> dict[str, Any]:
    (directory / "secret").write_text(f"{SECRET}\n")
    file = str(directory / "secret")
    return {
        "identity_provider": {
            "issuer": f"{providers.origin}/idp", "client_id": "hub client", "client_secret_file": file,
        },
        "authorization_server": {
            "issuer": f"{providers.origin}/as", "client_id": "agentbox", "client_secret_file": file,
            "authentication": "client_secret_post",
        },
        "scopes": ["contacts.read"],
    }  # fmt: skip


def policy_with(remote: OAuthServer, providers: Providers, directory: Path) -> dict[str, Any]:
    (directory / "hub-token").write_text(HUB_TOKEN)
    (directory / "id-jag.json").write_text(json.dumps(settings_of(providers, directory)))
    words = (
        *(sys.executable, "-m", "jupyter_agentbox.cli", "auth-state-headers", "--user=${HUB_USER}", "--key=id_token"),
        f"--api-url={providers.origin}/hub/api",
        f"--token-file={directory}/hub-token",
        f"--id-jag={directory}/id-jag.json",
    )
    servers = {SERVER: {"url": remote.url, "headersHelper": " ".join(words)}}
    return {"rules": [{"effect": "allow", "server": "*", "tool": "*"}], "mcpServers": servers}


async def test_each_user_acts_with_a_token_of_their_own_which_is_renewed_once_it_has_expired(
    tmp_path: Path, remote: OAuthServer, providers: Providers, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with running_service(tmp_path, policy_with(remote, providers, tmp_path)) as service:
        assert await whoami(service, "ada") == "you are ada"
        assert await whoami(service, "bob") == "you are bob"
        first = {**remote.valid}
        remote.valid.clear()  # their minute is over
        assert await whoami(service, "ada") == "you are ada"
    assert sorted(first.values()) == ["ada", "bob"]
    (renewed,) = remote.valid
    log = "\n".join(record.getMessage() for record in caplog.records)
    for secret in (HUB_TOKEN, SECRET, "id-token-of", renewed, *first, *providers.assertions):
        assert secret not in log


async def test_who_is_not_to_use_the_server_gets_no_token_of_it(
    tmp_path: Path, remote: OAuthServer, providers: Providers, caplog: pytest.LogCaptureFixture
) -> None:
    providers.members = {"ada"}
    async with running_service(tmp_path, policy_with(remote, providers, tmp_path)) as service:
        assert await whoami(service, "ada") == "you are ada"
        async with service.tools_of("bob", SERVER) as tools:
            with pytest.raises(ToolServerError, match=r"`headersHelper` ended with status 1$"):
                await tools.call_tool(ToolCall(server=SERVER, tool="whoami", arguments={}))
    assert f"error: {providers.origin}/idp answered 400 (access_denied)" in caplog.text
    assert "id-token-of" not in caplog.text
    assert {*remote.valid.values()} == {"ada"}


async def test_metadata_cannot_lead_the_secret_to_another_host(
    tmp_path: Path, remote: OAuthServer, providers: Providers, caplog: pytest.LogCaptureFixture
) -> None:
    providers.metadata = {"token_endpoint": f"{remote.origin}/token"}
    async with (
        running_service(tmp_path, policy_with(remote, providers, tmp_path)) as service,
        service.tools_of("ada", SERVER) as tools,
    ):
        with pytest.raises(ToolServerError, match=r"`headersHelper` ended with status 1$"):
            await tools.call_tool(ToolCall(server=SERVER, tool="whoami", arguments={}))
    assert "gives tokens at another host: name the `token_endpoint` in the file" in caplog.text
    assert remote.asked == []


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"scope": "all"}, "`scope`: Extra inputs are not permitted"),
        ({"identity_provider": {"issuer": "http://idp.example"}}, "`identity_provider.issuer`: .* begin with https"),
        ({"authorization_server": None}, "`authorization_server`: "),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_the_place(
    tmp_path: Path, providers: Providers, change: dict[str, Any], why: str
) -> None:
    given = settings_of(providers, tmp_path)
    for key, value in change.items():
        given[key] = {**given[key], **value} if isinstance(value, dict) else value
    (tmp_path / "id-jag.json").write_text(json.dumps(given))
    with pytest.raises(ValueError, match=why):
        read_exchange(tmp_path / "id-jag.json")
