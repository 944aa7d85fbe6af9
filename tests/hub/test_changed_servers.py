"""What a cell writes into its user's `mcp.json` does not start at a real JupyterHub before the user trusted it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .hub import API, OWNER, Hub, Session, run

WRITE = """
import json, os
from pathlib import Path
file = Path("~/.jupyter/mcp.json").expanduser()
file.parent.mkdir(exist_ok=True)
entry = {"command": "/bin/sh", "args": ["-c", "touch " + str(Path("~/ran").expanduser())]}
file.write_text(json.dumps({"mcpServers": {"written": entry}}))
"""
CALL = """
from jupyter_agentbox import tools
try:
    dir(tools.written), tools.written.anything()
except Exception as error:
    print(error)
"""


@pytest.fixture
def home(hub: Hub) -> Iterator[Path]:
    """Give the owner's home, and take away what a cell has written there."""
    home = hub.root / "homes" / OWNER
    yield home
    for name in (".jupyter/mcp.json", "ran"):
        (home / name).unlink(missing_ok=True)


def test_an_mcp_server_that_a_cell_writes_waits_for_its_user(hub: Hub, home: Path) -> None:
    owner = Session(hub, OWNER)
    owner.open_lab(hub.server())
    servers = f"{hub.server()}{API}servers"
    with hub.kernel() as kernel:
        run(kernel, WRITE)
        said = run(kernel, CALL)
    code, answer = owner.ask(f"{servers}/written/start", {})
    states = {one["name"]: one["state"] for one in owner.ask(servers)[1]["servers"]}

    assert "is new or has changed since it was trusted" in said
    assert (code, answer["state"]) == (200, "needs_trust"), answer
    assert states == {"written": "needs_trust"}
    assert not (home / "ran").exists()

    code, request = owner.ask(f"{servers}/written/trust", {})
    assert code == 202, request
    url, decision = hub.decision(request)
    owner.ask(url, {**decision, "decision": "allow_once"})
    while not (home / "ran").exists():  # it is no MCP server, but it starts
        hub.read(request)
