"""A sandboxed kernel of a real server: started over REST, calling a tool, refused where it must be."""

from __future__ import annotations

import asyncio
import json
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.core.sandbox_settings import SANDBOX_LEVELS
from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.sandbox.install import kernelspec
from jupyter_agentbox.sandbox.server.probes import select_level

from .conftest import KERNEL_EVENT, TIMEOUT, Kernel, Server, start_server

LEVELS = [level.value for level in SANDBOX_LEVELS]


def install(root: Path, name: str, **config: Any) -> None:
    directory = root / "data" / "kernels" / name
    directory.mkdir(parents=True, exist_ok=True)
    spec = kernelspec(sys.executable, display_name=name, config=config)
    (directory / "kernel.json").write_text(json.dumps(spec))


@pytest.fixture(params=SANDBOX_LEVELS, ids=lambda level: level.value)
def level(request: pytest.FixtureRequest) -> str:
    """Every level that this machine can reach."""
    if not entry_points(group="jupyter_client.kernel_provisioners", name="agentbox-sandbox"):
        pytest.skip("the provisioner is not registered: install the package again")
    try:
        return str(select_level([request.param]).value)
    except SandboxRefusedError as refusal:
        pytest.skip(str(refusal))


@pytest.fixture
def best_level() -> str:
    """The strictest level that this machine can reach, for what is the same at each."""
    if not entry_points(group="jupyter_client.kernel_provisioners", name="agentbox-sandbox"):
        pytest.skip("the provisioner is not registered: install the package again")
    try:
        return str(select_level(SANDBOX_LEVELS).value)
    except SandboxRefusedError as refusal:
        pytest.skip(str(refusal))


async def test_tool_call_of_a_sandboxed_kernel_names_the_level_and_gives_its_result(server: Server, level: str) -> None:
    install(server.root, "sandboxed", levels=[level])
    async with server.kernel("walk.ipynb", "sandboxed") as kernel:
        cell = asyncio.create_task(
            kernel.run("from jupyter_agentbox import tools\norders = tools.shop.list_orders()\nlen(orders)")
        )
        approval = await server.pending("list_orders")
        assert approval["call"]["isolation"] == level
        await server.decide(approval)
        done = await cell

        assert done.error is None
        assert int(done.value or 0) > 0

        await server.api("POST", f"api/kernels/{kernel.id}/restart")
        await kernel.ready()
        assert (await kernel.run("'orders' in globals()")).value == "False"


async def test_an_error_of_the_network_says_what_has_blocked_it_and_what_setting_allows_it(
    server: Server, level: str
) -> None:
    install(server.root, "sandboxed", levels=[level])
    async with server.kernel("network.ipynb", "sandboxed") as kernel:
        async with asyncio.timeout(TIMEOUT):  # the server loads the kernel's end when the kernel has started
            while (await kernel.run("'agentbox' in get_ipython().magics_manager.magics['line']")).value != "True":  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        done = await kernel.run("import urllib.request\nurllib.request.urlopen('http://example.com', timeout=5)")

        assert done.error is not None
        assert "This kernel is sandboxed" in done.stderr
        assert "`allowed_domains`" in done.stderr


async def test_plain_kernel_says_that_it_has_no_isolation(server: Server) -> None:
    async with server.kernel() as kernel:
        cell = asyncio.create_task(kernel.run("from jupyter_agentbox import tools\ntools.shop.list_orders()"))
        approval = await server.pending("list_orders")
        assert approval["call"]["isolation"] == "none"
        await server.decide(approval, "reject_once")
        await cell


async def test_kernel_without_a_path_does_not_share_the_servers_directory(server: Server, level: str) -> None:
    install(server.root, "sandboxed", levels=[level])
    code, answer = await server.api("POST", "api/kernels", {"name": "sandboxed"})

    assert code == 201, answer
    code, _ = await server.api("DELETE", f"api/kernels/{answer['id']}")
    assert code == 204


async def test_refusal_reaches_the_client_in_words(server: Server, level: str) -> None:
    install(server.root, "sandboxed", levels=[level], work_dir=str(server.root))
    code, answer = await server.api("POST", "api/kernels", {"name": "sandboxed"})

    assert (code, "must not see" in answer["message"] or "would show" in answer["message"]) == (403, True), answer


async def test_no_kernel_starts_where_no_level_is_reached(server: Server) -> None:
    install(server.root, "sandboxed", levels=["bubblewrap"], bubblewrap="/nonexistent/bwrap")
    code, answer = await server.api("POST", "api/kernels", {"name": "sandboxed"})

    assert (code, "bwrap is not installed" in answer["message"]) == (403, True), answer
    assert (await server.api("GET", "api/kernels"))[1] == []


