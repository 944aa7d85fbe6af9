"""The Hub service in processes of its own, and a table of names where JupyterHub would be asked."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
from tornado import web
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest, HTTPResponse
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

from tests.ports import kept_port

PREFIX = "/services/agentbox/"
SCOPE = "access:services!service=agentbox"
#: The credential of the service at the Hub.
TOKEN = "token-of-the-service"
COMMAND = Path(sys.executable).with_name("jupyter-agentbox")
TOOL = Path(__file__).with_name("hub_tool.py")
#: Seconds that anything may take.
WAIT = 240.0
RESUME = 60.0
#: Seconds between two looks at who is ready.
_LOOK = 0.3
POLICY = {
    "rules": [
        {"effect": "allow", "server": "*", "tool": "allowed"},
        {"effect": "ask", "server": "*", "tool": "asked", "approvers": {"group": "approvers"}},
    ],
    "mcpServers": {
        "bench": {"command": sys.executable, "args": [str(TOOL)], "env": {"RUNS": "${RUNS}"}},
        "slow": {"command": sys.executable, "args": [str(TOOL)], "env": {"RUNS": "${RUNS}", "SECONDS": "0.05"}},
    },
    "auditors": ["approvers"],
}


class UserHandler(web.RequestHandler):
    """Says whose token it is: the name of a user; ``session:`` before it is of a login."""

    def get(self) -> None:
        """Answer as the Hub does."""
        token = self.request.headers["Authorization"].split()[1]
        name = token.removeprefix("session:")
        groups = ["approvers"] if name == "approver" else []
        session = f"s-{name}" if token != name else None
        self.finish(
            {"name": name, "kind": "user", "groups": groups, "scopes": [SCOPE], "session_id": session, "token_id": name}
        )


class TokenHandler(web.RequestHandler):
    """Gives a token for the code of a login."""

    def post(self) -> None:
        """Answer as the Hub does."""
        self.finish({"access_token": f"session:{self.get_body_argument('code')}", "token_type": "Bearer"})


class Place:
    """An address at which the service is, or a way to it.

    Parameters
    ----------
    url : str
        With the service's prefix.
    """

    def __init__(self, url: str) -> None:
        self.url = url

    async def ask(self, path: str, body: Any = None, **headers: str) -> HTTPResponse:
        """Ask; 599 is the status where nobody answers."""
        request = HTTPRequest(
            self.url + path,
            method="GET" if body is None else "POST",
            body=None if body is None else json.dumps(body),
            headers={name.replace("_", "-"): value for name, value in headers.items()},
            follow_redirects=False,
            connect_timeout=WAIT,
            request_timeout=WAIT,
        )
        try:
            return await AsyncHTTPClient().fetch(request, raise_error=False)
        except (HTTPClientError, OSError):
            return HTTPResponse(request, 599, buffer=BytesIO())


class Service(Place):
    """The service in a process that can be killed, and the Hub that it asks.

    Parameters
    ----------
    directory : Path
        Where all is kept.
    database_url : str
        The store; empty for a SQLite file.
    runs : Path or None
        The file in which tools note that they ran; by default one in `directory`.
    """

    def __init__(self, directory: Path, database_url: str, runs: Path | None = None) -> None:
        self._kept = ExitStack()
        address = f"http://127.0.0.1:{self._kept.enter_context(kept_port())}"
        super().__init__(address + PREFIX)
        self.runs = runs or directory / "runs"
        self.runs.touch()
        self.database_url = database_url or f"sqlite:///{directory / 'hub.sqlite'}"
        self._directory = directory
        self._hub = HTTPServer(
            web.Application([("/hub/api/user", UserHandler), ("/hub/api/oauth2/token", TokenHandler)])
        )
        (listening,) = bind_sockets(0, "127.0.0.1")
        self._hub.add_sockets([listening])
        self._environment = {
            **os.environ,
            "RUNS": str(self.runs),
            "JUPYTERHUB_API_TOKEN": TOKEN,
            "JUPYTERHUB_API_URL": f"http://127.0.0.1:{listening.getsockname()[1]}/hub/api",
            "JUPYTERHUB_CLIENT_ID": "service-agentbox",
            "JUPYTERHUB_SERVICE_NAME": "agentbox",
            "JUPYTERHUB_SERVICE_PREFIX": PREFIX,
            "JUPYTERHUB_SERVICE_URL": address,
        }
        (directory / "policy.json").write_text(json.dumps(POLICY))
        self.process: subprocess.Popen[bytes] | None = None
        self.profile: Path | None = None  # where its profile is written at its end

    def launch(self, *options: str) -> None:
        """Start it, with more options of its command."""
        profiled = [sys.executable, "-m", "bench.hub_profile", str(self.profile)]
        command = [
            *(profiled if self.profile else (str(COMMAND), "hub")),
            f"--policy={self._directory / 'policy.json'}",
        ]
        command += [f"--HubService.database_url={self.database_url}", f"--HubService.resume_timeout={RESUME}"]
        command += [] if any("log-level" in option for option in options) else ["--log-level=WARN"]
        with (self._directory / "log").open("ab") as log:
            self.process = subprocess.Popen([*command, *options], env=self._environment, stderr=log)

    async def start(self, *options: str) -> None:
        """Start it, and wait until it can be used."""
        self.launch(*options)
        await self.until(200)

    async def until(self, code: int) -> Any:
        """Wait until it says that it can be used, or not; return the answer."""
        assert self.process is not None
        async with asyncio.timeout(WAIT):
            while (answer := await self.ask("health/ready")).code != code:
                if self.process.poll() is not None:
                    raise RuntimeError((self._directory / "log").read_text())
                await asyncio.sleep(0.05)
        return json.loads(answer.body)

    def kill(self) -> None:
        """End it at once."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def end(self) -> None:
        """End it as a signal does, and the Hub."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
        self._hub.stop()
        self._kept.close()

    @property
    def memory(self) -> float:
        """Its memory in MB."""
        return float(psutil.Process(self.process.pid if self.process else None).memory_info().rss / 1e6)


class Address(Place):
    """One address for several replicas, as that of a Service in Kubernetes: it leads to one that is ready.

    Parameters
    ----------
    replicas : sequence of Service
        The replicas.
    """

    def __init__(self, replicas: Sequence[Service]) -> None:
        self._replicas = replicas
        (self._socket,) = bind_sockets(0, "127.0.0.1")
        self.origin = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        super().__init__(self.origin + PREFIX)
        self._ready: Service | None = None
        self._looking: asyncio.Task[None] | None = None
        self._server: asyncio.Server | None = None
        self._passing: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Listen, and look all the time who is ready."""
        self._server = await asyncio.start_server(self._pass, sock=self._socket)
        self._looking = asyncio.create_task(self._look())

    async def aclose(self) -> None:
        """Listen no more, and break what is connected."""
        tasks = [*self._passing, *([] if self._looking is None else [self._looking])]
        if self._server is not None:
            self._server.close()
        for one in tasks:
            one.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look(self) -> None:
        while True:
            asked = await asyncio.gather(*(one.ask("health/ready") for one in self._replicas))
            pairs = zip(self._replicas, asked, strict=True)
            self._ready = next((one for one, answer in pairs if answer.code == 200), None)
            await asyncio.sleep(_LOOK)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._passing.add(task)
        try:
            replica = self._ready
            if replica is None:
                return
            place = urlsplit(replica.url)
            there_reader, there_writer = await asyncio.open_connection(place.hostname, place.port)
            try:
                ways = [_copy(reader, there_writer), _copy(there_reader, writer)]
                tasks = [asyncio.ensure_future(way) for way in ways]
                try:
                    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for one in tasks:
                        one.cancel()
            finally:
                there_writer.close()
        except OSError:
            pass  # as where nobody listens
        finally:
            self._passing.discard(task)
            writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
