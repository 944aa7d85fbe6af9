"""What starts under each of the policies that a site can have for MCP servers, by the programs that really ran."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.core.site_policy import Feature, Lock, ServerPattern, SitePolicy
from jupyter_agentbox.exceptions import AgentBoxError
from jupyter_agentbox.mcp_client.configuration_files import ConfigurationFiles
from jupyter_agentbox.mcp_client.limits import ServerLimits
from jupyter_agentbox.mcp_client.project_servers import LayeredConfiguration, ProjectServers, TrustedServers
from jupyter_agentbox.mcp_client.registry import ServerRegistry
from jupyter_agentbox.mcp_client.servers import McpServers
from jupyter_agentbox.mcp_client.site_servers import SiteServers

#: Writes down with which name and how many arguments it was started.
PROGRAM = 'touch "$(dirname "$0")/ran/$(basename "$0") $#"\n'
OFF = SitePolicy(features={Feature.LOCAL_SERVERS: Lock.FORCE_OFF})
OWN = {"own.sh 0", "registered.sh 0", "written.sh 0", "added.sh 0", "project.sh 0", "git.sh 0", "git.sh 1", "link.sh 0"}


def entry(directory: Path, name: str, *arguments: str) -> dict[str, Any]:
    return {"command": "/bin/sh", "args": [str(directory / name), *arguments]}


@pytest.mark.parametrize(
    ("policy", "has_site_file", "ran"),
    [
        pytest.param("any", False, OWN | {"shadow.sh 0"}, id="user"),
        pytest.param("any", True, OWN | {"site.sh 0"}, id="site and user"),
        pytest.param("catalogue", True, {"site.sh 0", "git.sh 0"}, id="catalogue"),
        pytest.param("off", True, {"site.sh 0"}, id="site"),
        pytest.param("off", False, set(), id="off"),
    ],
)
async def test_under_each_policy_for_servers_these_programs_run_and_no_others(
    tmp_path: Path, policy: str, has_site_file: bool, ran: set[str]
) -> None:
    (tmp_path / "ran").mkdir()
    for name in ("registered", "written", "own", "added", "project", "git", "site", "shadow"):
        (tmp_path / f"{name}.sh").write_text(PROGRAM)
    (tmp_path / "link.sh").symlink_to(tmp_path / "git.sh")  # what a list allows, by another name
    files = {
        "mcp.json": {
            "own": entry(tmp_path, "own.sh"),
            "listed": entry(tmp_path, "git.sh"),
            "more": entry(tmp_path, "git.sh", "--all"),
            "linked": entry(tmp_path, "link.sh"),
            "site": entry(tmp_path, "shadow.sh"),  # the name of one of the site's
        },
        "added-servers.json": {"added": entry(tmp_path, "added.sh")},
        ".mcp.json": {"project": entry(tmp_path, "project.sh")},
        **({"agentbox_mcp.json": {"site": entry(tmp_path, "site.sh")}} if has_site_file else {}),
    }
    for file, servers in files.items():
        (tmp_path / file).write_text(json.dumps({"mcpServers": servers}))
    listed = ServerPattern(command=("/bin/sh", str(tmp_path / "git.sh")))
    site = {"any": SitePolicy(), "catalogue": SitePolicy(allowed=(listed,)), "off": OFF}[policy]
    users = ConfigurationFiles([tmp_path / "mcp.json", tmp_path / "added-servers.json"], os.environ)
    project = ProjectServers(tmp_path, os.environ, TrustedServers(tmp_path / "trusted.json"))
    project.trust("project", project.find("project").key)
    source = SiteServers(
        LayeredConfiguration(users, project),
        policy=lambda: site,
        paths=[tmp_path / "agentbox_mcp.json"],
        why_unprotected=lambda _path: "",
        environment=os.environ,
    )
    source.load()
    # A cell writes into the user's file; and a program asks by REST to add a server, which a person allows.
    files["mcp.json"]["written"] = entry(tmp_path, "written.sh")
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": files["mcp.json"]}))
    registry = ServerRegistry(known=list, keep=lambda *_: None, limits=ServerLimits(), policy=lambda: site)
    registered = entry(tmp_path, "registered.sh")
    with suppress(AgentBoxError):
        registry.check("registered", registered)
        await registry.try_out("registered", registered)  # which starts it, once it is allowed
    servers_ = McpServers(source=source, limits=ServerLimits())
    try:
        for status in servers_.servers():
            with suppress(AgentBoxError):  # none of them is an MCP server, and some do not start
                await servers_.list_tools(status.name)
    finally:
        await servers_.aclose()

    assert {path.name for path in (tmp_path / "ran").iterdir()} == ran
