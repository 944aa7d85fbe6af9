"""Gateways whose kernels are in a sandbox."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from jupyter_agentbox import ExecutionError, KernelClient, KernelGateway
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.sandbox_settings import SANDBOX_LEVELS
from jupyter_agentbox.exceptions import SandboxConfigError, SandboxRefusedError
from tests.processes_alive import children, survivors
from tests.sandbox.conftest import can_reach


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONFIG", "DATA", "RUNTIME"):
        monkeypatch.setenv(f"JUPYTER_{name}_DIR", str(tmp_path / name.lower()))
    monkeypatch.setenv("A_SECRET", "s3cret")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    return made


@pytest.mark.parametrize("level", SANDBOX_LEVELS, ids=lambda level: level.value)
async def test_kernels_are_in_the_sandbox_and_there_are_no_others(level: Isolation, work: Path) -> None:
    can_reach(level)
    plain = work.parent / "data" / "kernels" / "plain"
    plain.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (plain / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "Plain", "language": "python"}))
    before = children()
    config = {"levels": [level.value]}
    async with KernelGateway(port=0, env={"GIVEN": "yes"}, working_dir=work, sandbox_config=config) as gateway:
        async with KernelClient(port=gateway.port, token=gateway.token) as client:
            await client.execute("import os; open('made', 'w').close()")
            code = "print(os.getcwd(), os.environ['GIVEN'], 'A_SECRET' in os.environ)"
            assert (await client.execute(code)).text == f"{work} yes False"
            assert (work / "made").exists()
            for attack in (
                f"import socket; socket.create_connection(('127.0.0.1', {gateway.port}), timeout=5)",
                f"open({str(work.parent / 'runtime')!r} + '/jupyter_cookie_secret')",
                "os.stat('/etc/shadow').st_size and open('/etc/shadow')",
            ):
                with pytest.raises(ExecutionError, match="Error: "):
                    await client.execute(attack)
            with pytest.raises(TimeoutError):
                await client.execute("while True: pass", timeout=0.5)
            assert len((await client.execute("for i in range(10_000): print(i, flush=True)")).text or "") == 48_889
            await client.reset()
            with pytest.raises(ExecutionError, match="NameError"):
                await client.execute("os")
        with pytest.raises(ExecutionError):
            await KernelClient(port=gateway.port, token=gateway.token, kernel_name="plain").connect()
        started = children(beside=before)
    assert not await asyncio.to_thread(survivors, started)


async def test_gateway_does_not_start_where_no_sandbox_can_be_made(work: Path) -> None:
    before = children()
    config = {"levels": ["bubblewrap"], "bubblewrap": "/nonexistent/bwrap"}
    with pytest.raises(SandboxRefusedError, match=r"\Ano sandbox can be made.*bwrap is not installed"):
        await KernelGateway(port=0, working_dir=work, sandbox_config=config).start()
    assert not await asyncio.to_thread(survivors, children(beside=before))


async def test_work_directory_that_would_show_what_is_private_is_refused_to_the_client(work: Path) -> None:
    can_reach(SANDBOX_LEVELS[0])
    async with KernelGateway(port=0, working_dir=work.parent, sandbox=True) as gateway:
        with pytest.raises(ExecutionError, match="would show"):
            await KernelClient(port=gateway.port, token=gateway.token).connect()


def test_settings_that_are_not_understood_are_refused_at_once() -> None:
    with pytest.raises(SandboxConfigError, match="`readble` is not a setting"):
        KernelGateway(sandbox_config={"readble": []})
