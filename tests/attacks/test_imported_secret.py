from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.exceptions import ServerConfigurationError
from jupyter_agentbox.mcp_client.other_programs import find_servers
from jupyter_agentbox.mcp_client.servers_file import check_no_secrets

from .attack import Attack

ATTACK = Attack(
    "carry a secret that another program keeps with its MCP servers to the page, and into `mcp.json`, by an import: in"
    " arguments, addresses, headers, defaults and whatever has a plain name",
    plain=False,
    control="test_the_entries_themselves_have_the_secret",
)
SECRET = "Hunter2AndMore"  # what is looked for
#: As people and the readme files of servers write them.
ENTRIES: Mapping[str, Any] = {
    "header": {"command": "npx", "args": ["mcp-remote", "--header", f"Authorization: Bearer {SECRET}"]},
    "key": {"command": "npx", "args": ["mcp-remote", "--header", f"X-Api-Key:{SECRET}"]},
    "docker": {"command": "docker", "args": ["run", "-e", f"GITHUB_TOKEN={SECRET}", "x"]},
    "long": {"command": "docker", "args": ["run", f"--env=GITHUB_TOKEN={SECRET}", "x"]},
    "env": {"command": "env", "args": [f"SHOP_KEY={SECRET}", "x"]},
    "database": {"command": "npx", "args": [f"postgresql://ada:{SECRET}@db.example/x"]},
    "variable": {"command": "npx", "env": {"DATABASE_URL": f"postgresql://ada:{SECRET}@db.example/x"}},
    "maker": {"command": "npx", "args": ["--pat", f"ghp_{SECRET}{SECRET}"]},
    "default": {"command": "npx", "env": {"API_TOKEN": f"${{API_TOKEN:-{SECRET}}}"}},
    "beside": {"command": "npx", "env": {"API_TOKEN": f"{SECRET}${{HOME}}"}},
    "scheme": {"url": "https://x.example/", "headers": {"X-Custom": f"Bearer {SECRET}"}},
    "fragment": {"url": f"https://x.example/mcp#token={SECRET}"},
    "program": {"command": f"shop --token={SECRET}"},
    "shell": {"command": "sh", "args": ["-c", f"API_TOKEN={SECRET} exec shop --token {SECRET}"]},
    "dash": {"command": "x", "args": ["--token", f"-{SECRET}"]},
}


def attack(read: Callable[[Path], Iterable[Any]], home: Path) -> list[str]:
    """Return the entries with which the secret comes through."""
    (home / ".claude.json").write_text(json.dumps({"mcpServers": ENTRIES}))
    return [name for name, found in zip(ENTRIES, read(home), strict=True) if SECRET in json.dumps(found)]


def test_the_entries_themselves_have_the_secret(tmp_path: Path) -> None:
    def copied(home: Path) -> Iterable[Any]:
        return list(json.loads((home / ".claude.json").read_text())["mcpServers"].values())

    assert attack(copied, tmp_path) == list(ENTRIES)


def test_no_secret_is_copied_and_all_of_it_can_be_added(tmp_path: Path) -> None:
    def imported(home: Path) -> Iterable[Any]:
        return [found.to_json() for found in find_servers(project=home / "project", home=home)]

    assert attack(imported, tmp_path) == []
    for found in find_servers(project=tmp_path / "project", home=tmp_path):
        check_no_secrets(found.configuration or {})


@pytest.mark.parametrize("name", sorted(ENTRIES.keys() - {"default", "beside", "env", "dash"}))
def test_no_secret_is_added_that_was_typed_or_pasted(name: str) -> None:
    with pytest.raises(ServerConfigurationError) as caught:
        check_no_secrets(ENTRIES[name])
    assert SECRET not in str(caught.value)
