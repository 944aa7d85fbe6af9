"""What an import costs: fresh processes, compared by what they loaded."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

PRINT_MODULES = "import json, sys; print(json.dumps(sorted(sys.modules)))"

#: What belongs to the Jupyter server and must not be needed, or loaded, in a kernel.
SERVER_ONLY = {
    *("anyio", "httpx", "httpx2", "jsonschema", "jupyter_events", "jupyter_server"),
    *("jupyterlab", "mcp", "mcp_types", "psutil", "pydantic", "sqlalchemy", "starlette", "uvicorn"),
}


def loaded_by(code: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded after the code."""
    command = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, '.')\n{code}\n{PRINT_MODULES}"]
    return set(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def test_importing_the_package_loads_nothing_but_the_package() -> None:
    # `importlib` and `typing` are what the package's own lazy loading needs.
    allowed = loaded_by("import importlib, typing, __future__")

    assert loaded_by("import jupyter_agentbox") - allowed == {"jupyter_agentbox"}


@pytest.mark.parametrize(
    "code",
    [
        "from jupyter_agentbox import tools",
        "import jupyter_agentbox.kernel.extension",
        "import jupyter_agentbox.kernel.card",
        "import jupyter_agentbox.protocol.messages",
        "from jupyter_agentbox import ToolCallRejectedError",
    ],
)
def test_the_kernel_side_loads_nothing_of_the_server(code: str) -> None:
    without_us = loaded_by("import ipykernel.ipkernel, ipywidgets")  # what a kernel has loaded anyway

    loaded = {name.split(".")[0] for name in loaded_by(code) - without_us}

    assert loaded & SERVER_ONLY == set()


def test_loading_the_kernel_side_loads_nothing_of_agents() -> None:
    loaded = loaded_by("import jupyter_agentbox.kernel.extension")

    assert {name for name in loaded if "agentbox" in name and "agent_" in name} == {
        "jupyter_agentbox.kernel.agent_magic"
    }


def test_the_authorizer_of_users_servers_loads_nothing_of_the_hub_service() -> None:
    loaded = loaded_by("from jupyter_agentbox.hub import ScopeAuthorizer")

    of_jupyterhub = loaded_by("import jupyterhub.singleuser.extension")
    assert {name for name in loaded if name.startswith("jupyter_agentbox.hub.")} == {
        "jupyter_agentbox.hub.scope_authorizer"
    }
    assert (loaded - of_jupyterhub) & SERVER_ONLY == set()


def test_the_exceptions_load_nothing_but_themselves() -> None:
    ours = {name for name in loaded_by("from jupyter_agentbox import AgentBoxError") if "agentbox" in name}

    assert ours == {"jupyter_agentbox", "jupyter_agentbox.exceptions"}


def test_the_shared_messages_load_the_standard_library_only() -> None:
    loaded = {name.split(".")[0] for name in loaded_by("import jupyter_agentbox.protocol.messages")}

    assert loaded - set(sys.stdlib_module_names) - set(sys.builtin_module_names) - {"jupyter_agentbox"} <= loaded_by("")


def test_the_mcp_server_answers_its_client_before_it_loads_what_only_calls_need() -> None:
    loaded = {name.split(".")[0] for name in loaded_by("import jupyter_agentbox.mcp_server.command")}

    assert loaded & {"jsonschema", "sqlalchemy", "jupyter_server", "IPython"} == set()


def test_a_command_loads_neither_the_sdk_nor_the_libraries_that_only_others_need() -> None:
    loaded = {name.split(".")[0] for name in loaded_by("import jupyter_agentbox.cli")}

    assert loaded & {"mcp", "mcp_types", "sqlalchemy", "tornado", "jupyter_client", "psutil"} == set()


def test_a_server_that_uses_no_agent_loads_nothing_of_agents(tmp_path: Path) -> None:
    start = f"""
import os
for name in ("CONFIG", "DATA", "RUNTIME"):
    os.environ[f"JUPYTER_{{name}}_DIR"] = {str(tmp_path)!r}
from jupyter_server.serverapp import ServerApp
server = ServerApp(jpserver_extensions={{"jupyter_agentbox": True}}, root_dir={str(tmp_path)!r}, allow_root=True)
server.initialize([], new_httpserver=False)
"""

    loaded = loaded_by(start)

    assert "jupyter_agentbox.services.threads.handlers" in loaded
    agents = ("jupyter_agentbox.agents", "jupyter_agentbox.agent_composition", "pydantic_ai", "openai", "anthropic")
    assert [name for name in loaded if name.startswith(agents)] == []
