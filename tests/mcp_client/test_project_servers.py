"""Nothing that a project's `.mcp.json` names is started or read before a person trusted exactly that."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.core.names import server_names
from jupyter_agentbox.core.tools import ServerState
from jupyter_agentbox.exceptions import ServerConfigurationError, ToolServerError, UnknownServerError
from jupyter_agentbox.mcp_client.configuration import HttpServer, StdioServer, UnusableServer
from jupyter_agentbox.mcp_client.configuration_files import ConfigurationFiles
from jupyter_agentbox.mcp_client.limits import ServerLimits
from jupyter_agentbox.mcp_client.project_servers import LayeredConfiguration, ProjectServers, TrustedServers
from jupyter_agentbox.mcp_client.servers import McpServers

ENTRY: dict[str, Any] = {
    "command": "db-server",
    "args": ["--port", "5"],
    "env": {"DB_TOKEN": "s3cret", "NODE_OPTIONS": "--trace"},
}


class Project:
    """A project, its file, and who trusts it."""

    def __init__(self, root: Path) -> None:
        self.directory = root / "project"
        self.directory.mkdir()
        self.kept = root / "data" / "trusted-servers.json"
        self.servers = self.again()

    def again(self, environment: dict[str, str] | None = None) -> ProjectServers:
        """Return what another process sees."""
        return ProjectServers(self.directory, environment or {}, TrustedServers(self.kept))

    def write(self, **entries: object) -> None:
        """Write the file."""
        (self.directory / ".mcp.json").write_text(json.dumps({"mcpServers": entries}))

    def trust(self, name: str = "db") -> None:
        """Trust what the file says now."""
        self.servers.trust(name, self.servers.find(name).key)

    def server(self, name: str = "db") -> StdioServer | UnusableServer:
        found = self.servers.load().servers[name]
        assert isinstance(found, StdioServer | UnusableServer)
        return found


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_server_of_a_project_is_unusable_until_it_is_trusted(project: Project) -> None:
    project.write(db=ENTRY)
    before = project.server()
    assert isinstance(before, UnusableServer)
    assert before.needs_trust
    assert "is not trusted yet" in before.error

    project.trust()

    after = project.server()
    assert isinstance(after, StdioServer)
    assert (after.command, dict(after.env)) == ("db-server", ENTRY["env"])
    assert isinstance(project.again().load().servers["db"], StdioServer), "and so it is for another process"


@pytest.mark.parametrize(
    "change",
    [
        {"command": "other-server"},
        {"args": ["--port", "6"]},
        {"cwd": "/tmp"},
        {"env": {**ENTRY["env"], "NODE_OPTIONS": "--require ./evil.js"}},
        {"env": {**ENTRY["env"], "DB_TOKEN": "${AWS_SECRET_ACCESS_KEY}"}},
        {"env": {**ENTRY["env"], "LD_PRELOAD": "./evil.so"}},
        {"url": "https://example.org/mcp"},
        {"type": "http", "url": "https://example.org/mcp"},
        {"headers": {"X-Other": "1"}},
        {"unheard": "of"},
    ],
)
def test_entry_that_says_something_else_is_asked_about_again(project: Project, change: dict[str, Any]) -> None:
    project.write(db=ENTRY)
    project.trust()
    project.write(db={**ENTRY, **change})
    found = project.server()
    assert isinstance(found, UnusableServer)
    assert "has changed since it was trusted" in found.error
    assert project.servers.find("db").trusted_before == {
        **ENTRY,
        "env": {"DB_TOKEN": "*** (hidden, 6 characters)", "NODE_OPTIONS": "--trace"},
    }


@pytest.mark.parametrize(
    "change",
    [{"env": {**ENTRY["env"], "DB_TOKEN": "a new and longer one"}}, {"timeout": 5}, {"args": ["--port", "5"]}],
)
def test_new_token_or_time_limit_asks_nobody(project: Project, change: dict[str, Any]) -> None:
    project.write(db=ENTRY)
    project.trust()
    project.write(db={**ENTRY, **change})
    assert isinstance(project.server(), StdioServer)


def test_trust_is_for_one_name_in_one_project(project: Project, tmp_path: Path) -> None:
    project.write(db=ENTRY)
    project.trust()
    project.write(db=ENTRY, other=ENTRY)
    assert isinstance(project.server("other"), UnusableServer)

    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / ".mcp.json").write_text((project.directory / ".mcp.json").read_text())
    elsewhere = ProjectServers(copy, {}, TrustedServers(project.kept))
    assert isinstance(elsewhere.load().servers["db"], UnusableServer)


def test_what_was_shown_and_not_what_stands_there_now_is_trusted(project: Project) -> None:
    project.write(db=ENTRY)
    shown = project.servers.find("db")
    project.write(db={**ENTRY, "command": "evil"})
    with pytest.raises(ServerConfigurationError, match="something else"):
        project.servers.trust("db", shown.key)
    assert isinstance(project.server(), UnusableServer)


def test_trust_can_be_taken_back(project: Project) -> None:
    project.write(db=ENTRY)
    project.trust()
    project.servers.distrust("db")
    found = project.server()
    assert isinstance(found, UnusableServer)
    assert "is not trusted yet" in found.error


def test_trust_in_a_server_that_the_project_names_no_longer_can_be_taken_back(project: Project) -> None:
    project.write(db=ENTRY)
    project.trust()
    project.write()
    project.servers.distrust("db")
    with pytest.raises(UnknownServerError, match="names no MCP server `db`"):
        project.servers.distrust("db")


def test_variables_are_shown_as_they_are_written_and_expanded_only_when_trusted(project: Project) -> None:
    project.write(db={"command": "${HOME_OF_TOOLS}/db", "args": ["${AWS_KEY}"]})
    project.servers = project.again({"HOME_OF_TOOLS": "/opt", "AWS_KEY": "s3cret"})
    assert project.servers.find("db").configuration == {"command": "${HOME_OF_TOOLS}/db", "args": ["${AWS_KEY}"]}
    project.trust()
    found = project.server()
    assert isinstance(found, StdioServer)
    assert (found.command, found.args) == ("/opt/db", ("s3cret",))
    assert "s3cret" not in project.kept.read_text()


def test_file_of_variables_is_not_read(project: Project) -> None:
    os.mkfifo(project.directory / "pipe")
    project.write(db={**ENTRY, "envFile": "pipe"})
    assert "envFile" in project.server().error  # type: ignore[union-attr]  # it is unusable
    with pytest.raises(ServerConfigurationError, match="names no MCP server"):
        project.servers.find("db")


def write_pipe(path: Path) -> None:
    os.mkfifo(path)


def write_link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def write_much(path: Path) -> None:
    path.write_bytes(b" " * 1_000_001)


def write_bytes(path: Path) -> None:
    path.write_bytes(b"\xff\xfe{}")


def make_directory(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("write", [write_pipe, write_link_to_a_device, write_much, write_bytes, make_directory])
@pytest.mark.timeout(60)
def test_file_that_is_none_is_a_problem_and_holds_nobody_up(project: Project, write: Callable[[Path], None]) -> None:
    write(project.directory / ".mcp.json")
    loaded = project.servers.load()
    assert not loaded.servers
    assert [problem.path for problem in loaded.problems] == [str(project.directory / ".mcp.json")]


@pytest.mark.parametrize("name", ["notebook", "agentbox", "shоp", "a b", "x" * 65, ""])
def test_name_that_could_be_taken_for_another_is_refused(project: Project, name: str) -> None:
    project.write(**{name: ENTRY})
    found = project.servers.load().servers[name]
    assert isinstance(found, UnusableServer)
    assert found.error.startswith("malformed")
    assert not found.needs_trust


def test_record_of_trust_is_the_users_own(project: Project) -> None:
    project.write(db=ENTRY)
    project.trust()
    assert stat.S_IMODE(project.kept.stat().st_mode) == 0o600
    assert "s3cret" not in project.kept.read_text()
    project.kept.write_text("{broken")
    assert isinstance(project.again().load().servers["db"], UnusableServer), "what cannot be read trusts nothing"


def test_server_of_the_users_own_file_wins_over_a_project(project: Project, tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"db": {"command": "mine"}}}))
    project.write(db=ENTRY, more=ENTRY)
    source = LayeredConfiguration(ConfigurationFiles([tmp_path / "mcp.json"], {}), project.servers)
    loaded = source.load()
    assert {name: type(server) for name, server in loaded.servers.items()} == {
        "db": StdioServer,
        "more": UnusableServer,
    }
    assert source.load() is loaded
    project.trust("more")
    assert isinstance(source.load().servers["more"], StdioServer)


def test_server_of_a_project_does_not_take_the_python_name_of_the_users_own(project: Project, tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"git-hub": {"command": "mine"}}}))
    project.write(git_hub=ENTRY, Git_Hub=ENTRY, db=ENTRY)
    loaded = LayeredConfiguration(ConfigurationFiles([tmp_path / "mcp.json"], {}), project.servers).load()
    assert server_names(loaded.servers) == {"git-hub": "git_hub", "db": "db"}
    because = "is left out, because code would call it by the name of the server `git-hub`: rename one of them"
    assert [problem.message for problem in loaded.problems] == [f"`git_hub` {because}", f"`Git_Hub` {because}"]


def test_header_that_steers_the_server_is_shown_and_needs_new_trust(project: Project) -> None:
    headers = {"X-Bypass-Confirmation": "no", "X-Api-Key": "k3y"}
    project.write(db={"url": "https://example.org/mcp", "headers": headers})
    project.trust()
    shown = project.servers.find("db").configuration["headers"]
    assert shown == {"X-Bypass-Confirmation": "no", "X-Api-Key": "*** (hidden, 3 characters)"}
    project.write(db={"url": "https://example.org/mcp", "headers": {**headers, "X-Api-Key": "other"}})
    assert isinstance(project.servers.load().servers["db"], HttpServer)
    project.write(db={"url": "https://example.org/mcp", "headers": {**headers, "X-Bypass-Confirmation": "yes"}})
    assert isinstance(project.server(), UnusableServer)


async def test_program_of_a_project_is_not_started_before_it_is_trusted(project: Project, tmp_path: Path) -> None:
    witness = tmp_path / "started"
    project.write(db={"command": "/bin/sh", "args": ["-c", f"touch {witness}"]})
    servers = McpServers(source=project.servers, limits=ServerLimits())
    try:
        assert [status.state for status in servers.servers()] == [ServerState.NEEDS_TRUST]
        with pytest.raises(ServerConfigurationError, match="is not trusted yet"):
            await servers.list_tools("db")
        await servers.restart("db")
        assert not witness.exists()

        project.trust()

        with pytest.raises(ToolServerError, match="did not start"):
            await servers.list_tools("db")
        assert witness.exists(), "it is a program that ends, but it was started"
    finally:
        await servers.aclose()


def test_entry_that_names_nothing_to_start_is_a_problem_and_is_not_asked_about(project: Project) -> None:
    project.write(db=ENTRY, typo={"comand": "python"})
    found = project.server("typo")
    assert isinstance(found, UnusableServer)
    assert not found.needs_trust
    (problem,) = project.servers.load().problems
    assert (problem.line, problem.column > 0) == (1, True)
    assert '"comand" a typo' in problem.message
    with pytest.raises(ServerConfigurationError, match="names no MCP server `typo`"):
        project.servers.find("typo")
    assert project.server("db").needs_trust  # type: ignore[union-attr]
