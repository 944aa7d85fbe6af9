"""A sandboxed kernel of a real server: started over REST, calling a tool, refused where it must be."""

from __future__ import annotations

import asyncio
import json
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.core.sandbox import SANDBOX_LEVELS
from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.sandbox.install import kernelspec
from jupyter_agentbox.sandbox.probes import reach

from .conftest import Server

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
        return str(reach([request.param]).value)
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
        assert (await kernel.run("'orders' in globals()")).value == "False"


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
