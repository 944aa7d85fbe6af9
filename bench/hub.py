"""``python -m bench.hub load`` and ``… kill``: the Hub service with many users, and while it is killed again and again.

The service is a process of its own; a table of names stands where JupyterHub would be asked. Clients speak MCP over
HTTP as users' servers do, and an approver logs in as a browser does.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from http.cookies import SimpleCookie
from io import BytesIO
from pathlib import Path
from typing import Any

import psutil
from tornado import web
from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest, HTTPResponse
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

from jupyter_agentbox.storage.audit_log import SqlAuditLog

PREFIX = "/services/agentbox/"
SCOPE = "access:services!service=agentbox"
COMMAND = Path(sys.executable).with_name("jupyter-agentbox")
TOOL = Path(__file__).with_name("hub_tool.py")
#: Seconds that anything may take.
WAIT = 120.0
RESUME = 60.0
POLICY = {
    "rules": [
        {"effect": "allow", "server": "bench", "tool": "allowed"},
        {"effect": "ask", "server": "bench", "tool": "asked", "approvers": {"group": "approvers"}},
    ],
    "mcpServers": {"bench": {"command": sys.executable, "args": [str(TOOL)], "env": {"RUNS": "${RUNS}"}}},
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


class Service:
    """The service in a process that can be killed, and the Hub that it asks.

    Parameters
    ----------
    directory : Path
        Where all is kept.
    database_url : str
        The store; empty for a SQLite file.
    """

    def __init__(self, directory: Path, database_url: str) -> None:
        self.runs = directory / "runs"
        self.runs.touch()
        self.database_url = database_url or f"sqlite:///{directory / 'hub.sqlite'}"
        self._directory = directory
        self._hub = HTTPServer(
            web.Application([("/hub/api/user", UserHandler), ("/hub/api/oauth2/token", TokenHandler)])
        )
        (listening,) = bind_sockets(0, "127.0.0.1")
        self._hub.add_sockets([listening])
        with bind_sockets(0, "127.0.0.1")[0] as free:
            address = f"http://127.0.0.1:{free.getsockname()[1]}"
        self.url = address + PREFIX
        self._environment = {
            **os.environ,
            "RUNS": str(self.runs),
            "JUPYTERHUB_API_TOKEN": "service",
            "JUPYTERHUB_API_URL": f"http://127.0.0.1:{listening.getsockname()[1]}/hub/api",
            "JUPYTERHUB_CLIENT_ID": "service-agentbox",
            "JUPYTERHUB_SERVICE_NAME": "agentbox",
            "JUPYTERHUB_SERVICE_PREFIX": PREFIX,
            "JUPYTERHUB_SERVICE_URL": address,
        }
        (directory / "policy.json").write_text(json.dumps(POLICY))
        self.process: subprocess.Popen[bytes] | None = None

    async def start(self, *options: str) -> None:
        """Start it, with more options of its command, and wait until it can be used."""
        command = [str(COMMAND), "hub", f"--policy={self._directory / 'policy.json'}"]
        command += [f"--HubService.database_url={self.database_url}", f"--HubService.resume_timeout={RESUME}"]
        with (self._directory / "log").open("ab") as log:
            self.process = subprocess.Popen([*command, "--log-level=WARN", *options], env=self._environment, stderr=log)
        async with asyncio.timeout(WAIT):
            while (await self.ask("health/ready")).code != 200:
                if self.process.poll() is not None:
                    raise RuntimeError((self._directory / "log").read_text())
                await asyncio.sleep(0.05)

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

    @property
    def memory(self) -> float:
        """Its memory in MB."""
        return float(psutil.Process(self.process.pid if self.process else None).memory_info().rss / 1e6)

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


class Approver:
    """A browser in which an approver logged in."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._cookies: SimpleCookie = SimpleCookie()

    async def get(self, path: str) -> HTTPResponse:
        """Open a page, and keep its cookies."""
        answer = await self._service.ask(path, Cookie=self._sent())
        for line in answer.headers.get_list("Set-Cookie"):
            self._cookies.load(line)
        return answer

    async def log_in(self) -> None:
        """Log in, as the Hub would let them."""
        self._cookies = SimpleCookie()
        login = await self.get("")
        state = re.search(r"state=([^&]+)", login.headers.get("Location", ""))
        if state is not None:
            await self.get(f"oauth_callback?code=approver&state={state[1]}")
            await self.get("")

    async def allow_all(self) -> int:
        """Allow all that waits; return how many they were."""
        listed = await self.get("api/requests")
        if listed.code == 403:
            await self.log_in()
            listed = await self.get("api/requests")
        if listed.code != 200:
            return 0
        pending = json.loads(listed.body)["pending"]
        answers = [
            {"id": one["id"], "decision": "allow_once", "digest": one["call"]["digest"]} for one in pending[:500]
        ]
        xsrf = self._cookies["_xsrf"].value if "_xsrf" in self._cookies else ""
        if answers:
            await self._service.ask("api/decisions", {"decisions": answers}, Cookie=self._sent(), X_XSRFToken=xsrf)
        return len(answers)

    def _sent(self) -> str:
        return "; ".join(f"{one.key}={one.value}" for one in self._cookies.values())


