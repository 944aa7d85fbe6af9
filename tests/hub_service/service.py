"""The Hub service in this process, with a table of tokens where a JupyterHub would be asked."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jupyterhub.services.auth import HubOAuth
from tornado.httpclient import AsyncHTTPClient, HTTPResponse
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import create_signed_value

from jupyter_agentbox.core.ports import Clock
from jupyter_agentbox.hub.box import HubBox
from jupyter_agentbox.hub.composition import Settings, build
from jupyter_agentbox.hub.policy_file import PolicyFile, read_policy_file
from jupyter_agentbox.hub.policy_signing import PolicySigner, read_key, version_of
from jupyter_agentbox.hub.web_application import make_application
from jupyter_agentbox.mcp_client.configuration import Configuration, HttpServer
from jupyter_agentbox.mcp_client.limits import ServerLimits
from jupyter_agentbox.mcp_client.servers import McpServers
from jupyter_agentbox.storage.approvals import sqlite_url
from jupyter_agentbox.storage.retention import RetentionLimits
from jupyter_agentbox.system import SystemClock

PREFIX = "/services/agentbox/"
SCOPE = "access:services!service=agentbox"
#: What a token or a login session has besides `SCOPE`, by what it begins with. One that begins with ``narrow:`` has
#: nothing at all.
MORE_SCOPES = {
    "keeper:": ["custom:agentbox:hold"],
    "reader:": ["custom:agentbox:audit"],
    "forger:": ["custom:agentbox:audi", "custom:agentbox:audit2", "custom:agentbox", "audit", "admin:users"],
    "part:": ["custom:agentbox:audit!user=eve", "custom:agentbox:audit!server=eve/"],
}
#: Seconds that anything may take which has to happen: a busy machine is slow.
TIMEOUT = 60
WAREHOUSE = Path(__file__).parent / "warehouse.py"

#: The name of each user, and their groups.
USERS = {
    "ada": ["analysts"],
    "bob": ["data-stewards"],
    "cleo": ["data-stewards"],
    "dan": ["data-stewards", "auditors"],
    "eve": [],
}
#: The services of the Hub.
SERVICES = ("collector",)


def a_policy(*rules: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return a policy with a central server, whose credential is the service's."""
    entry = {"command": sys.executable, "args": [str(WAREHOUSE)], "env": {"WAREHOUSE_KEY": "${KEY}"}}
    return {"rules": list(rules), "mcpServers": {"warehouse": entry}, "auditors": ["auditors"], **more}


def ask(tool: str = "*", **approvers: Any) -> dict[str, Any]:
    """Return a rule that asks about a tool; approvers, if it names a group."""
    rule: dict[str, Any] = {"effect": "ask", "server": "warehouse", "tool": tool}
    return {**rule, "approvers": approvers} if approvers else rule


