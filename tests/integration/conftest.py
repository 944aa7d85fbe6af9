"""A real Jupyter server in a process of its own, real kernels, real MCP servers."""

from __future__ import annotations

import asyncio
import json
import os
import queue
import secrets
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.asynchronous.client import AsyncKernelClient
from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from jupyter_agentbox.testing import MockModelServer
from tests.ports import KEEP_KERNEL_PORTS, kept_port

TIMEOUT = 60
#: Extensions for pages. JupyterLab and its language servers also run Node at each start.
FRONT_ENDS = ("jupyter_lsp", "jupyterlab", "notebook", "notebook_shim")
APPROVAL_EVENT = "https://events.jupyter-agentbox.org/approval/v1"
KERNEL_EVENT = "https://events.jupyter-agentbox.org/kernel/v1"
#: A Python that has ipykernel 6.30 and this package; tests that take `ipykernel` run on it as well where it is named.
IPYKERNEL_630 = os.environ.get("AGENTBOX_TEST_IPYKERNEL_630")
SHOP = {"command": sys.executable, "args": ["-m", "jupyter_agentbox.demo.shop"]}


@dataclass
class Cell:
    """What a cell printed, what it was worth, and how it failed."""

    stdout: str = ""
    stderr: str = ""
    value: str | None = None
    error: str | None = None
    traceback: list[str] = field(default_factory=list)
    tracebacks: list[list[str]] = field(default_factory=list)
    displays: list[dict[str, Any]] = field(default_factory=list)
    updates: list[dict[str, Any]] = field(default_factory=list)


class Kernel:
    """A kernel of the server, driven over its own sockets as JupyterLab drives it over the websocket."""

    def __init__(self, id: str, connection_file: Path) -> None:
        self.id = id
        self._connection_file = connection_file
        self._connect(connection_file.read_text())
        #: Set when a cell shows something: a card, for instance.
        self.shown = asyncio.Event()
        #: What cells printed, and an event for whoever waits for more.
        self._streamed = ""
        self._told = asyncio.Event()
        self._running = Cell()

    def _connect(self, connection: str) -> None:
        self._connection = connection
        self.client = AsyncKernelClient()
        self.client.load_connection_info(json.loads(connection))
        self.client.start_channels(hb=False)

    def _written_connection(self) -> str | None:
        """Return the content of the connection file; None if it is being replaced, as at a restart on other ports."""
        try:
            written = self._connection_file.read_text()
            json.loads(written)
        except (FileNotFoundError, ValueError):
            return None
        return written

    async def ready(self) -> None:
        """Wait until nothing that the kernel publishes is missed, after a restart, too.

        The sockets connect one by one. `wait_for_ready` takes any output for a sign that this one has, also what the
        kernel said before a restart; here it is one that answers a question of ours.

        Another process may take a port before the kernel does. Then the kernel ends, and starts again on other ports.
        """
        asked: set[str] = set()
        async with asyncio.timeout(TIMEOUT):
            while True:
                written = self._written_connection()
                if written is None:
                    await asyncio.sleep(0.02)
                    continue
                if written != self._connection:
                    self.client.stop_channels()
                    self._connect(written)
                asked.add(self.client.kernel_info())
                with suppress(queue.Empty):
                    while (await self.client.get_iopub_msg(timeout=0.5))["parent_header"].get("msg_id") not in asked:
                        pass
                    return

    async def printed(self, text: str) -> None:
        """Wait until a cell has printed this."""
        while text not in self._streamed:
            self._told.clear()
            await self._told.wait()

    async def shows(self, is_enough: Callable[[Cell], bool]) -> None:
        """Wait until the cell that runs has shown enough."""
        while not is_enough(self._running):
            self._told.clear()
            await self._told.wait()

    async def run(self, code: str, cell_id: str = "cell-1", timeout: float = TIMEOUT) -> Cell:
        """Run a cell to its end and return what came of it."""
        content = {
            "code": code,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": True,
        }
        message = self.client.session.msg("execute_request", content, metadata={"cellId": cell_id})
        self.client.shell_channel.send(message)
        cell = self._running = Cell()
        async with asyncio.timeout(timeout):
            while True:
                told = await self.client.get_iopub_msg()
                if told["parent_header"].get("msg_id") != message["header"]["msg_id"]:
                    continue
                if told["msg_type"] == "status" and told["content"]["execution_state"] == "idle":
                    return cell
                _collect(cell, told)
                if told["msg_type"] == "stream":
                    self._streamed += told["content"]["text"]
                self._told.set()
                if cell.displays:
                    self.shown.set()


def _collect(cell: Cell, told: dict[str, Any]) -> None:
    content = told["content"]
    if told["msg_type"] == "stream":
        setattr(cell, content["name"], getattr(cell, content["name"]) + content["text"])
    elif told["msg_type"] == "execute_result":
        cell.value = content["data"]["text/plain"]
    elif told["msg_type"] == "display_data":
        cell.displays.append(content["data"])
    elif told["msg_type"] == "update_display_data":
        cell.updates.append(content["data"])
    elif told["msg_type"] == "error":
        cell.error = f"{content['ename']}: {content['evalue']}"
        cell.traceback = content["traceback"]
        cell.tracebacks.append(cell.traceback)


