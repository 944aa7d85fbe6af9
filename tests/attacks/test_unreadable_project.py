from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_agentbox.mcp_client import jsonc
from jupyter_agentbox.mcp_client.configuration_files import ConfigurationFiles
from jupyter_agentbox.mcp_client.project_servers import LayeredConfiguration, ProjectServers, TrustedServers
from jupyter_agentbox.mcp_client.registration import object_of

from .attack import Attack

ATTACK = Attack(
    "leave a `.mcp.json` in the work directory that nothing can read (a number of 5,000 digits, endless nesting, a"
    " pipe, bytes that are no text), so that no MCP server of the user works",
    plain=False,
    control="test_who_reads_the_project_without_care_stops_at_each",
)
FILES = {
    "digits": b'{"mcpServers": {"a": {"command": "x", "timeout": 1' + b"0" * 5_000 + b"}}}",
    "nesting": b'{"mcpServers": ' * 100_000,
    "bytes": b"\xff\xfe{}",
    "half": b'{"mcpServers": {"a": {',
}


def attack(home: Path, read: Callable[[Path], set[str]]) -> bool:
    """Return whether the user's own server is lost."""
    try:
        return "mine" not in read(home)
    except (ValueError, RecursionError):
        return True


def read_without_care(home: Path) -> set[str]:
    found: set[str] = set()
    for path in (home / "mcp.json", home / "project" / ".mcp.json"):
        found |= object_of(object_of(jsonc.parse(path.read_text()))["mcpServers"]).keys()
    return found


def read_as_the_server_does(home: Path) -> set[str]:
    project = ProjectServers(home / "project", {}, TrustedServers(home / "trusted.json"))
    layered = LayeredConfiguration(ConfigurationFiles([home / "mcp.json"], {}), project).load()
    assert layered.problems
    return set(layered.servers)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"mine": {"command": "x"}}}')
    (tmp_path / "project").mkdir()
    return tmp_path


@pytest.mark.parametrize("name", FILES)
def test_who_reads_the_project_without_care_stops_at_each(home: Path, name: str) -> None:
    (home / "project" / ".mcp.json").write_bytes(FILES[name])

    assert attack(home, read_without_care)


@pytest.mark.parametrize("name", FILES)
def test_the_users_servers_are_there_whatever_the_project_has(home: Path, name: str) -> None:
    (home / "project" / ".mcp.json").write_bytes(FILES[name])

    assert not attack(home, read_as_the_server_does)


def test_a_pipe_in_the_place_of_the_file_is_not_waited_for(home: Path) -> None:
    os.mkfifo(home / "project" / ".mcp.json")

    assert not attack(home, read_as_the_server_does)
