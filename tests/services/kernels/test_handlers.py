"""The isolation of kernels, over HTTP against a real Jupyter server."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.kernel_exits import KernelExit
from jupyter_agentbox.core.sandbox_settings import SANDBOX_LEVELS
from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.sandbox.install import kernelspec
from jupyter_agentbox.sandbox.server.probes import select_level
from jupyter_agentbox.services.handlers import SETTINGS_KEY


async def isolation(jp_fetch: Any, kernel_id: str) -> Any:
    answer = json.loads((await jp_fetch("jupyter-agentbox", "kernels", kernel_id)).body)
    assert (answer.pop("id"), answer.pop("last_end")) == (kernel_id, None)
    assert (answer.pop("content_security_policy") is None) is (answer["isolation"] in (None, "none"))
    return answer["isolation"]


async def start(jp_fetch: Any, name: str) -> str:
    body = json.dumps({"name": name, "path": "work"})
    return str(json.loads((await jp_fetch("api", "kernels", method="POST", body=body)).body)["id"])


async def test_a_plain_kernel_has_none(jp_fetch: Any) -> None:
    assert await isolation(jp_fetch, await start(jp_fetch, "python3")) == "none"


async def test_a_sandboxed_kernel_has_the_level_that_it_reached_and_none_known_while_it_starts_anew(
    jp_fetch: Any, jp_serverapp: Any, jp_data_dir: Path, jp_root_dir: Path
) -> None:
    try:
        level = select_level(SANDBOX_LEVELS)
    except SandboxRefusedError as refusal:
        pytest.skip(str(refusal))
    (jp_root_dir / "work").mkdir()
    spec = kernelspec(sys.executable, display_name="boxed", config={"levels": [level.value]})
    (jp_data_dir / "kernels" / "boxed").mkdir(parents=True)
    (jp_data_dir / "kernels" / "boxed" / "kernel.json").write_text(json.dumps(spec))
    kernel_id = await start(jp_fetch, "boxed")
    assert await isolation(jp_fetch, kernel_id) == level.value
    provisioner = jp_serverapp.kernel_manager.get_kernel(kernel_id).provisioner
    backend, provisioner._backend = provisioner._backend, None
    try:
        assert await isolation(jp_fetch, kernel_id) is None
    finally:
        provisioner._backend = backend


async def test_a_kernel_that_is_not_there_has_no_known_level(jp_fetch: Any) -> None:
    assert await isolation(jp_fetch, "no-such-kernel") is None


async def test_a_level_that_nobody_knows_is_no_plain_kernel(jp_fetch: Any, jp_serverapp: Any) -> None:
    kernel_id = await start(jp_fetch, "python3")
    finder = jp_serverapp.web_app.settings[SETTINGS_KEY].isolation
    manager = jp_serverapp.kernel_manager.get_kernel(kernel_id)
    provisioner, manager.provisioner = manager.provisioner, None
    try:
        assert finder.level_of(kernel_id) is None
    finally:
        manager.provisioner = provisioner
    assert finder.level_of(kernel_id) is Isolation.NONE


async def test_a_kernels_last_end_is_said_also_when_the_kernel_is_gone(jp_fetch: Any, jp_serverapp: Any) -> None:
    kernel_exits = jp_serverapp.web_app.settings[SETTINGS_KEY].kernel_exits
    await kernel_exits.kernel_ended("k1", KernelExit(reason="its process was killed by SIGSEGV"))
    answer = json.loads((await jp_fetch("jupyter-agentbox", "kernels", "k1")).body)
    assert answer == {
        "id": "k1",
        "isolation": None,
        "content_security_policy": None,
        "last_end": kernel_exits.last_of("k1").to_json(),
    }
