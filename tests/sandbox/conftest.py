"""Real kernels in real sandboxes."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.sandbox_settings import SANDBOX_LEVELS
from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.sandbox.install import kernelspec
from jupyter_agentbox.sandbox.server.probes import select_level

TIMEOUT = 60


@dataclass
class Sandboxed:
    """A kernel in a sandbox."""

    manager: AsyncKernelManager
    client: AsyncKernelClient
    said: list[str] = field(default_factory=list)

    async def run(self, code: str, *, answer: str | None = None) -> str:
        """Run a cell; return what it printed, and the error that it raised."""
        said: list[str] = []

        def listen(message: dict[str, Any]) -> None:
            content = message["content"]
            if message["msg_type"] == "stream" and content["name"] == "stdout":
                said.append(content["text"])
            elif message["msg_type"] == "error":
                said.append(f"{content['ename']}: {content['evalue']}")

        await self.client.execute_interactive(
            code,
            output_hook=listen,
            stdin_hook=lambda _: self.client.input(answer or ""),
            allow_stdin=answer is not None,
            timeout=TIMEOUT,
        )
        return "".join(said).strip()

    async def begin(self, code: str) -> asyncio.Task[str]:
        """Begin a cell that first prints a line; return when it has.

        Do not flush the line if you interrupt the cell: it can lose an interrupt in a flush, or stay busy after it.
        """
        began = asyncio.Event()
        said: list[str] = []

        def listen(message: dict[str, Any]) -> None:
            content = message["content"]
            if message["msg_type"] == "stream":
                began.set()
            elif message["msg_type"] == "error":
                said.append(content["ename"])

        async def cell() -> str:
            await self.client.execute_interactive(code, output_hook=listen, timeout=TIMEOUT)
            return "".join(said)

        task = asyncio.create_task(cell())
        async with asyncio.timeout(TIMEOUT):
            await began.wait()
        return task

    async def restart(self) -> None:
        """Restart the kernel; return when its client hears it again, else what it says first would be missed."""
        await self.manager.restart_kernel(now=True)
        await self.client.wait_for_ready(timeout=TIMEOUT)


Start = Callable[..., AbstractAsyncContextManager[Sandboxed]]


def can_reach(level: Isolation) -> None:
    """Skip a test of a level that this machine does not allow."""
    if not entry_points(group="jupyter_client.kernel_provisioners", name="agentbox-sandbox"):
        pytest.skip("the provisioner is not registered: install the package again")
    try:
        select_level([level])
    except SandboxRefusedError as refusal:
        pytest.skip(str(refusal))


@pytest.fixture(params=SANDBOX_LEVELS, ids=lambda level: level.value)
def level(request: pytest.FixtureRequest) -> Isolation:
    """Every level that this machine can reach."""
    can_reach(request.param)
    found: Isolation = request.param
    return found


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A work directory."""
    made = tmp_path / "home" / "project"
    made.mkdir(parents=True)
    return made


def furnish(root: Path, patch: pytest.MonkeyPatch) -> None:
    """Put the home directory and Jupyter's below a place of ours."""
    for name in ("HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        place = root / name.removeprefix("JUPYTER_").removesuffix("_DIR").lower()
        place.mkdir(exist_ok=True)
        patch.setenv(name, str(place))


@pytest.fixture
def places(tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory and Jupyter's places of its own."""
    furnish(tmp_path, monkeypatch)
    return tmp_path


def manager_of(level: Isolation, places: Path, **config: Any) -> AsyncKernelManager:
    """Return the manager of a kernel that is not started."""
    spec = kernelspec(sys.executable, display_name="sandbox", config={"levels": [level.value], **config})
    manager = AsyncKernelManager(
        kernel_name="sandbox", connection_file=str(places / "runtime" / f"kernel-{os.urandom(4).hex()}.json")
    )
    manager._kernel_spec = KernelSpec(**spec)
    return manager


@asynccontextmanager
async def started(manager: AsyncKernelManager, cwd: Path | None) -> AsyncIterator[Sandboxed]:
    """Start a kernel in a directory, or without one, and end it."""
    await manager.start_kernel(**({} if cwd is None else {"cwd": str(cwd)}))
    client = manager.client()
    client.start_channels()
    try:
        await client.wait_for_ready(timeout=TIMEOUT)
        yield Sandboxed(manager, client)
    finally:
        client.stop_channels()
        await manager.shutdown_kernel(now=True)


@pytest.fixture
def start(level: Isolation, work: Path, places: Path) -> Start:
    """Starts a kernel at a level."""

    def start(*, cwd: Path | None = work, **config: Any) -> AbstractAsyncContextManager[Sandboxed]:
        return started(manager_of(level, places, **config), cwd)

    return start
