from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

import pytest

from jupyter_agentbox import ExecutionError, ExecutionResult, KernelClient, KernelGateway
from tests.headless.chunks import joined
from tests.ports import kept_port
from tests.processes_alive import children, survivors


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONFIG", "DATA", "RUNTIME"):
        monkeypatch.setenv(f"JUPYTER_{name}_DIR", str(tmp_path / name.lower()))
    monkeypatch.setenv("A_SECRET", "s3cret")


async def test_clients_have_kernels_of_their_own(tmp_path: Path) -> None:
    async with (
        KernelGateway(port=0, env={"GIVEN": "yes"}, working_dir=tmp_path) as gateway,
        KernelClient(port=gateway.port, token=gateway.token, images_dir=tmp_path / "images") as one,
        KernelClient(port=gateway.port) as two,  # of this user and machine: the token is found
    ):
        await asyncio.gather(one.execute("x = 1"), two.execute("x = 2"))
        assert [(await client.execute("x")).text for client in (one, two)] == ["1", "2"]
        assert one.kernel_id != two.kernel_id

        async with KernelClient(port=gateway.port, kernel_id=one.kernel_id) as attached:
            assert (await attached.execute("x")).text == "1"
        assert (await one.execute("x")).text == "1"  # it runs on

        items = [item async for item in one.stream("print('a')\n'b'")]
        assert joined(items) == ["a\n'b'", ExecutionResult(text="a\n'b'")]
        result = await one.execute("import os; print(os.environ.get('GIVEN'), os.environ.get('A_SECRET'), os.getcwd())")
        assert result.text == f"yes None {tmp_path}"
        assert len((await one.execute("for i in range(10_000): print(i, flush=True)")).text or "") == 48_889

        with pytest.raises(ExecutionError, match="ZeroDivisionError"):
            await one.execute("1 / 0")
        with pytest.raises(asyncio.TimeoutError):
            await one.execute("while True: pass", timeout=0.3)
        assert (await one.execute("x")).text == "1"

        await one.reset()
        with pytest.raises(ExecutionError, match="NameError"):
            await one.execute("x")


async def test_what_a_gateway_refuses_is_an_error_that_says_so(tmp_path: Path) -> None:
    async with KernelGateway(port=0, working_dir=tmp_path) as gateway:
        with pytest.raises(ExecutionError, match="token"):
            await KernelClient(port=gateway.port, token="wrong").connect()
        with pytest.raises(ExecutionError, match="no such kernel"):
            await KernelClient(port=gateway.port, kernel_id="missing").connect()
        with pytest.raises(RuntimeError, match="did not start"):
            await KernelGateway(port=gateway.port).start()


async def test_a_client_waits_for_a_gateway_that_is_just_starting_if_told_to(tmp_path: Path) -> None:
    with kept_port() as port:
        gateway = KernelGateway(port=port, working_dir=tmp_path)
        client = KernelClient(port=gateway.port)
        with pytest.raises(ExecutionError, match="no Jupyter server answers"):
            await client.connect(retries=2, retry_interval=0.01)
        connecting = asyncio.ensure_future(client.connect(retries=600, retry_interval=0.1))
        async with gateway, asyncio.timeout(60):
            await connecting
            assert (await client.execute("6 * 7")).text == "42"
            await client.disconnect()


async def test_stop_ends_the_kernels_too(tmp_path: Path) -> None:
    before = children()
    async with KernelGateway(port=0, working_dir=tmp_path) as gateway:
        client = KernelClient(port=gateway.port, token=gateway.token)
        await client.connect()
        processes = children(beside=before)
        assert len(processes) >= 3
    assert not await asyncio.to_thread(survivors, processes)
    await client.disconnect()


async def test_a_gateway_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="abx-") as short:  # the path of a socket is in it
        monkeypatch.setenv("TMPDIR", short)
        monkeypatch.setattr(tempfile, "tempdir", None)
        async with (
            KernelGateway(port=0, working_dir=tmp_path) as gateway,
            KernelClient(port=gateway.port, token=gateway.token) as client,
        ):
            assert (await client.execute("1")).text == "1"

        # But the place of all of the user's run directories, which is for the next one, too.
        assert {one.name for one in Path(short).iterdir()} <= {f"agentbox-{os.getuid()}"}
