"""Credentials and the environment of kernels, with real kernels."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.manager import KernelManager
from jupyter_server.services.kernels.kernelmanager import (
    AsyncMappingKernelManager,
    MappingKernelManager,
    ServerKernelManager,
)

from jupyter_agentbox.agents.threads.model_providers import KEY_VARIABLES
from jupyter_agentbox.bridge.kernel_environment import keep_credentials_out
from jupyter_agentbox.core.model_keys import MODEL_KEYS, without_model_keys
from jupyter_agentbox.core.sandbox_settings import SANDBOX_LEVELS
from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.sandbox.install import kernelspec
from jupyter_agentbox.sandbox.server.environment import looks_secret
from jupyter_agentbox.sandbox.server.probes import select_level

KEY = "sk-a-very-secret-key"
#: What acts as the server, as its user at the Hub, and as the user at what an MCP server speaks to.
TOKENS = ("JUPYTERHUB_API_TOKEN", "JPY_API_TOKEN", "JUPYTER_TOKEN", "SHOP_TOKEN", "WIKI_TOKEN")
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
NAMES = (*TOKENS, *KEYS, "JUPYTERHUB_USER", "PLACE", "AGENTBOX_TEST_VARIABLE", "FROM_SPEC", "JPY_SESSION_NAME")
TIMEOUT = 60
SITE = {"environment": ["OPENAI_API_KEY"]}
KEEP = {"keep_model_keys": True}


class OwnManager(ServerKernelManager):
    """A kernel manager as a site may configure one: it has a look at the environment, too."""

    async def pre_start_kernel(self, **kw: Any) -> Any:  # type: ignore[override]  # as its base does
        kw["env"] = {**kw.get("env", os.environ), "AGENTBOX_TEST_VARIABLE": "by the manager"}
        return await super().pre_start_kernel(**kw)


class OwnMapping(AsyncMappingKernelManager):
    """A manager of kernels as a site may configure one."""

    async def _async_start_kernel(self, **kwargs: Any) -> str:
        return await super()._async_start_kernel(**kwargs)

    start_kernel = _async_start_kernel  # type: ignore[assignment]  # as its base does


@pytest.fixture
def jp_server_config(request: pytest.FixtureRequest, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.setenv("AGENTBOX_TEST_VARIABLE", "kept")
    if getattr(request, "param", {}).get("tokens"):
        for name in (*TOKENS, "JUPYTERHUB_USER", "PLACE"):
            monkeypatch.setenv(name, f"the {name}")
        shop = {"url": "http://127.0.0.1:9/", "headers": {"Authorization": "Bearer ${SHOP_TOKEN}", "X": "${PLACE}"}}
        wiki = {"disabled": True, "command": "wiki", "env": {"TOKEN": "${env:WIKI_TOKEN:-none}"}}
        (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"shop": shop, "wiki": wiki}}))
    more = getattr(request, "param", {})
    return {
        "ServerApp": {"jpserver_extensions": {"jupyter_agentbox": True}, **more.get("ServerApp", {})},
        "MultiKernelManager": more.get("MultiKernelManager", {}),
        "SandboxProvisioner": more.get("SandboxProvisioner", {}),
        "AgentBoxApp": {
            "mcp_config_path": str(tmp_path / "mcp.json"),
            "database_url": f"sqlite:///{tmp_path / 'approvals.sqlite'}",
            **more.get("AgentBoxApp", {}),
        },
    }


async def environment_of(manager: KernelManager) -> Mapping[str, str]:
    """Return what a kernel has of the variables."""
    client = AsyncKernelClient()
    client.load_connection_info(manager.get_connection_info())
    client.start_channels(hb=False)
    try:
        await client.wait_for_ready(timeout=TIMEOUT)
        expression = (
            f"{{name: __import__('os').environ[name] for name in {NAMES!r} if name in __import__('os').environ}}"
        )
        reply = await client.execute_interactive("", user_expressions={"found": expression}, timeout=TIMEOUT)
        found: Mapping[str, str] = eval(reply["content"]["user_expressions"]["found"]["data"]["text/plain"])
        return found
    finally:
        client.stop_channels()


@pytest.mark.filterwarnings("ignore:The synchronous MappingKernelManager:DeprecationWarning")
@pytest.mark.parametrize(
    "jp_server_config",
    [
        {},
        {"ServerApp": {"kernel_manager_class": MappingKernelManager}},
        {
            "ServerApp": {"kernel_manager_class": OwnMapping},
            "MultiKernelManager": {"kernel_manager_class": f"{__name__}.OwnManager"},
        },
    ],
    indirect=True,
    ids=["jupyter", "threads", "own"],
)
async def test_a_kernel_has_no_keys_also_after_a_rename_and_a_restart(jp_fetch: Any, jp_serverapp: Any) -> None:
    body = {"path": "a.ipynb", "type": "notebook", "name": "a", "kernel": {"name": "python3"}}
    session = json.loads((await jp_fetch("api", "sessions", method="POST", body=json.dumps(body))).body)
    kernel_id = session["kernel"]["id"]
    at_first = await environment_of(jp_serverapp.kernel_manager.get_kernel(kernel_id))

    renamed = json.dumps({**session, "path": "b.ipynb", "name": "b"})
    await jp_fetch("api", "sessions", session["id"], method="PATCH", body=renamed)
    await jp_fetch("api", "kernels", kernel_id, "restart", method="POST", body="")
    afterwards = await environment_of(jp_serverapp.kernel_manager.get_kernel(kernel_id))

    for found, path in ((at_first, "/a"), (afterwards, "/b")):  # the rename did change the environment
        assert set(found) == {"AGENTBOX_TEST_VARIABLE", "JPY_SESSION_NAME"}
        assert found["JPY_SESSION_NAME"].removesuffix(".ipynb").endswith(path)
    assert os.environ["OPENAI_API_KEY"] == KEY  # the server's own, its terminals' and its models'


@pytest.mark.parametrize("jp_server_config", [{"AgentBoxApp": KEEP}], indirect=True)
async def test_a_setting_leaves_the_keys_to_kernels(jp_fetch: Any, jp_serverapp: Any) -> None:
    kernel = json.loads((await jp_fetch("api", "kernels", method="POST", body="{}")).body)
    found = await environment_of(jp_serverapp.kernel_manager.get_kernel(kernel["id"]))
    assert (found["OPENAI_API_KEY"], found["ANTHROPIC_API_KEY"]) == (KEY, KEY)


@pytest.mark.parametrize(
    ("jp_server_config", "kept"),
    [
        ({"tokens": True}, ()),
        (
            {"tokens": True, "AgentBoxApp": {"kernel_credentials": ["JUPYTERHUB_API_TOKEN", "OPENAI_API_KEY"]}},
            ("JUPYTERHUB_API_TOKEN", "OPENAI_API_KEY"),
        ),
    ],
    indirect=["jp_server_config"],
    ids=["as it is", "with the setting"],
)
async def test_a_kernel_has_no_token_of_the_server_and_no_credential_of_an_mcp_server(
    jp_fetch: Any, jp_serverapp: Any, kept: tuple[str, ...]
) -> None:
    kernel = json.loads((await jp_fetch("api", "kernels", method="POST", body="{}")).body)
    found = await environment_of(jp_serverapp.kernel_manager.get_kernel(kernel["id"]))
    assert set(found) - {"JPY_SESSION_NAME"} == {"JUPYTERHUB_USER", "PLACE", "AGENTBOX_TEST_VARIABLE", *kept}
    assert os.environ["SHOP_TOKEN"] == "the SHOP_TOKEN"  # the server, which hands it on, has it


async def test_a_kernelspec_gets_no_key_by_its_name_and_keeps_what_it_has_itself(
    jp_fetch: Any, jp_serverapp: Any, install_kernelspec: Callable[..., str]
) -> None:
    spec = install_kernelspec("keyed", env={"FROM_SPEC": "${OPENAI_API_KEY}", "ANTHROPIC_API_KEY": "of the spec"})
    kernel = json.loads((await jp_fetch("api", "kernels", method="POST", body=json.dumps({"name": spec}))).body)
    found = await environment_of(jp_serverapp.kernel_manager.get_kernel(kernel["id"]))
    assert (found["FROM_SPEC"], found["ANTHROPIC_API_KEY"]) == ("${OPENAI_API_KEY}", "of the spec")
    assert "OPENAI_API_KEY" not in found


@pytest.mark.parametrize(
    ("jp_server_config", "passes"),
    [({"SandboxProvisioner": SITE}, False), ({"SandboxProvisioner": SITE, "AgentBoxApp": KEEP}, True)],
    indirect=["jp_server_config"],
    ids=["as it is", "with the setting"],
)
async def test_a_sandbox_gets_a_key_that_settings_name_only_where_kernels_keep_keys(
    jp_fetch: Any, jp_serverapp: Any, jp_data_dir: Path, jp_root_dir: Path, passes: bool
) -> None:
    try:
        level = select_level(SANDBOX_LEVELS)
    except SandboxRefusedError as refusal:
        pytest.skip(str(refusal))
    (jp_root_dir / "work").mkdir()
    spec = kernelspec(sys.executable, display_name="boxed", config={"levels": [level.value]})
    spec["metadata"]["kernel_provisioner"]["config"]["environment"] = ["OPENAI_API_KEY"]
    (jp_data_dir / "kernels" / "boxed").mkdir(parents=True)
    (jp_data_dir / "kernels" / "boxed" / "kernel.json").write_text(json.dumps(spec))
    body = json.dumps({"name": "boxed", "path": "work"})
    kernel = json.loads((await jp_fetch("api", "kernels", method="POST", body=body)).body)

    found = await environment_of(jp_serverapp.kernel_manager.get_kernel(kernel["id"]))

    assert found.get("OPENAI_API_KEY") == (KEY if passes else None)
    assert "ANTHROPIC_API_KEY" not in found


def test_a_manager_that_cannot_update_environments_is_left_without() -> None:
    class Older:
        def pre_start_kernel(self, kernel_name: str, kwargs: dict[str, Any]) -> Any:
            return kernel_name, kwargs

    manager: Any = Older()
    keep_credentials_out(manager, without_model_keys)

    assert manager.pre_start_kernel("python3", {"env": {"OPENAI_API_KEY": KEY, "A": "1"}}) == (
        "python3",
        {"env": {"A": "1"}},
    )
    assert not hasattr(manager, "update_env")


def test_the_keys_of_all_providers_whose_models_agents_ask_are_known() -> None:
    assert set(KEY_VARIABLES.values()) <= MODEL_KEYS
    assert [name for name in MODEL_KEYS if not looks_secret(name)] == []  # no pattern of a sandbox lets one pass
    assert without_model_keys({"openai_api_key": KEY, "HOME": "/"}) == {"HOME": "/"}
