"""The servers of other programs, as they could be added here."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.mcp_client.other_programs import FoundServer, files_of, find_servers
from jupyter_agentbox.mcp_client.servers_file import ServersFile


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def found_in(place: Path, value: Any, *, project: Path, home: Path) -> list[FoundServer]:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(value if isinstance(value, str) else json.dumps(value))
    return find_servers(project=project, home=home)


def only(place: Path, entry: Any, *, project: Path, home: Path, name: str = "shop") -> FoundServer:
    (found,) = found_in(place, {"mcpServers": {name: entry}}, project=project, home=home)
    return found


def test_all_places_are_looked_at_and_none_has_to_exist(project: Path, home: Path) -> None:
    assert find_servers(project=project, home=home) == []
    for number, (_, path) in enumerate(files_of(project=project, home=home)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"mcpServers": {f"s{number}": {"command": "x"}}}))
    found = find_servers(project=project, home=home)
    assert [server.name for server in found] == [f"s{number}" for number in range(7)]
    assert {server.program for server in found} == {"VS Code", "Cursor", "Claude Code", "Claude Desktop"}
    assert all(server.configuration == {"command": "x"} and not server.refused for server in found)


def test_vs_codes_inputs_and_variables_become_variables_of_the_environment(project: Path, home: Path) -> None:
    entry = {
        "type": "stdio",
        "command": "${workspaceFolder}/bin/shop",
        "args": ["--db", "${input:db-file}", "${userHome}/x"],
        "env": {"SHOP_KEY": "${input:shop-key}", "REGION": "${env:REGION}"},
    }
    found = only(project / ".vscode" / "mcp.json", entry, project=project, home=home)
    assert found.configuration == {
        "type": "stdio",
        "command": f"{project}/bin/shop",
        "args": ["--db", "${DB_FILE}", f"{home}/x"],
        "env": {"SHOP_KEY": "${SHOP_KEY}", "REGION": "${REGION}"},
    }
    assert len(found.notes) == 2
    assert "`db-file`" in found.notes[0]
    assert "`SHOP_KEY`" in found.notes[1]


@pytest.mark.parametrize("text", ["${config:shop.key}", "${command:pickKey}", "${file}", "${input:}"])
def test_what_nothing_here_stands_for_is_refused_in_words(project: Path, home: Path, text: str) -> None:
    found = only(project / ".vscode" / "mcp.json", {"command": "x", "args": [text]}, project=project, home=home)
    assert found.configuration is None
    assert text in found.refused


def test_claudes_own_variables_stay(project: Path, home: Path) -> None:
    entry = {"url": "https://x.example/${PART:-mcp}", "type": "http"}
    found = only(project / ".mcp.json", entry, project=project, home=home)
    assert found.configuration == entry


@pytest.mark.parametrize(
    ("entry", "expected", "variable"),
    [
        (
            {"command": "x", "env": {"A_TOKEN": "s3cret"}},
            {"command": "x", "env": {"A_TOKEN": "${A_TOKEN}"}},
            "A_TOKEN",
        ),
        (
            {"url": "https://x.example/", "headers": {"Authorization": "Bearer s3cret"}},
            {"url": "https://x.example/", "headers": {"Authorization": "Bearer ${SHOP_AUTHORIZATION}"}},
            "SHOP_AUTHORIZATION",
        ),
        (
            {"command": "x", "args": ["--api-key", "s3cret", "--port", "7"]},
            {"command": "x", "args": ["--api-key", "${SHOP_API_KEY}", "--port", "7"]},
            "SHOP_API_KEY",
        ),
        (
            {"command": "x", "args": ["--token=s3cret"]},
            {"command": "x", "args": ["--token=${SHOP_TOKEN}"]},
            "SHOP_TOKEN",
        ),
        (
            {"url": "https://x.example/", "headersHelper": "login --password s3cret 'a b'"},
            {"url": "https://x.example/", "headersHelper": "login --password '${SHOP_PASSWORD}' 'a b'"},
            "SHOP_PASSWORD",
        ),
    ],
)
def test_no_secret_is_copied(project: Path, home: Path, entry: Any, expected: Any, variable: str) -> None:
    found = only(home / ".cursor" / "mcp.json", entry, project=project, home=home)
    assert found.configuration == expected
    assert "s3cret" not in repr(found)
    assert any(f"`{variable}`" in note for note in found.notes)


def test_a_secret_in_an_address_is_refused_and_not_repeated(project: Path, home: Path) -> None:
    entry = {"url": "https://x.example/?api_key=s3cret"}
    found = only(home / ".cursor" / "mcp.json", entry, project=project, home=home)
    assert (found.configuration, "s3cret" in repr(found)) == (None, False)
    assert "`${NAME}`" in found.refused


def test_an_address_whose_secret_is_a_reference_is_translated(project: Path, home: Path) -> None:
    entry = {"url": "https://x.example/?api_key=${env:SHOP_KEY}"}
    found = only(home / ".cursor" / "mcp.json", entry, project=project, home=home)
    assert found.configuration == {"url": "https://x.example/?api_key=${SHOP_KEY}"}


def test_claude_code_keeps_servers_for_one_project(project: Path, home: Path) -> None:
    value = {
        "mcpServers": {"mine": {"command": "x"}},
        "projects": {str(project): {"mcpServers": {"here": {"command": "y"}}}, "/other": {"mcpServers": {"there": {}}}},
    }
    found = found_in(home / ".claude.json", value, project=project, home=home)
    assert {server.name for server in found} == {"mine", "here"}


def test_what_nothing_reads_is_left_out_and_told_and_places_become_absolute(project: Path, home: Path) -> None:
    entry = {"command": "x", "alwaysAllow": ["rm"], "cwd": "sub", "envFile": ".env"}
    path = project / ".cursor" / "mcp.json"
    found = only(path, entry, project=project, home=home)
    assert found.configuration == {
        "command": "x",
        "cwd": str(path.parent / "sub"),
        "envFile": str(path.parent / ".env"),
    }
    assert any("`alwaysAllow`" in note for note in found.notes)


@pytest.mark.parametrize(
    ("name", "usable"), [("my shop", "my-shop"), ("7", "server-7"), ("\u202e", "server"), ("a/b", "a-b")]
)
def test_a_name_becomes_one_that_can_be_used(project: Path, home: Path, name: str, usable: str) -> None:
    assert only(home / ".claude.json", {"command": "x"}, project=project, home=home, name=name).name == usable


@pytest.mark.parametrize("entry", [7, {}, {"command": 7}, {"url": "sse", "type": "sse"}, {"command": "x", "args": "y"}])
def test_an_entry_that_cannot_be_used_says_why(project: Path, home: Path, entry: Any) -> None:
    found = only(home / ".claude.json", entry, project=project, home=home)
    assert found.configuration is None
    assert found.refused


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "\x00"])
def test_a_file_that_cannot_be_read_says_so_and_hides_no_other(project: Path, home: Path, text: str) -> None:
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"mine": {"command": "x"}}}))
    broken, mine = found_in(project / ".vscode" / "mcp.json", text, project=project, home=home)
    assert str(project / ".vscode" / "mcp.json") in broken.refused
    assert mine.name == "mine"


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(project: Path, home: Path) -> None:
    (project / ".vscode").mkdir()
    os.mkfifo(project / ".vscode" / "mcp.json")
    (broken,) = find_servers(project=project, home=home)
    assert "not an ordinary file" in broken.refused


def test_whatever_is_found_can_be_added(project: Path, home: Path, tmp_path: Path) -> None:
    entry = {"command": "x", "args": ["--token", "t"], "env": {"A_KEY": "k"}, "headers": {"X": "y"}, "gallery": 1}
    found = only(home / ".claude.json", entry, project=project, home=home)
    assert found.configuration is not None
    file = ServersFile(tmp_path / "mcp.json", known=list, environment={})
    assert file.preview(found.name, found.configuration).starts == "x --token '${SHOP_TOKEN}'"