class Server:
    """A Jupyter server with the extension, and a person at it."""

    following: asyncio.Task[None]

    def __init__(self, root: Path, process: asyncio.subprocess.Process, url: str, token: str) -> None:
        self.root = root
        self.process = process
        self.url = url
        self.token = token
        self._events: WebSocketClientConnection | None = None

    async def api(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Ask the REST API; return the status code and the answer."""
        request = HTTPRequest(
            f"{self.url}{path}",
            method=method,
            headers={"Authorization": f"token {self.token}", "Content-Type": "application/json"},
            body=None if body is None else json.dumps(body),
            allow_nonstandard_methods=True,
            request_timeout=TIMEOUT,
        )
        response = await AsyncHTTPClient().fetch(request, raise_error=False)
        return response.code, json.loads(response.body) if response.body else None

    async def listen(self) -> None:
        """Subscribe to the server's events, as a page does."""
        url = f"{self.url}api/events/subscribe?token={self.token}".replace("http", "ws", 1)
        async with asyncio.timeout(TIMEOUT):
            while self._events is None:
                try:
                    self._events = await websocket_connect(url)
                except ConnectionRefusedError:
                    # The server prints its address before it listens, and says nothing when it does.
                    await asyncio.sleep(0.02)

    async def approval(self, matches: Callable[[Any], bool]) -> Any:
        """Return the first approval request that matches; wait for it if there is none yet."""
        async with asyncio.timeout(TIMEOUT):
            while True:
                _, page = await self.api("GET", "jupyter-agentbox/approvals?limit=500")
                found = [approval for approval in page["approvals"] if matches(approval)]
                if found:
                    return found[0]
                await self._next_event()

    async def event(self, schema_id: str) -> Any:
        """Return the next event of a kind; others before it are dropped."""
        assert self._events is not None
        while True:
            message = await self._events.read_message()
            assert message is not None, "the server hung up"
            event = json.loads(message)
            if event["schema_id"] == schema_id:
                return event

    async def _next_event(self) -> None:
        await self.event(APPROVAL_EVENT)

    async def pending(self, tool: str) -> Any:
        """Return the pending request for this tool; wait for it if there is none yet."""
        return await self.approval(lambda found: found["status"] == "pending" and found["call"]["tool"] == tool)

    async def pending_requests(self) -> AsyncIterator[list[Any]]:
        """Give every pending request once, a page at a time; wait for more when there is none."""
        seen: set[str] = set()
        while True:
            _, page = await self.api("GET", "jupyter-agentbox/approvals?status=pending&limit=100")
            fresh = [found for found in page["approvals"] if found["id"] not in seen]
            seen.update(found["id"] for found in fresh)
            if fresh:
                yield fresh
            else:
                await self._next_event()

    async def decide(self, approval: Any, decision: str = "allow_once", **more: Any) -> Any:
        """Answer a request as a person at the page."""
        body = {"decision": decision, "digest": approval["call"]["digest"], **more}
        code, answer = await self.api("POST", f"jupyter-agentbox/approvals/{approval['id']}/decision", body)
        assert code == 200, answer
        return answer

    @asynccontextmanager
    async def kernel(self, path: str = "demo.ipynb", name: str = "python3") -> AsyncIterator[Kernel]:
        """Start a kernel for a notebook and connect to it."""
        session = {"path": path, "type": "notebook", "name": path, "kernel": {"name": name}}
        code, answer = await self.api("POST", "api/sessions", session)
        assert code == 201, answer
        kernel_id = answer["kernel"]["id"]
        kernel = Kernel(kernel_id, self.root / "runtime" / f"kernel-{kernel_id}.json")
        try:
            await kernel.ready()
            yield kernel
        finally:
            kernel.client.stop_channels()

    def hang_up(self) -> None:
        """Hear no more events."""
        if self._events is not None:
            self._events.close()

    async def tidy(self) -> None:
        """End all kernels, and wait until nothing waits."""
        async with asyncio.timeout(TIMEOUT):
            for kind in ("sessions", "kernels"):
                for found in (await self.api("GET", f"api/{kind}"))[1]:
                    await self.api("DELETE", f"api/{kind}/{found['id']}")
            while (await self.api("GET", "jupyter-agentbox/approvals?status=pending"))[1]["approvals"]:
                await self._next_event()
        self.hang_up()

    async def stop(self) -> None:
        """Stop the server as Control-C does, and wait for it."""
        self.hang_up()
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(TIMEOUT):
            await self.process.wait()
            await self.following


def install_kernelspec(data: Path, name: str, python: str, *launcher: str) -> None:
    """Make the ipykernel of another Python a kernel of the server, or what starts one with this connection file."""
    folder = data / "kernels" / name
    folder.mkdir(parents=True, exist_ok=True)
    argv = [python, *(launcher or ("-m", "ipykernel_launcher", "-f")), "{connection_file}"]
    (folder / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": name, "language": "python"}))


async def start_server(
    root: Path, *, servers: Any = None, options: tuple[str, ...] = (), agentbox: bool = True, has_lab: bool = False
) -> Server:
    """Start a Jupyter server with everything it keeps under `root`, with the extension, and JupyterLab, or without."""
    extensions = {"jupyter_agentbox": agentbox, **({} if has_lab else dict.fromkeys(FRONT_ENDS, False))}
    with kept_port() as port:
        return await _start_server(root, port, servers, options, extensions)


async def _start_server(
    root: Path, port: int, servers: Any, options: tuple[str, ...], extensions: dict[str, bool]
) -> Server:
    for name in ("config", "runtime", "data", "work", "ipython"):
        (root / name).mkdir(exist_ok=True)
    if IPYKERNEL_630 is not None:
        install_kernelspec(root / "data", "ik630", IPYKERNEL_630)
    (root / "config" / "mcp.json").write_text(json.dumps({"mcpServers": servers or {"shop": SHOP}}))
    with (root / "config" / "jupyter_server_config.py").open("a") as config:
        config.write(KEEP_KERNEL_PORTS)
    token = secrets.token_hex(16)
    environment = {
        **os.environ,
        "JUPYTER_CONFIG_DIR": str(root / "config"),
        "JUPYTER_RUNTIME_DIR": str(root / "runtime"),
        "JUPYTER_DATA_DIR": str(root / "data"),
        "IPYTHONDIR": str(root / "ipython"),
        "JUPYTER_TOKEN": token,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(Path.cwd()), os.environ.get("PYTHONPATH")])),
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "jupyter_server",
        f"--ServerApp.jpserver_extensions={extensions}",
        "--no-browser",
        "--allow-root",
        "--ip=127.0.0.1",
        f"--port={port}",
        f"--ServerApp.root_dir={root / 'work'}",
        *options,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    url = asyncio.get_running_loop().create_future()

    async def follow() -> None:
        assert process.stderr is not None
        with (root / "server.log").open("ab", buffering=0) as log:
            async for line in process.stderr:
                log.write(line)
                text = line.decode(errors="replace")
                if "http://127.0.0.1:" in text and not url.done():
                    url.set_result(text[text.index("http://127.0.0.1:") :].split("?")[0].strip())
        if not url.done():
            url.set_exception(RuntimeError((root / "server.log").read_text()))

    server = Server(root, process, "", token)
    server.following = asyncio.create_task(follow())
    async with asyncio.timeout(TIMEOUT):
        server.url = await url
    await server.listen()
    return server


