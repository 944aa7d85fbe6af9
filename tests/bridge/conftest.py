"""Real kernels under a kernel manager like the server's, and a listener that writes down what it hears."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager

from jupyter_agentbox.bridge.lifecycle import KernelLifecycle
from jupyter_agentbox.core.calls import JsonObject, JsonValue
from jupyter_agentbox.core.ports import KernelChannel

TIMEOUT = 60
#: A comm message as the kernel side sends it, by hand.
SEND = """
from comm import create_comm
create_comm(target_name="t", comm_id="agentbox-test", primary=False).send(data={data!r})
"""


class Heard:
    """A `KernelListener` that remembers."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.lost: list[str] = []
        self.messages: list[tuple[str, str, JsonValue]] = []
        self.weights: list[int] = []
        self.channels: dict[str, KernelChannel] = {}
        self._changed = asyncio.Event()

    def kernel_started(self, kernel_id: str, channel: KernelChannel) -> None:
        """Remember the channel."""
        self.started.append(kernel_id)
        self.channels[kernel_id] = channel
        self._changed.set()

    def message_received(self, kernel_id: str, comm_id: str, data: JsonValue, *, weight: int) -> None:
        """Remember the message."""
        self.weights.append(weight)
        self.messages.append((kernel_id, comm_id, data))
        self._changed.set()

    async def kernel_lost(self, kernel_id: str) -> None:
        """Remember that it is gone."""
        self.lost.append(kernel_id)
        self._changed.set()

    async def until(self, holds: Callable[[], bool], *, within: float = TIMEOUT) -> None:
        """Wait until this holds."""
        async with asyncio.timeout(within):
            while not holds():
                self._changed.clear()
                await self._changed.wait()


class Kernels:
    """A server's kernel manager, followed by a `KernelLifecycle`."""

    def __init__(self, manager: AsyncMappingKernelManager, heard: Heard, lifecycle: KernelLifecycle) -> None:
        self.manager = manager
        self.heard = heard
        self.lifecycle = lifecycle

    async def start(self, name: str = "python3") -> str:
        """Start a kernel and wait until it is followed."""
        kernel_id: str = await self.manager.start_kernel(kernel_name=name)
        await self.heard.until(lambda: kernel_id in self.heard.started)
        return kernel_id

    async def loaded(self, kernel_id: str) -> None:
        """Wait until the kernel has run what loads the kernel side: another client's code may come to it earlier."""
        async with asyncio.timeout(TIMEOUT):
            await self.lifecycle._loads[kernel_id]

    async def start_heard(self) -> str:
        """Start a kernel and wait until what it says is heard: what it publishes before that is lost."""
        kernel_id = await self.start()
        number = 0
        async with asyncio.timeout(TIMEOUT):
            while not self.heard.messages:
                number += 1
                await self.run_unheard(kernel_id, SEND.format(data=number))
                with suppress(TimeoutError):
                    await self.heard.until(lambda: bool(self.heard.messages), within=0.1)
            await self.heard.until(lambda: self.heard.messages[-1][2] == number)
        self.heard.messages.clear()
        return kernel_id

    @asynccontextmanager
    async def client(self, kernel_id: str) -> AsyncIterator[AsyncKernelClient]:
        """Connect as a page does."""
        client = AsyncKernelClient(connection_file=self.manager.get_kernel(kernel_id).connection_file)
        client.load_connection_file()
        client.start_channels(hb=False)
        try:
            await client.wait_for_ready(timeout=TIMEOUT)
            yield client
        finally:
            client.stop_channels()

    async def run(self, kernel_id: str, code: str) -> JsonObject:
        """Run code and return the reply; what it printed is in ``stdout``."""
        printed: list[str] = []

        def hook(message: Any) -> None:
            if message["msg_type"] == "stream":
                printed.append(message["content"]["text"])

        async with self.client(kernel_id) as client:
            reply = await client.execute_interactive(code, timeout=TIMEOUT, output_hook=hook)
        return {**reply["content"], "stdout": "".join(printed)}

    async def run_unheard(self, kernel_id: str, code: str) -> None:
        """Run code that may break every reader of its output."""
        client = AsyncKernelClient(connection_file=self.manager.get_kernel(kernel_id).connection_file)
        client.load_connection_file()
        client.start_channels(iopub=False, hb=False)
        try:
            reply = await client.execute(code, reply=True, timeout=TIMEOUT)
        finally:
            client.stop_channels()
        assert reply["content"]["status"] == "ok", reply["content"]


@pytest.fixture
def install_kernelspec(jp_data_dir: Path) -> Callable[..., str]:
    """Install a kernelspec for one test."""
    folder = jp_data_dir / "kernels"

    def install(name: str, *, language: str = "python", env: dict[str, str] | None = None) -> str:
        (folder / name).mkdir(parents=True)
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        spec = {"argv": argv, "display_name": name, "language": language, "env": env or {}}
        (folder / name / "kernel.json").write_text(json.dumps(spec))
        return name

    return install


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let kernels find the package and nothing of the user."""
    root = str(Path(__file__).parents[2])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")])))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))


@pytest.fixture
def kernels(
    jp_serverapp: Any, jp_asyncio_loop: asyncio.AbstractEventLoop, request: pytest.FixtureRequest, environment: None
) -> Iterator[Kernels]:
    """A server's kernel manager, followed. Parametrise indirectly to turn ``load_kernel_side`` off."""
    heard = Heard()
    lifecycle = KernelLifecycle(
        kernels=jp_serverapp.kernel_manager,
        events=jp_serverapp.event_logger,
        listener=heard,
        load_kernel_side=getattr(request, "param", True),
    )
    kernels = Kernels(jp_serverapp.kernel_manager, heard, lifecycle)
    yield kernels

    async def close() -> None:
        await kernels.lifecycle.aclose()
        await kernels.manager.shutdown_all(now=True)

    jp_asyncio_loop.run_until_complete(close())
