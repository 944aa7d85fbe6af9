"""Kernels that start, restart, end and die, as real processes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from jupyter_client.manager import KernelManager

from jupyter_agentbox.protocol.kernel_actions import KERNEL_ACTIONS

from .conftest import SEND, TIMEOUT, Kernels

LOADED = "print('agentbox' in get_ipython().magics_manager.magics['line'], 'jupyter_agentbox' in globals())"


async def test_a_python_kernel_gets_the_kernel_side_and_no_new_name(kernels: Kernels) -> None:
    kernel_id = await kernels.start()
    await kernels.loaded(kernel_id)
    assert (await kernels.run(kernel_id, LOADED))["stdout"] == "True False\n"


@pytest.mark.parametrize("kernels", [False], indirect=True)
async def test_nothing_is_loaded_where_the_setting_says_so(kernels: Kernels) -> None:
    kernel_id = await kernels.start()
    assert (await kernels.run(kernel_id, LOADED))["stdout"] == "False False\n"


async def test_a_kernel_of_another_language_is_not_touched(
    kernels: Kernels, install_kernelspec: Callable[..., str]
) -> None:
    kernel_id = await kernels.start(install_kernelspec("other", language="scheme"))
    assert (await kernels.run(kernel_id, LOADED))["stdout"] == "False False\n"


@pytest.mark.parametrize("package", [None, "raise RuntimeError('broken')", "import not_there_at_all"])
async def test_a_kernel_without_a_package_that_works_is_left_alone(
    kernels: Kernels, install_kernelspec: Callable[..., str], tmp_path: Path, package: str | None
) -> None:
    (tmp_path / "elsewhere").mkdir()
    if package is None:
        # Python takes this for a module that is not there.
        package = "raise ModuleNotFoundError('No module named jupyter_agentbox', name='jupyter_agentbox')"
    (tmp_path / "elsewhere" / "jupyter_agentbox.py").write_text(package)
    kernel_id = await kernels.start(install_kernelspec("bare", env={"PYTHONPATH": str(tmp_path / "elsewhere")}))
    await kernels.loaded(kernel_id)
    done = await kernels.run(kernel_id, LOADED)
    assert (done["status"], done["stdout"], done["execution_count"]) == ("ok", "False False\n", 1)


async def test_a_restart_is_a_loss_and_a_new_line(kernels: Kernels) -> None:
    kernel_id = await kernels.start()
    await kernels.manager.restart_kernel(kernel_id)
    await kernels.heard.until(lambda: len(kernels.heard.started) == 2)
    assert (kernels.heard.started, kernels.heard.lost) == ([kernel_id, kernel_id], [kernel_id])
    await kernels.loaded(kernel_id)
    assert (await kernels.run(kernel_id, LOADED))["stdout"] == "True False\n"


async def test_a_shutdown_is_a_loss(kernels: Kernels) -> None:
    kernel_id = await kernels.start()
    await kernels.manager.shutdown_kernel(kernel_id, now=True)
    await kernels.heard.until(lambda: kernels.heard.lost == [kernel_id])


@pytest.mark.parametrize("actions", [["shutdown"], ["start"], ["restart"], ["shutdown", "start"]])
async def test_an_event_that_somebody_else_emits_ends_nothing_while_the_kernel_is_the_same_process(
    kernels: Kernels, jp_serverapp: Any, actions: list[str]
) -> None:
    kernel_id = await kernels.start()
    for action in actions:
        event = {"action": action, "msg": "", "kernel_id": kernel_id, "status": "success"}
        jp_serverapp.event_logger.emit(schema_id=KERNEL_ACTIONS, data=event)
    await kernels.run(kernel_id, "1")
    assert kernels.heard.lost == []
    await kernels.manager.restart_kernel(kernel_id)
    await kernels.heard.until(lambda: len(kernels.heard.started) == 2)
    assert (kernels.heard.started, kernels.heard.lost) == ([kernel_id, kernel_id], [kernel_id])


async def test_a_kernel_that_is_killed_is_lost_and_its_successor_followed(kernels: Kernels) -> None:
    kernel_id = await kernels.start()
    await kernels.run(kernel_id, "1")
    kernels.manager.get_kernel(kernel_id).provisioner.process.kill()
    await kernels.heard.until(lambda: kernels.heard.started.count(kernel_id) == 2)
    assert kernels.heard.lost == [kernel_id]


async def test_kernels_that_ran_before_are_followed_once(kernels: Kernels) -> None:
    kernel_id = await kernels.start()
    await kernels.lifecycle.attach_running()
    assert kernels.heard.started == [kernel_id]


async def test_nothing_is_followed_after_the_end(kernels: Kernels) -> None:
    first = await kernels.start()
    await kernels.lifecycle.aclose()
    await kernels.manager.start_kernel(kernel_name="python3")
    await asyncio.sleep(0)
    assert (kernels.heard.started, kernels.heard.lost) == ([first], [first])


async def test_kernels_leave_no_descriptor_behind(kernels: Kernels) -> None:
    async def come_and_go(times: int) -> None:
        for _ in range(times):
            kernel_id = await kernels.start()
            await kernels.run_unheard(kernel_id, "1")
            await kernels.manager.shutdown_kernel(kernel_id, now=True)
            await kernels.heard.until(lambda: kernels.heard.lost.count(kernel_id) == 1)  # noqa: B023  # awaited here

    await come_and_go(2)
    before = psutil.Process().num_fds()
    await come_and_go(6)
    # zmq closes a socket in a thread of its own, some time after it was asked to
    async with asyncio.timeout(TIMEOUT):
        while psutil.Process().num_fds() > before + 2:  # noqa: ASYNC110  # no event tells
            await asyncio.sleep(0.05)


async def test_a_line_that_breaks_is_given_up_and_its_kernel_counts_as_lost(kernels: Kernels) -> None:
    kernel_id = await kernels.start_heard()

    def break_it(*_: object, **__: object) -> None:
        raise RuntimeError("nobody thought of this")

    kernels.heard.message_received = break_it  # type: ignore[method-assign]
    await kernels.run_unheard(kernel_id, SEND.format(data=1))
    await kernels.heard.until(lambda: kernels.heard.lost == [kernel_id])


async def test_nothing_is_kept_of_a_kernel_that_is_gone(kernels: Kernels) -> None:
    kernel_id = await kernels.start()
    await kernels.manager.shutdown_kernel(kernel_id, now=True)
    await kernels.heard.until(lambda: kernels.heard.lost == [kernel_id])
    await kernels.lifecycle._detach_locked(kernel_id)  # as when it is noticed late that it died
    assert dict(kernels.lifecycle._locks) == {}


async def test_a_kernel_that_gives_no_ports_is_not_followed_and_the_log_says_what_to_do(
    kernels: Kernels, caplog: pytest.LogCaptureFixture
) -> None:
    kernels.lifecycle._connect("k1", KernelManager())
    assert kernels.heard.started == []
    assert "Start it by a kernel provisioner that gives the ports of its connection" in caplog.text
