"""A stage for attacks: one real server with what is worth stealing, and one of its kernels at each level."""

from __future__ import annotations

import inspect
import json
import os
import secrets
import socket
import subprocess
import sys
import textwrap
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import entry_points
from pathlib import Path
from queue import Empty
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.sandbox.install import kernelspec
from jupyter_agentbox.sandbox.server.probes import select_level

from .attack import LEVELS, Attack
from .page import browser, plain_lab, plain_view, sandbox_lab, view  # noqa: F401  # fixtures
from .report import report_table

TIMEOUT = 60
MARK = "agentbox-evidence:"
#: How many requests of one kernel may wait on this server.
MOST_PENDING = 20
#: Bytes of memory that unanswered calls of one kernel may take on this server.
MAX_WAITING_BYTES = 20_000_000
MEMORY_LIMIT = 2 << 30
PROCESS_LIMIT = 60
DESK_SERVER = Path(__file__).with_name("ledger_server.py")

#: Runs in the kernel: says what the attack got, or how it failed.
_RUN = """
import json as _json
try:
    _evidence = attack({facts!r})
    print({mark!r} + _json.dumps(_evidence))
except BaseException as _error:
    print({mark!r} + "null", type(_error).__name__, _error)
"""


@dataclass
class World:
    """What there is to attack."""

    root: Path
    token: str
    hub_token: str
    credential: str
    ssh_key: str
    model_key: str
    process: subprocess.Popen[bytes]
    victim: subprocess.Popen[bytes]
    tcp: socket.socket
    udp: socket.socket
    abstract: socket.socket
    pathname: socket.socket
    web: ThreadingHTTPServer
    url: str = ""
    port: int = 0
    kernels: dict[str, BlockingKernelClient] = field(default_factory=dict)
    allowed: set[tuple[str, str]] = field(default_factory=set)
    #: Name of an attack -> whether it succeeds in a plain kernel of this machine.
    works: dict[str, bool] = field(default_factory=dict)

    @property
    def facts(self) -> dict[str, Any]:
        """What an attacker is generously told: every place, no secret."""
        return {
            "url": self.url,
            "port": self.port,
            "server_pid": self.process.pid,
            "victim_pid": self.victim.pid,
            "root": str(self.root),
            "home": str(self.root / "home"),
            "runtime": str(self.root / "runtime"),
            "config": str(self.root / "config"),
            "data": str(self.root / "data"),
            "work": str(self.root / "home" / "project"),
            "tcp": self.tcp.getsockname()[1],
            "udp": self.udp.getsockname()[1],
            "abstract": self.abstract.getsockname().decode(),
            "pathname": self.pathname.getsockname(),
            "web": self.web.server_port,
            "most_pending": MOST_PENDING,
            "memory_limit": MEMORY_LIMIT,
            "process_limit": PROCESS_LIMIT,
        }

    def calls(self, tool: str) -> list[Any]:
        """Return the arguments of all calls of a tool of the ledger that ran."""
        notes = self.root / "notes.jsonl"
        lines = notes.read_text("utf-8").splitlines() if notes.exists() else []
        return [note["arguments"] for note in map(json.loads, lines) if note["tool"] == tool]

    def await_pending(self, tool: str, *, count: int = 1) -> list[Any]:
        """Wait until at least `count` requests for a tool wait for a person, and return them."""
        limit = time.monotonic() + TIMEOUT
        while True:
            page = self.api("GET", "jupyter-agentbox/approvals?status=pending&limit=100")
            found = [one for one in page["approvals"] if one["call"]["tool"] == tool]
            if len(found) >= count:
                return found
            assert time.monotonic() < limit, f"`{tool}` was not asked for"
            time.sleep(0.05)  # as a page that has no events would

    def await_call(self, tool: str, *, count: int) -> None:
        """Wait until a tool of the ledger ran at least `count` times."""
        limit = time.monotonic() + TIMEOUT
        while len(self.calls(tool)) < count:
            assert time.monotonic() < limit, f"`{tool}` did not run"
            time.sleep(0.05)  # the tool's own process writes what is waited for

    def decide(self, approval: Any, decision: str, **more: Any) -> None:
        """Answer a request as the person at the page."""
        body = {"decision": decision, "digest": approval["call"]["digest"], **more}
        self.api("POST", f"jupyter-agentbox/approvals/{approval['id']}/decision", body)

    def api(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the server as its user."""
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"token {self.token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
            return json.loads(answer.read() or b"null")

    def is_refused(self, method: str, path: str, body: Any = None) -> bool:
        """Ask the server as its user; say whether it refuses."""
        try:
            self.api(method, path, body)
        except urllib.error.HTTPError as error:
            if error.code != 403:
                raise
            return True
        return False

    def start_kernel(self, name: str, directory: str = "project") -> BlockingKernelClient:
        """Start a kernel for a notebook of a directory below the home directory, and connect to it."""
        body = {"path": f"{directory}/{name}.ipynb", "type": "notebook", "name": name, "kernel": {"name": name}}
        while True:
            before = self._ports_lost()
            kernel_id = self.api("POST", "api/sessions", body)["kernel"]["id"]
            client = BlockingKernelClient(connection_file=str(self.root / "runtime" / f"kernel-{kernel_id}.json"))
            client.load_connection_file()
            client.start_channels(hb=False)
            try:
                client.wait_for_ready(timeout=TIMEOUT)
            except RuntimeError:
                client.stop_channels()
                # Jupyter finds free ports for a kernel, which anybody may take before the kernel does.
                if self._ports_lost() == before:
                    raise
                # Otherwise the notebook's session would still have this kernel, which may be gone for good.
                with suppress(urllib.error.HTTPError):
                    self.api("DELETE", f"api/kernels/{kernel_id}")
            else:
                return client

    def _ports_lost(self) -> int:
        """Count the kernels' starts that failed because a port was taken meanwhile."""
        return (self.root / "server.log").read_text("utf-8", "replace").count("Address already in use (addr='tcp://")

    def kernel_of(self, name: str) -> BlockingKernelClient:
        """Return the one kernel of this name, started when it is first asked for."""
        if name not in self.kernels:
            self.kernels[name] = self.start_kernel(name)
        return self.kernels[name]

    def close(self) -> None:
        """End everything."""
        for client in self.kernels.values():
            client.stop_channels()
            client.context.destroy(linger=0)
        self.process.terminate()
        try:
            self.process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self.victim.kill()
        assert self.victim.stdin is not None
        self.victim.stdin.close()
        self.victim.wait(TIMEOUT)
        self.web.shutdown()
        self.web.server_close()
        for one in (self.tcp, self.udp, self.abstract, self.pathname):
            one.close()


class Stage:
    """One level of one world."""

    def __init__(self, world: World, level: Isolation, kind: str = "at") -> None:
        self.world = world
        self.level = level
        self._kind = kind
        self._kernel = world.kernel_of(f"{kind}-{level.value}")
        self._ends = self._count_ends()
        self.said = ""

    def limited(self) -> Stage:
        """Return the same level with limits on what a kernel may use up."""
        return Stage(self.world, self.level, "limited")

    def online(self) -> Stage:
        """Return the same level with allowed domains, where it can have them."""
        return Stage(self.world, self.level, "online")

    @contextmanager
    def alone(self, directory: str) -> Iterator[Stage]:
        """Give the same level in a kernel of its own, whose work directory is another one below the home directory."""
        (self.world.root / "home" / directory).mkdir(parents=True, exist_ok=True)
        with self.of(f"at-{self.level.value}", directory) as elsewhere:
            yield elsewhere

    @contextmanager
    def of(self, name: str, directory: str = "project") -> Iterator[Stage]:
        """Give the same level in a kernel of its own, of another kernelspec."""
        kernel = self.world.start_kernel(name, directory)
        elsewhere = copy(self)
        elsewhere._kernel = kernel
        try:
            yield elsewhere
        finally:
            kernel.stop_channels()
            kernel.context.destroy(linger=0)

    def was_allowed(self, tool: str) -> bool:
        """Whether this was asked before of this tool at this level: then it was allowed for good."""
        known = (self.level.value, tool) in self.world.allowed
        self.world.allowed.add((self.level.value, tool))
        return known

    @contextmanager
    def running(self, attack: Callable[[dict[str, Any]], Any], **more: Any) -> Iterator[Callable[[], Any]]:
        """Begin an attack; gives a function that waits for its evidence."""
        request = self._kernel.execute(self._code(attack, more), store_history=False)
        yield lambda: self._evidence(request)

    def judge(self, attack: Attack, succeeded: bool) -> None:
        """Compare what came of an attack with what the table in the docs says."""
        assert succeeded is attack.succeeds_at(self.level), f"{self.level.value}: {self.said}"

    def run(self, attack: Callable[[dict[str, Any]], Any], **more: Any) -> Any:
        """Run an attack in the kernel; return its evidence, ``None`` if it failed. `more` are further facts."""
        with self.running(attack, **more) as evidence:
            return evidence()

    def _code(self, attack: Callable[[dict[str, Any]], Any], more: dict[str, Any]) -> str:
        source = textwrap.dedent(inspect.getsource(attack)).replace(f"def {attack.__name__}", "def attack", 1)
        code = source.partition("def attack(")[2].partition("\n")[2]
        return "def attack(facts):\n" + code + _RUN.format(facts={**self.world.facts, **more}, mark=MARK)

    def _evidence(self, request: str) -> Any:
        said: list[str] = []
        limit = time.monotonic() + TIMEOUT
        while True:
            try:
                message = self._kernel.get_iopub_msg(timeout=0.5)
            except Empty:
                assert time.monotonic() < limit, f"{self.level.value}: no answer; so far {said}"
                if self._count_ends() > self._ends:
                    self.said = "null a limit ended the sandbox"
                    self._kernel.wait_for_ready(timeout=TIMEOUT)  # the server starts another kernel in its place
                    return None
                continue
            content = message["content"]
            if message["parent_header"].get("msg_id") != request:
                continue
            if message["msg_type"] == "stream" and content["name"] == "stdout":
                said.append(content["text"])
            if message["msg_type"] == "status" and content["execution_state"] == "idle":
                break
        self.said = "".join(said).rpartition(MARK)[2].partition("\n")[0]
        return None if self.said.startswith("null") else json.loads(self.said)

    def _count_ends(self) -> int:
        return (self.world.root / "server.log").read_text("utf-8", "replace").count("the sandbox was ended: ")

    def expect(
        self,
        attack: Attack,
        code: Callable[[dict[str, Any]], Any],
        is_success: Callable[[Any], bool] = lambda evidence: evidence is not None,
        **more: Any,
    ) -> None:
        """Run an attack and compare what came of it with what the table in the docs says.

        What fails in a plain kernel of this machine, too, would prove nothing of a sandbox.
        """
        if attack.plain is None and not attack.control and not self._works_unprotected(attack, code, is_success, more):
            pytest.skip("it fails in a plain kernel of this machine and user, too, and so proves nothing")
        if attack.succeeds_at(self.level) is not None:
            self.judge(attack, is_success(self.run(code, **more)))

    def _works_unprotected(
        self,
        attack: Attack,
        code: Callable[[dict[str, Any]], Any],
        is_success: Callable[[Any], bool],
        more: dict[str, Any],
    ) -> bool:
        if attack.name not in self.world.works:
            plain = Stage(self.world, Isolation.NONE, self._kind)
            self.world.works[attack.name] = is_success(plain.run(code, **more))
        return self.world.works[attack.name]


class Sites(BaseHTTPRequestHandler):
    """Two web sites on one address, as many share one in a cloud: the `Host` header says which one is meant."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._answer()

    def _answer(self) -> None:
        body = b"hidden site" if self.headers.get("Host", "").startswith("hidden.example") else b"open site"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def write_spec(root: Path, name: str, spec: dict[str, Any]) -> None:
    """Let the server have a kernelspec."""
    directory = root / "data" / "kernels" / name
    directory.mkdir()
    (directory / "kernel.json").write_text(json.dumps(spec))


def _spec(level: Isolation, **limits: Any) -> dict[str, Any]:
    spec = kernelspec(sys.executable, display_name=level.value, config={"levels": [level.value], **limits})
    if level is Isolation.NONE:
        del spec["metadata"]
    return spec


def _serve(listener: socket.socket, answer: bytes) -> None:
    def run() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection, suppress(OSError):  # who asked may be gone
                connection.sendall(answer)

    threading.Thread(target=run, daemon=True).start()


def make_world(root: Path, *options: str) -> World:
    """Start the server, with everything around it; `options` are more of its own, and win."""
    token, hub_token = secrets.token_hex(16), secrets.token_hex(16)
    credential, ssh_key, model_key = secrets.token_hex(16), secrets.token_hex(16), secrets.token_hex(16)
    for name in ("config", "runtime", "data/kernels", "home/.ssh", "home/project/.git/hooks", "neighbor", "lib"):
        (root / name).mkdir(parents=True)
    (root / "home" / ".ssh" / "id_ed25519").write_text(ssh_key)
    (root / "home" / ".bashrc").write_text("# mine\n")
    (root / "neighbor" / "diary").write_text(ssh_key)
    (root / "home" / "project" / ".git" / "config").write_text("[core]\n")
    entry = {"command": sys.executable, "args": ["-c", "input()"], "env": {"SHOP_PASSWORD": credential}}
    ledger = {"command": sys.executable, "args": [str(DESK_SERVER), str(root / "notes.jsonl")]}
    (root / "config" / "mcp.json").write_text(json.dumps({"mcpServers": {"shop": entry, "ledger": ledger}}))
    limits = {"memory_limit": MEMORY_LIMIT, "process_limit": PROCESS_LIMIT}
    for level in LEVELS:
        for name, spec in (("at", _spec(level)), ("limited", _spec(level, **limits))):
            write_spec(root, f"{name}-{level.value}", spec)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "XDG"))},
        "HOME": str(root / "home"),
        "JUPYTER_CONFIG_DIR": str(root / "config"),
        "JUPYTER_RUNTIME_DIR": str(root / "runtime"),
        "JUPYTER_DATA_DIR": str(root / "data"),
        "JUPYTER_TOKEN": token,
        "JUPYTERHUB_API_TOKEN": hub_token,
        "JPY_SESSION_SECRET": hub_token,
        "OPENAI_API_KEY": model_key,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(Path.cwd()), os.environ.get("PYTHONPATH")])),
    }
    with (root / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "jupyter_server", "--ServerApp.jpserver_extensions={'jupyter_agentbox': True}"),
                *("--no-browser", "--allow-root", "--ip=127.0.0.1", "--port=0"),
                f"--ServerApp.root_dir={root / 'home'}",
                f"--AgentBoxApp.max_pending={MOST_PENDING}",
                *(options or [f"--AgentBoxApp.max_waiting_bytes={MAX_WAITING_BYTES}"]),
            ],
            env=environment,
            cwd=root / "neighbor",
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    victim = subprocess.Popen(
        [sys.executable, "-c", "import sys; open(sys.argv[1], 'w').write(sys.stdin.readline())", str(root / "heard")],
        env={**environment, "SHOP_PASSWORD": credential},
        stdin=subprocess.PIPE,
    )
    tcp, udp = socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    abstract, pathname = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    abstract.bind("\0agentbox-" + token)
    pathname.bind(str(root / "home" / "agent.sock"))
    for listener in (abstract, pathname):
        listener.listen()
    for listener in (tcp, abstract, pathname):
        _serve(listener, b"hello")
    udp.settimeout(0.3)
    web = ThreadingHTTPServer(("127.0.0.1", 0), Sites)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    keys = (token, hub_token, credential, ssh_key, model_key)
    world = World(root, *keys, process, victim, tcp, udp, abstract, pathname, web)
    try:
        wait_for(world)
        for level in LEVELS:
            # The site is meant to be on this machine; another name that leads to this machine is not.
            domains = {
                "private_domains": [f"localhost:{web.server_port}"],
                "allowed_domains": [f"localhost:{world.port}"],
            }
            # Landlock has no network of its own, and srt's proxy is not ours: there the kernel has no domains.
            settings = {} if level in (Isolation.LANDLOCK, Isolation.SRT) else domains
            write_spec(root, f"online-{level.value}", _spec(level, **settings))
    except BaseException:
        world.close()
        raise
    return world


def wait_for(world: World) -> None:
    """Wait until the server answers."""
    root, process = world.root, world.process
    limit = time.monotonic() + TIMEOUT
    while not world.url:
        assert process.poll() is None, (root / "server.log").read_text()
        assert time.monotonic() < limit, (root / "server.log").read_text()
        for path in (root / "runtime").glob("jpserver-*.json"):
            try:
                told = json.loads(path.read_text())
                urllib.request.urlopen(told["url"] + "api", timeout=10).close()
                world.url, world.port = told["url"], told["port"]
            except (ValueError, OSError):
                break
        time.sleep(0.02)  # a server that starts gives no sign that could be waited for


@pytest.fixture(autouse=True)
def jp_asyncio_loop() -> None:
    """Stand in for pytest-jupyter's fixture: some attack pages, where Playwright's loop runs; there cannot be two."""


@pytest.fixture(autouse=True)
def jp_server_cleanup() -> None:
    """Stand in for pytest-jupyter's fixture: no server is in this process."""


@pytest.fixture(scope="package")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The world that all attacks share."""
    if not entry_points(group="jupyter_client.kernel_provisioners", name="agentbox-sandbox"):
        pytest.skip("the provisioner is not registered: install the package again")
    made = make_world(tmp_path_factory.mktemp("world"))
    yield made
    made.close()


def stage_at(world: World, level: Isolation) -> Stage:
    """Return a kernel at a level; skip the test where this machine cannot reach it."""
    if level is not Isolation.NONE:
        try:
            select_level([level])
        except SandboxRefusedError as refusal:
            pytest.skip(str(refusal))
    return Stage(world, level)


@pytest.fixture(params=LEVELS, ids=lambda level: level.value)
def stage(request: pytest.FixtureRequest, world: World) -> Stage:
    """A kernel at each level that this machine can reach."""
    return stage_at(world, request.param)


@pytest.fixture
def plain(world: World) -> Stage:
    """A plain kernel, for tests that show that an attack would be seen if it succeeded."""
    return Stage(world, Isolation.NONE)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what each attack got on this machine, if `make attack` asked for it."""
    if os.environ.get("AGENTBOX_ATTACK_TABLE"):
        terminalreporter.write_line(report_table(terminalreporter.stats))
