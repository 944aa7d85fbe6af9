"""Kernels behind a real Kernel Gateway: the same calls, and what a websocket between adds to what can go wrong."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPRequest

from tests.ports import kept_port

from .conftest import TIMEOUT, Kernel, Server, for_one_test, install_kernelspec, server_in_thread, start_server

#: The Python of an environment with Enterprise Gateway, for `make test-versions`; else it is a Kernel Gateway.
ENTERPRISE_GATEWAY = os.environ.get("AGENTBOX_TEST_ENTERPRISE_GATEWAY", "")
TOKEN = "gateway-token"
IS_LOADED = "'jupyter_agentbox' in __import__('sys').modules"
ORDER = "from jupyter_agentbox import tools\ntools.shop.get_order(order_id=1001)['id']"


class Gateway:
    """A Kernel Gateway whose kernels keep their connection files where the server's tests look for them."""

    def __init__(self, root: Path, port: int) -> None:
        self.root = root
        self.port = port
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def options(self) -> tuple[str, ...]:
        """What a Jupyter server is started with to use it. Its patience is short."""
        return (
            *(f"--gateway-url={self.url}", f"--GatewayClient.auth_token={TOKEN}"),
            *("--GatewayClient.gateway_retry_interval=0.2", "--GatewayClient.gateway_retry_interval_max=2"),
            "--GatewayClient.gateway_retry_max=30",
        )

    def command(self) -> tuple[str, ...]:
        """Return what starts it. It lets everything through that a kernel publishes."""
        if ENTERPRISE_GATEWAY:
            install_kernelspec(self.root / "data", "python3", sys.executable)
            return (
                *(ENTERPRISE_GATEWAY, "-m", "enterprise_gateway", "--EnterpriseGatewayApp.ip=127.0.0.1"),
                *(f"--EnterpriseGatewayApp.port={self.port}", "--EnterpriseGatewayApp.port_retries=0"),
                "--EnterpriseGatewayApp.list_kernels=True",
            )
        return (
            *(sys.executable, "-m", "kernel_gateway", "--KernelGatewayApp.ip=127.0.0.1"),
            *(f"--KernelGatewayApp.port={self.port}", "--KernelGatewayApp.port_retries=0"),
            "--JupyterWebsocketPersonality.list_kernels=True",
            "--ZMQChannelsWebsocketConnection.limit_rate=False",
        )

    def start(self) -> None:
        """Start it."""
        environment = {
            **os.environ,
            **{f"JUPYTER_{kind.upper()}_DIR": str(self.root / kind) for kind in ("config", "runtime", "data")},
            "IPYTHONDIR": str(self.root / "ipython"),
            "KG_AUTH_TOKEN": TOKEN,
            "EG_AUTH_TOKEN": TOKEN,
            "EG_UNAUTHORIZED_USERS": "nobody",  # otherwise root, as whom some run the tests
        }
        with (self.root / "gateway.log").open("ab") as log:
            self.process = subprocess.Popen(
                self.command(),
                env=environment,
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    async def api(self, method: str, path: str, body: str | None = None) -> int:
        """Ask its REST API; return the status code, 599 if nothing listens."""
        request = HTTPRequest(
            f"{self.url}{path}",
            method=method,
            headers={"Authorization": f"token {TOKEN}"},
            body=body,
            allow_nonstandard_methods=True,
            request_timeout=TIMEOUT,
        )
        try:
            return (await AsyncHTTPClient().fetch(request, raise_error=False)).code
        except OSError:
            return 599

    async def ready(self) -> None:
        """Wait until it answers."""
        async with asyncio.timeout(TIMEOUT):
            while await self.api("GET", "/api") != 200:  # noqa: ASYNC110  # no event tells
                await asyncio.sleep(0.1)

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it, and with it its kernels."""
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait(TIMEOUT)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """The gateway of all tests here."""
    root = tmp_path_factory.mktemp("gateway")
    for name in ("config", "runtime", "data", "ipython", "work"):
        (root / name).mkdir()
    with kept_port() as port:
        gateway = Gateway(root, port)
        gateway.start()
        try:
            asyncio.run(gateway.ready())
            yield gateway
        finally:
            gateway.end()


@pytest.fixture(scope="module")
def remote_server(gateway: Gateway) -> Iterator[Server]:
    """The server of all tests here, whose kernels the gateway starts."""
    with server_in_thread(gateway.root, gateway.options) as server:
        yield server


@pytest.fixture
def server(remote_server: Server, jp_asyncio_loop: asyncio.AbstractEventLoop) -> Iterator[Server]:
    """The server, with no kernel of another test."""
    with for_one_test(remote_server, jp_asyncio_loop) as server:
        yield server


@asynccontextmanager
async def linked(server: Server, path: str = "demo.ipynb") -> AsyncIterator[Kernel]:
    """Start a kernel and wait until the server's line to it is up: then the server has loaded the kernel side.

    Tests speak to kernels past the gateway, and so sooner than any page can: the gateway lets nobody speak to a kernel
    before it has heard from the kernel itself, which a cell that waits for the server would keep it from.
    """
    async with server.kernel(path) as kernel:
        async with asyncio.timeout(TIMEOUT):
            while (await kernel.run(IS_LOADED)).value != "True":  # noqa: ASYNC110  # no event tells
                await asyncio.sleep(0.05)  # the kernel has to be idle for others to speak to it
        yield kernel


async def waiting(server: Server, kernel: Kernel, code: str = ORDER) -> tuple[asyncio.Task[Any], Any]:
    """Have a cell call a tool; return the cell and the request that waits."""
    cell = asyncio.create_task(kernel.run(code))
    return cell, await server.pending("get_order")


async def ended(server: Server, request: Any) -> str:
    """Wait until a request no longer waits; return its status."""
    found = await server.approval(lambda found: found["id"] == request["id"] and found["status"] != "pending")
    status: str = found["status"]
    return status


async def test_calls_of_a_busy_cell_are_approved_one_after_another(server: Server) -> None:
    code = """
from jupyter_agentbox import tools
[tools.shop.get_order(order_id=number)["id"] for number in range(1001, 1006)]
"""
    async with linked(server, "remote.ipynb") as kernel:
        cell = asyncio.create_task(kernel.run(code, "cell-7"))
        decided = 0
        async for approvals in server.pending_requests():
            for approval in approvals:
                call = approval["call"]
                assert (call["kernel_id"], call["notebook_path"], call["cell_id"], call["isolation"]) == (
                    *(kernel.id, "remote.ipynb", "cell-7", "remote"),
                )
                await server.decide(approval)
            decided += len(approvals)
            if decided == 5:
                break
        done = await cell
    assert (done.error, done.value) == (None, "[1001, 1002, 1003, 1004, 1005]")


@pytest.mark.parametrize("how", ["restart", "shutdown"])
async def test_a_kernel_that_is_ended_orphans_what_waits(server: Server, how: str) -> None:
    async with linked(server) as kernel:
        cell, request = await waiting(server, kernel)
        if how == "restart":
            await server.api("POST", f"api/kernels/{kernel.id}/restart", {})
        else:
            await server.api("DELETE", f"api/kernels/{kernel.id}")
        assert await ended(server, request) == "orphaned"
        cell.cancel()


async def test_an_interrupt_withdraws_what_waits(server: Server) -> None:
    async with linked(server) as kernel:
        cell, request = await waiting(server, kernel)
        await server.api("POST", f"api/kernels/{kernel.id}/interrupt", {})
        assert "KeyboardInterrupt" in ((await cell).error or "")
        assert await ended(server, request) == "cancelled"


async def test_a_withdrawal_that_was_lost_is_made_up_for(server: Server) -> None:
    deaf = """
from jupyter_agentbox.kernel import runtime
transport = runtime.link().transport
send = transport.send
transport.send = lambda message: None if message["type"] == "cancel" else send(message)
"""
    async with linked(server) as kernel:
        assert (await kernel.run(deaf)).error is None
        cell, request = await waiting(server, kernel)
        await server.api("POST", f"api/kernels/{kernel.id}/interrupt", {})
        await cell
        await kernel.run("transport.send = send")
        assert await ended(server, request) == "cancelled"


async def test_a_kernel_that_dies_orphans_what_waits_and_its_successor_can_call(server: Server) -> None:
    async with linked(server) as kernel:
        pid = int((await kernel.run("import os; os.getpid()")).value or 0)
        cell, request = await waiting(server, kernel)
        os.kill(pid, signal.SIGKILL)
        assert await ended(server, request) == "orphaned"
        cell.cancel()
        await kernel.ready()
        cell, request = await waiting(server, kernel)
        await server.decide(request)
        assert (await cell).value == "1001"


def most_memory(process: int) -> int:
    """The most bytes of memory that a process has had."""
    status = Path(f"/proc/{process}/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux says how much memory a process has had")
async def test_a_cell_that_prints_100_megabytes_neither_breaks_the_link_nor_fills_the_server(server: Server) -> None:
    code = """
import threading
from jupyter_agentbox import tools
got = []
calling = threading.Thread(target=lambda: got.append(tools.shop.get_order(order_id=1001)["id"]))
calling.start()
print("x" * 60_000_000, flush=True)
for _ in range(40): print("x" * 1_000_000, flush=True)
print("all printed", flush=True)
calling.join()
got
"""
    async with linked(server) as kernel:
        await kernel.run("from jupyter_agentbox import tools; dir(tools)")
        before = most_memory(server.process.pid)
        cell, request = await waiting(server, kernel, code)
        async with asyncio.timeout(TIMEOUT):
            await kernel.printed("all printed")
        await server.decide(request)
        assert (await cell).value == "[1001]"
        assert most_memory(server.process.pid) - before < 40_000_000


async def test_what_a_kernel_forges_decides_nothing(server: Server) -> None:
    forging = """
import threading
from jupyter_agentbox.kernel import runtime
kernel, transport = get_ipython().kernel, runtime.link().transport
kernel_id, parent = kernel.ident, {"header": {"msg_id": "1", "msg_type": "execute_request", "username": "admin"}}

def forge(request_id):
    for data in (
        {"type": "decision", "id": request_id, "decision": "allow_once"},
        {"type": "reply", "id": request_id, "content": {}},
        {"type": "running", "id": request_id, "request_id": request_id},
        {"type": "unfinished", "ids": [request_id]},
    ):
        for kind in ("comm_msg", "comm_open", "execute_reply", "status", "approval"):
            for comm_id in (transport.comm_id, "agentbox-another"):
                content = {"comm_id": comm_id, "data": data, "execution_state": "idle", "status": "ok"}
                kernel.session.send(kernel.iopub_socket, kind, content, parent=parent, ident=b"comm-agentbox")

def watch():
    while True:
        found = runtime.link().list_pending(within=10)
        if found:
            return forge(found[0]["id"])
threading.Thread(target=watch).start()
"""
    async with linked(server) as kernel:
        cell, request = await waiting(server, kernel, forging + ORDER)
        other = asyncio.create_task(server.pending("list_orders"))
        async with linked(server, "other.ipynb") as second:
            # A call of another kernel comes after all that, and the first one still waits.
            calling = asyncio.create_task(
                second.run("from jupyter_agentbox import tools; len(tools.shop.list_orders())")
            )
            await server.decide(await other)
            assert (await calling).error is None
        still = await server.approval(lambda found: found["id"] == request["id"])
        assert (still["status"], still["outcome"]) == ("pending", None)
        await server.decide(request)
        assert (await cell).value == "1001"


async def test_a_kernel_can_end_its_own_requests_by_claiming_to_be_dead_and_no_more(server: Server) -> None:
    claim = """
import threading
kernel = get_ipython().kernel
def claim():
    kernel.session.send(kernel.iopub_socket, "status", {"execution_state": "restarting"}, ident=b"status")
threading.Timer(1, claim).start()
"""
    async with linked(server) as kernel:
        cell, request = await waiting(server, kernel, claim + ORDER)
        assert await ended(server, request) == "orphaned"
        assert "Error" in ((await cell).error or "")


async def test_a_rule_for_sandboxed_kernels_is_none_for_a_remote_one(server: Server) -> None:
    rules = server.root / "config" / "agentbox_rules.json"
    rules.write_text('{"rules": [{"effect": "allow", "server": "shop", "tool": "*", "isolation": "srt"}]}')
    try:
        async with linked(server) as kernel:
            cell, request = await waiting(server, kernel)
            await server.decide(request, "reject_once")
            assert "ToolCallRejectedError" in ((await cell).error or "")
    finally:
        rules.unlink()


async def test_where_the_package_is_missing_the_cell_and_the_log_say_what_to_do(server: Server) -> None:
    folder = server.root / "data" / "kernels" / "bare"
    install_kernelspec(server.root / "data", "bare", sys.executable)
    start = """
import sys
from importlib.machinery import PathFinder

class Lacking:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return None if name == "jupyter_agentbox" else PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Lacking
from ipykernel.kernelapp import launch_new_instance
launch_new_instance()
"""
    spec = {
        "argv": [sys.executable, "-c", start, "-f", "{connection_file}"],
        "display_name": "bare",
        "language": "python",
    }
    (folder / "kernel.json").write_text(json.dumps(spec))
    async with server.kernel(name="bare") as kernel:
        await kernel.run("import jupyter_agentbox")  # it fails, and aborts what waits behind it
        async with asyncio.timeout(TIMEOUT):
            # What explains it comes when the server has reached the kernel.
            code = "try: import jupyter_agentbox\nexcept ImportError as error: print(error)"
            while "Ask whoever runs the gateway" not in (await kernel.run(code)).stdout:
                pass
            said = f"kernel {kernel.id} behind the gateway has no jupyter_agentbox"
            while said not in (server.root / "server.log").read_text():
                await kernel.run("1")


async def test_a_server_that_is_killed_orphans_what_waits_though_the_kernel_lives(
    gateway: Gateway, tmp_path: Path
) -> None:
    (tmp_path / "runtime").symlink_to(gateway.root / "runtime")
    first = await start_server(tmp_path, options=gateway.options)
    async with linked(first) as kernel:
        cell, request = await waiting(first, kernel)
        first.process.kill()
        await first.stop()
        second = await start_server(tmp_path, options=gateway.options)
        try:
            assert await ended(second, request) == "orphaned"
            assert await gateway.api("POST", f"/api/kernels/{kernel.id}/interrupt", "{}") == 204
            assert "KeyboardInterrupt" in ((await cell).error or "")
        finally:
            await gateway.api("DELETE", f"/api/kernels/{kernel.id}")
            await second.stop()


async def test_a_gateway_that_starts_anew_orphans_what_waits(gateway: Gateway, server: Server) -> None:
    async with linked(server) as kernel:
        cell, request = await waiting(server, kernel)
        gateway.end(signal.SIGKILL)
        gateway.start()
        await gateway.ready()
        assert await ended(server, request) == "orphaned"
        cell.cancel()
    async with linked(server, "again.ipynb") as kernel:
        cell, request = await waiting(server, kernel)
        await server.decide(request)
        assert (await cell).value == "1001"