async def test_an_administrator_can_make_the_sandboxed_kernel_the_only_one(
    tmp_path: Path, jp_asyncio_loop: asyncio.AbstractEventLoop, best_level: str
) -> None:
    install(tmp_path, "agentbox-sandbox", levels=[best_level])
    install(tmp_path, "of-the-user", levels=[best_level], readable=[str(tmp_path)])
    plain = tmp_path / "data" / "kernels" / "plain"
    plain.mkdir()
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (plain / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "Plain", "language": "python"}))
    server = await start_server(
        tmp_path,
        options=(
            "--ServerApp.kernel_spec_manager_class=jupyter_agentbox.sandbox.kernelspecs.SandboxedKernelSpecManager",
            "--KernelSpecManager.allowed_kernelspecs={'agentbox-sandbox'}",
            f"--SandboxedKernelSpecManager.kernelspec_dirs={tmp_path / 'data' / 'kernels'}",
            "--MultiKernelManager.default_kernel_name=agentbox-sandbox",
        ),
    )
    try:
        _, listed = await server.api("GET", "api/kernelspecs")
        assert (list(listed["kernelspecs"]), listed["default"]) == (["agentbox-sandbox"], "agentbox-sandbox")
        for name in ("plain", "python3", "python", "PLAIN", "of-the-user", "no-such"):
            code, answer = await server.api("POST", "api/kernels", {"name": name})
            assert code == 404, (name, answer)
        assert (await server.api("GET", "api/kernels"))[1] == []

        code, answer = await server.api("POST", "api/kernels", {})  # no name: the default
        assert (code, answer["name"]) == (201, "agentbox-sandbox"), answer
        code, answer = await server.api("PATCH", f"api/kernels/{answer['id']}", {})
        assert code >= 400, answer
        async with server.kernel("walk.ipynb", "agentbox-sandbox") as kernel:
            failed = await kernel.run("import socket; socket.create_connection(('127.0.0.1', 1), timeout=5)")
            assert failed.error
    finally:
        # Jupyter keeps what it could not start, such as a kernel of no such name, among its kernels, and cannot end.
        server.process.kill()
        await server.stop()


async def test_a_kernelspec_of_the_user_does_not_loosen_the_one_that_the_docs_make_the_only_one(
    tmp_path: Path, jp_asyncio_loop: asyncio.AbstractEventLoop, best_level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "sandbox-kernels.md").read_text("utf-8")
    recipe = page.partition("## Make it the only kernel")[2].partition("```python\n")[2].partition("```")[0]
    site = tmp_path / "site"
    assert '"/opt/site/share/jupyter/kernels"' in recipe
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "jupyter_server_config.py").write_text(
        recipe.replace("/opt/site/share/jupyter/kernels", str(site / "data" / "kernels"))
    )
    install(site, "agentbox-sandbox", levels=[best_level])
    install(tmp_path, "agentbox-sandbox", levels=[best_level], environment=["*", "JUPYTERHUB_API_TOKEN"])
    install(tmp_path, "loose", levels=[best_level], environment=["*"])
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "of the hub")
    server = await start_server(tmp_path)
    try:
        _, listed = await server.api("GET", "api/kernelspecs")
        assert list(listed["kernelspecs"]) == ["agentbox-sandbox"]
        assert (await server.api("POST", "api/kernels", {"name": "loose"}))[0] == 404
        async with server.kernel("walk.ipynb", "agentbox-sandbox") as kernel:
            done = await kernel.run("import os\n'JUPYTERHUB_API_TOKEN' in os.environ")
            assert done.value == "False"
    finally:
        server.process.kill()
        await server.stop()


async def test_server_that_refused_a_kernel_can_be_stopped(
    tmp_path: Path, jp_asyncio_loop: asyncio.AbstractEventLoop
) -> None:
    install(tmp_path, "sandboxed", levels=["bubblewrap"], bubblewrap="/nonexistent/bwrap")
    server = await start_server(tmp_path)
    code, _ = await server.api("POST", "api/kernels", {"name": "sandboxed"})
    assert code == 403
    await server.stop()
    assert server.process.returncode == 0


MEMORY = 2 << 30
CRASH = "import ctypes; ctypes.string_at(0)"
#: At most 2.3 GB, also where nothing stops it. The kernel has most, and so is what Linux ends where it has to.
TAKE_MEMORY = """
import os, time
taken = []
reader, writer = os.pipe()
for _ in range(5):
    if os.fork() == 0:
        taken.append(b"x" * (300 << 20))
        os.write(writer, b".")
        time.sleep(600)
for _ in range(5):
    os.read(reader, 1)
taken.append(b"x" * (700 << 20))
time.sleep(600)
"""


async def test_page_is_told_why_a_kernel_ended_and_not_of_a_restart(own_server: Server, level: str) -> None:
    server = own_server
    install(server.root, "limited", levels=[level], memory_limit=MEMORY)

    async def end_after(kernel: Kernel, code: str) -> Any:
        kernel.client.execute(code)
        async with asyncio.timeout(TIMEOUT):
            assert (await server.event(KERNEL_EVENT))["kernel_id"] == kernel.id
        await kernel.ready()
        return (await server.api("GET", f"jupyter-agentbox/kernels/{kernel.id}"))[1]

    async with server.kernel("walk.ipynb", "limited") as kernel:
        crashed = (await end_after(kernel, CRASH))["last_end"]
        assert (crashed["reason"], crashed["signal"]) == ("its process was killed by SIGSEGV", "SIGSEGV")
        assert (crashed["limit"], crashed["most"], crashed["status"]) == (None, None, None)

        answer = await end_after(kernel, TAKE_MEMORY)
        end = answer["last_end"]
        assert end == {
            "id": end["id"],
            "at": end["at"],
            "reason": "it needed more than 2 GiB of memory",
            "limit": "memory_limit",
            "most": 2 << 30,
            "signal": None,
            "status": None,
            "notebook_path": "walk.ipynb",
        }
        assert end["id"] != crashed["id"]
        assert (await kernel.run("'alive'")).value == "'alive'"

        await server.api("POST", f"api/kernels/{kernel.id}/restart")
        await kernel.ready()
        assert (await kernel.run("'alive'")).value == "'alive'"
        assert (await server.api("GET", f"jupyter-agentbox/kernels/{kernel.id}"))[1] == answer