async def call(service: Service, user: str, tool: str, id: str, waiting: asyncio.Event | None = None) -> str:
    """Call a tool, and come back for the answer as often as it takes; return what the caller knows of it then."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {"id": id}}}
    last, until = "", time.monotonic() + WAIT
    while time.monotonic() < until:
        text = b""

        def take(data: bytes) -> None:
            nonlocal text
            text += data
            if waiting is not None and b"\nretry:" in text:
                waiting.set()

        request = HTTPRequest(
            f"{service.url}mcp/bench",
            method="GET" if last else "POST",
            body=None if last else json.dumps(body),
            headers={"Authorization": f"Bearer {user}", **({"Last-Event-ID": last} if last else {})},
            streaming_callback=take,
            connect_timeout=WAIT,
            request_timeout=WAIT,
        )
        code = 599
        try:
            code = (await AsyncHTTPClient().fetch(request, raise_error=False)).code
        except ConnectionRefusedError:  # it never got there
            await asyncio.sleep(0.2)
            continue
        except (HTTPClientError, OSError):
            pass
        found = re.search(rb'data: (\{"jsonrpc": "2.0", "id".*)', text)
        if found is not None:
            return "failed" if json.loads(found[1])["result"]["isError"] else "succeeded"
        if code not in (200, 599):
            return f"refused with {code}"
        begun = re.search(rb"id: (\S+)\n", text)
        if begun is None and not last:
            return "broken before it could come back"
        last = last or (begun[1].decode() if begun is not None else "")
        await asyncio.sleep(0.2)
    return "no answer"


@asynccontextmanager
async def running(database_url: str) -> AsyncIterator[Service]:
    """Start the service in a directory of its own."""
    AsyncHTTPClient.configure(None, max_clients=5000)
    with tempfile.TemporaryDirectory() as directory:
        service = Service(Path(directory), database_url)
        try:
            await service.start()
            yield service
        finally:
            service.end()


def p95(seconds: Sequence[float]) -> float:
    """Return the 95th percentile in milliseconds."""
    return 1000 * statistics.quantiles(seconds, n=20)[-1]


async def load(arguments: argparse.Namespace) -> int:
    """Let users call at a rate, then let requests wait and list them."""
    async with running(arguments.database) as service:
        users, seconds = [f"user{number}" for number in range(arguments.users)], list[float]()
        before = service.memory
        await asyncio.gather(*(call(service, user, "allowed", "first") for user in users))

        async def timed(number: int) -> str:
            began = time.perf_counter()
            became = await call(service, users[number % len(users)], "allowed", str(number))
            seconds.append(time.perf_counter() - began)
            return became

        began, calls = time.monotonic(), []
        for number in range(int(arguments.rate * arguments.seconds)):
            await asyncio.sleep(max(0.0, began + number / arguments.rate - time.monotonic()))
            calls.append(asyncio.create_task(timed(number)))
        became = Counter(await asyncio.gather(*calls))
        metrics = (await service.ask("metrics", Authorization="Bearer approver")).body.decode()
        own = [float(re.search(rf"tool_seconds_{name}\S* (\S+)", metrics)[1]) for name in ("sum", "count")]  # type: ignore[index]  # it ran
        after = service.memory
        print(f"{len(calls)} calls of {len(users)} users at {arguments.rate:g} a second: {dict(became)}")
        print(f"  whole call: median {1000 * statistics.median(seconds):.1f} ms, p95 {p95(seconds):.1f} ms")
        print(f"  of it the tool, on average: {1000 * own[0] / own[1]:.1f} ms")
        print(f"  memory: {before:.0f} MB, then {after:.0f} MB: {(after - before) / len(users):.2f} MB per user")

        waits = [asyncio.Event() for _ in range(arguments.waiting)]
        asked = [
            asyncio.create_task(call(service, users[number % len(users)], "asked", f"w{number}", event))
            for number, event in enumerate(waits)
        ]
        await asyncio.gather(*(event.wait() for event in waits))
        times = []
        for _ in range(20):
            began = time.perf_counter()
            await service.ask("api/requests", Authorization="Bearer approver")
            times.append(time.perf_counter() - began)
        print(f"  {arguments.waiting} waiting requests are listed in {1000 * statistics.median(times):.0f} ms")
        approver = Approver(service)
        began = time.perf_counter()
        while await approver.allow_all():
            pass
        became = Counter(await asyncio.gather(*asked))
        print(f"  all are allowed, and have run, after {time.perf_counter() - began:.1f} s: {dict(became)}")
    return 0


async def kill(arguments: argparse.Namespace) -> int:
    """Kill the service again and again while users call and an approver allows; say what was lost or ran twice."""
    async with running(arguments.database) as service:
        approver, became, number = Approver(service), dict[str, str](), 0
        ended, works = asyncio.Event(), asyncio.Event()

        async def user(name: str) -> None:
            nonlocal number
            while not ended.is_set():
                number += 1
                id = f"{name}-{number}"
                became[id] = await call(service, name, random.choice(("allowed", "asked", "asked")), id)
                await asyncio.sleep(random.random() / 10)

        async def approve() -> None:
            while not ended.is_set():
                if await approver.allow_all():
                    works.set()
                await asyncio.sleep(random.random() / 5)

        users = [asyncio.create_task(user(f"user{one}")) for one in range(arguments.users)]
        approving = asyncio.create_task(approve())
        for _ in range(arguments.times):
            async with asyncio.timeout(WAIT):
                await works.wait()  # else most kills would come before anybody was asked
            await asyncio.sleep(random.random() * arguments.pause)
            service.kill()
            works.clear()
            await service.start()
        ended.set()
        await approving
        while not all(one.done() for one in users):  # what still waits is answered
            await approver.allow_all()
            await asyncio.wait(users, timeout=0.5)
        for one in users:
            one.result()

        ran = Counter(service.runs.read_text().split())
        record = [json.loads(line) for line in (await approver.get("api/audit")).body.splitlines()]
        log = SqlAuditLog(service.database_url)
        broken = (await log.verify()).broken
        await log.aclose()
        recorded = {one["call"]["arguments"]["id"]: one for one in record if one["status"] == "approved"}
        problems = {
            "ran twice": [id for id, times in ran.items() if times > 1],
            "succeeded for its caller, and did not run": [
                id for id, one in became.items() if one == "succeeded" and id not in ran
            ],
            "ran, and the record does not say so": [id for id in ran if id not in recorded],
            "has no answer": [id for id, one in became.items() if one == "no answer"],
        }
        print(
            f"{arguments.times} kills, {len(became)} calls of {arguments.users} users: {dict(Counter(became.values()))}"
        )
        print(f"  {sum(ran.values())} ran; {len(record)} records; the chain {'is broken' if broken else 'holds'}")
        for problem, ids in problems.items():
            print(f"  {problem}: {len(ids)} {' '.join(ids[:5])}")
    return 1 if broken or any(problems.values()) else 0


def main() -> int:
    """Run one of the two, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench.hub", description=__doc__)
    parser.add_argument("what", choices=("load", "kill"))
    parser.add_argument("--database", default="", help="URL of an empty database; by default a SQLite file")
    parser.add_argument("--users", type=int, default=200)
    parser.add_argument("--rate", type=float, default=50.0, help="calls a second")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--waiting", type=int, default=2000, help="requests that wait")
    parser.add_argument("--times", type=int, default=100, help="how often the service is killed")
    parser.add_argument("--pause", type=float, default=1.0, help="the most seconds from an answer to a kill")
    arguments = parser.parse_args()
    return asyncio.run((load if arguments.what == "load" else kill)(arguments))


if __name__ == "__main__":
    sys.exit(main())