class TableHub(HubOAuth):
    """Asks a table instead of a Hub. A token is a user's name; of a login session it begins with ``session:``."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._said: dict[tuple[str, str], dict[str, Any]] = {}
        #: The token and the browser's session of each question that the cache did not answer.
        self.asked: list[tuple[str, str]] = []

    def user_for_token(self, token: str, use_cache: bool = True, *, session_id: str = "", **_: Any) -> Any:
        """Return a coroutine of whose token it is."""

        async def found() -> dict[str, Any] | None:
            key = token, session_id
            if use_cache and key in self._said:
                return self._said[key]
            self.asked.append(key)
            bare = token.removeprefix("session:")
            prefix = next((one for one in ("narrow:", *MORE_SCOPES) if bare.startswith(one)), "")
            name = bare.removeprefix(prefix)
            if name not in (*USERS, *SERVICES):
                return None
            self._said[key] = {
                "name": name,
                "kind": "service" if name in SERVICES else "user",
                "groups": USERS.get(name, []),
                "scopes": [] if prefix == "narrow:" else [SCOPE, *MORE_SCOPES.get(prefix, [])],
                "session_id": f"s-{name}" if token.startswith("session:") else None,
                "token_id": f"t-{name}",
            }
            return self._said[key]

        return found()


class Service:
    """The running service.

    Parameters
    ----------
    url : str
        Where it is.
    box : HubBox
        Its parts.
    database : Path
        Its store.
    hub : TableHub
        What it takes for the Hub.
    """

    def __init__(self, url: str, box: HubBox, database: Path, cookie_secret: bytes, hub: TableHub) -> None:
        self.hub = hub
        self.url = url
        self.box = box
        self.database = database
        self._cookie_secret = cookie_secret

    def cookie(self, token: str) -> str:
        """Return the cookie of a browser in which somebody logged in, if `token` is one of a login session."""
        signed = create_signed_value(self._cookie_secret, "service-agentbox", token)
        return f"service-agentbox={signed.decode()}"

    async def get(self, path: str = "", *, token: str = "", session: str = "", cookie: str = "") -> HTTPResponse:
        """Ask with a token, or as a browser in which a user logged in."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if session or cookie:
            headers["Cookie"] = cookie or self.cookie(f"session:{session}")
        return await _fetch(f"{self.url}{path}", headers=headers)

    async def fetch(self, path: str, headers: Mapping[str, str]) -> HTTPResponse:
        """Read a path with these headers."""
        return await _fetch(f"{self.url}{path}", headers=dict(headers))

    async def json(self, path: str, **who: str) -> Any:
        """Return the JSON of an answer."""
        answer = await self.get(path, **who)
        assert answer.code == 200, answer.body
        return json.loads(answer.body)

    async def pending(self, user: str) -> list[Any]:
        """Return what waits and a user may see."""
        found: list[Any] = (await self.json("api/requests", token=user))["pending"]
        return found

    async def decide(self, request: Any, user: str, answer: str = "allow_once", **body: Any) -> tuple[int, Any]:
        """Decide as a script of a page in a user's browser would."""
        given = {"decision": answer, "digest": request["call"]["digest"], **body}
        return await self.post_as(user, f"api/requests/{request['id']}/decision", given)

    async def post_as(self, user: str, path: str, body: Any) -> tuple[int, Any]:
        """Send what a script of a page in a user's browser would; return the status and the JSON of the answer."""
        page = await self.get(session=user)
        xsrf = SimpleCookie(page.headers["Set-Cookie"])["_xsrf"].value
        answered = await _fetch(
            self.url + path,
            method="POST",
            body=json.dumps(body),
            headers={"Cookie": f"{self.cookie(f'session:{user}')}; _xsrf={xsrf}", "X-XSRFToken": xsrf},
        )
        return answered.code, json.loads(answered.body)

    async def post(self, path: str, body: Any, headers: Mapping[str, str]) -> tuple[int, Any]:
        """Send anything; return the status and the JSON of the answer."""
        answer = await self.send(path, body, headers)
        return answer.code, json.loads(answer.body) if answer.body.startswith(b"{") else answer.body.decode()

    async def send(self, path: str, body: Any, headers: Mapping[str, str]) -> HTTPResponse:
        """Send anything; return the whole answer."""
        text = body if isinstance(body, str) else json.dumps(body)
        return await _fetch(f"{self.url}{path}", method="POST", body=text, headers=dict(headers))

    async def press(self, request: Any, user: str, button: str, reason: str = "") -> HTTPResponse:
        """Press a button of a request's page."""
        form = [("answer", button), ("digest", request["call"]["digest"]), ("reason", reason)]
        return await self.send_form(f"requests/{request['id']}", user, form)

    async def send_form(self, path: str, user: str, form: Sequence[tuple[str, str]]) -> HTTPResponse:
        """Send a form of a page in a user's browser."""
        page = await self.get(session=user)
        xsrf = SimpleCookie(page.headers["Set-Cookie"])["_xsrf"].value
        return await _fetch(
            f"{self.url}{path}",
            method="POST",
            body=urlencode([*form, ("_xsrf", xsrf)]),
            headers={"Cookie": f"{self.cookie(f'session:{user}')}; _xsrf={xsrf}"},
        )

    @asynccontextmanager
    async def tools_of(
        self, user: str, server: str = "warehouse", token: str = "", hub_service: str | None = None
    ) -> AsyncIterator[McpServers]:
        """Connect as the Jupyter server of a user does, which knows where the service is, or takes another for it."""
        entry = HttpServer(
            name=server, url=f"{self.url}mcp/{server}", headers={"Authorization": f"Bearer {token or user}"}
        )
        configuration = Configuration(servers={server: entry})

        class Source:
            def load(self) -> Configuration:
                return configuration

        address = self.url if hub_service is None else hub_service
        servers = McpServers(source=Source(), limits=ServerLimits(), hub_service=address)
        try:
            yield servers
        finally:
            await servers.aclose()


def listening() -> socket.socket:
    """Return a socket that listens at a free port."""
    (found,) = bind_sockets(0, "127.0.0.1", family=socket.AF_INET)
    return found


async def _fetch(url: str, **request: Any) -> HTTPResponse:
    return await AsyncHTTPClient().fetch(
        url, raise_error=False, follow_redirects=False, connect_timeout=TIMEOUT, request_timeout=TIMEOUT, **request
    )


def signer_of(directory: Path, policy: PolicyFile, clock: Clock | None = None) -> PolicySigner | None:
    """Return what signs a policy, with the key and the version that are kept in a directory."""
    local = policy.policy_to_sign({"KEY": "service-secret"}, waits=60)
    if local is None:
        return None
    clock = clock or SystemClock()
    version = version_of(directory / "key.version", local, clock.now())
    return PolicySigner(policy=local, version=version, key=read_key(directory / "key"), clock=clock)


@asynccontextmanager
async def running_service(
    directory: Path,
    policy: Mapping[str, Any],
    *,
    at: socket.socket | None = None,
    clock: Clock | None = None,
    knows_address: bool = False,
    **settings: Any,
) -> AsyncIterator[Service]:
    """Start the service; end it as a signal does. Where it listens is its own to close."""
    mine = listening() if at is None else None
    at = mine if at is None else at
    assert at is not None
    url = f"http://127.0.0.1:{at.getsockname()[1]}{PREFIX}"
    path = directory / "policy.json"
    path.write_text(json.dumps(policy))
    database = directory / "hub.sqlite"
    given: dict[str, Any] = {
        "database_url": sqlite_url(str(database)),
        "approval_timeout": 60.0,
        "most_calls": 50,
        "idle_timeout": 60.0,
        "call_rate": 1000.0,  # what waits for its turn would make tests slow
        "retention": RetentionLimits(),
        "public_url": url if knows_address else PREFIX,
        **settings,
    }
    environment = {"KEY": "service-secret", "PATH": "/usr/bin:/bin"}
    policy_file = read_policy_file(path, environment)
    box = build(Settings(**given), policy_file, environment)
    try:
        await box.start()
    except BaseException:
        if mine is not None:
            mine.close()
        raise
    hub_auth = TableHub(api_token="service", base_url=PREFIX, access_scopes={SCOPE}, oauth_client_id="service-agentbox")
    box.policy.begin_signing(lambda policy: signer_of(directory, policy, clock))
    application = make_application(box, hub_auth, url)
    server = HTTPServer(application)
    server.add_sockets([at])
    try:
        yield Service(url, box, database, application.settings["cookie_secret"], hub_auth)
    finally:
        server.stop()
        await box.aclose()
        await server.close_all_connections()
