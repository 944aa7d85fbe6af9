"""What a real JupyterHub gives a user's server to act with is in the environment of no kernel and no MCP server."""

from __future__ import annotations

import json
from pathlib import Path

from .hub import API, OWNER, Hub, Session, mcp_server, pid_of_server, run


def environment_of(text: str) -> dict[str, str]:
    return dict(entry.split("=", 1) for entry in text.split("\0") if "=" in entry)


def test_no_kernel_and_no_mcp_server_has_a_credential_of_its_users_server(hub: Hub) -> None:
    home = hub.root / "homes" / OWNER
    process = Path("/proc") / str(pid_of_server(home)) / "environ"
    of_server = environment_of(process.read_text())
    credentials = {value for name, value in of_server.items() if name.endswith(("TOKEN", "SECRET", "PASSWORD"))}
    assert of_server["JUPYTERHUB_API_TOKEN"] in credentials
    assert "JUPYTERHUB_CLIENT_ID" in of_server

    with hub.kernel() as kernel:
        of_kernel = json.loads(run(kernel, "import json, os\nprint(json.dumps(dict(os.environ)))"))
    # It is no MCP server, and says what environment one has.
    seen = home / "seen-environment"
    program = {"command": "/bin/sh", "args": ["-c", f"cat /proc/$$/environ > {seen}"], "env": {"MINE": "named"}}
    with mcp_server(hub, "curious", program):
        owner = Session(hub, OWNER)
        owner.open_lab(hub.server())
        owner.ask(f"{hub.server()}{API}servers/curious/start", {})
    of_mcp_server = environment_of(seen.read_text())
    seen.unlink()

    for name, environment in (("kernel", of_kernel), ("MCP server", of_mcp_server)):
        assert "PATH" in environment, name
        assert not credentials & {*environment.values()}, name
        assert not {one for one in environment if one in ("JUPYTERHUB_API_TOKEN", "JPY_API_TOKEN")}, name
    assert of_mcp_server["MINE"] == "named"
    assert not [one for one in of_mcp_server if one.startswith("JUPYTERHUB_")]