@pytest.fixture(scope="package")
def running_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the demo shop, which runs in a loop of its own: each test has another."""
    with server_in_thread(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture(scope="module")
def model() -> Iterator[MockModelServer]:
    """The model of a file's agents; the file says what it answers."""
    with MockModelServer() as started:
        yield started


@contextmanager
def server_in_thread(
    root: Path, options: tuple[str, ...] = (), *, servers: Any = None, has_lab: bool = False
) -> Iterator[Server]:
    """Start a server whose loop is none of a test's."""

    async def start() -> Server:
        server = await start_server(root, servers=servers, options=options, has_lab=has_lab)
        server.hang_up()
        return server

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        server = asyncio.run_coroutine_threadsafe(start(), loop).result()
        yield server
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture
def server(running_server: Server, jp_asyncio_loop: asyncio.AbstractEventLoop) -> Iterator[Server]:
    """The server that most tests share; no kernel of another test runs at it, and nothing waits."""
    with for_one_test(running_server, jp_asyncio_loop) as server:
        yield server


@contextmanager
def for_one_test(shared: Server, jp_asyncio_loop: asyncio.AbstractEventLoop) -> Iterator[Server]:
    """Lend a shared server to one test, and tidy it up."""
    server = Server(shared.root, shared.process, shared.url, shared.token)
    jp_asyncio_loop.run_until_complete(server.listen())
    yield server
    jp_asyncio_loop.run_until_complete(server.tidy())


@pytest.fixture
def own_server(tmp_path: Path, jp_asyncio_loop: asyncio.AbstractEventLoop) -> Iterator[Server]:
    """A server that no other test has, for those that leave much at it or need its first events."""
    server = jp_asyncio_loop.run_until_complete(start_server(tmp_path))
    yield server
    jp_asyncio_loop.run_until_complete(server.stop())


@pytest.fixture(
    params=[
        "python3",
        pytest.param(
            "ik630",
            marks=pytest.mark.skipif(IPYKERNEL_630 is None, reason="AGENTBOX_TEST_IPYKERNEL_630 names no Python"),
        ),
    ]
)
def ipykernel(request: pytest.FixtureRequest) -> str:
    """A kernel with the newest ipykernel, and one with the oldest that is supported."""
    name: str = request.param
    return name
