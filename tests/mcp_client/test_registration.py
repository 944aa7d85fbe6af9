from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.exceptions import ServerConfigurationError
from jupyter_agentbox.mcp_client import registration
from jupyter_agentbox.mcp_client.configuration import parse_configuration

PROGRAM: Any = {"command": "server"}


@pytest.mark.parametrize("name", ["a", "shop", "My-Shop_2", "a" * 64])
def test_plain_names_are_taken(name: str) -> None:
    registration.check_name(name, ["other"])


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "a b",
        "agentbox",
        "1st",
        "_x",
        "a.b",
        "a/b",
        "a\n",
        "a\u202eb",
        "ä",
        "a" * 65,
        "shell",
        "Shell",
        "reload",
    ],
)
def test_other_names_and_reserved_ones_are_refused(name: str) -> None:
    with pytest.raises(ServerConfigurationError):
        registration.check_name(name, [])


@pytest.mark.parametrize("known", ["my-shop", "my_shop", "My-Shop"])
def test_a_name_that_is_taken_or_reads_alike_is_refused(known: str) -> None:
    with pytest.raises(ServerConfigurationError, match=f"already an MCP server `{known}`"):
        registration.check_name("my_shop", [known])


@pytest.mark.parametrize(
    "configuration",
    [
        {},
        {"command": ""},
        {"command": "x", "args": "y"},
        {"command": "x", "type": "carrier-pigeon"},
        {"command": "x", "disabled": True},
        {"command": "x", "env": {"K": "${AGENTBOX_TEST_UNSET}"}},
        {"command": "x", "env": {"K": ["list"]}},
        {"url": "ftp://example.org"},
        {"url": "http://example.org:port/"},
        {"url": "http://example.org", "headers": {"A B": "c"}},
        {"command": "x", "timeout": float("nan")},
        {"command": "x", "cwd": "sub"},
        {"command": "x", "envFile": ".env"},
    ],
)
def test_configurations_that_cannot_work_are_refused(configuration: Any) -> None:
    with pytest.raises(ServerConfigurationError):
        registration.check_configuration("x", configuration)


def test_configurations_that_can_work_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTBOX_TEST_SET", "x")
    registration.check_configuration("x", {"command": "x", "env": {"K": "${AGENTBOX_TEST_SET}"}})
    registration.check_configuration("x", {"url": "https://example.org/mcp", "headers": {"Authorization": "Bearer x"}})


def test_a_refusal_has_no_secret() -> None:
    configuration: Any = {"url": "http://user:s3cr3t-word@[oops/?key=t0k3n-word", "headers": {"X-Key": "h3ader-word"}}

    with pytest.raises(ServerConfigurationError) as caught:
        registration.check_configuration("x", configuration)

    assert not any(secret in str(caught.value) for secret in ("s3cr3t", "t0k3n", "h3ader"))


def test_secrets_in_urls_and_headers_are_not_shown() -> None:
    configuration: Any = {
        "url": "https://ada:s3cr3t-1@example.org/mcp?api_key=s3cr3t-2&project=x",
        "headers": {"Authorization": "Bearer s3cr3t-3", "X-Auth": "Bearer ${MY_TOKEN}", "X-Project": "y"},
    }

    assert registration.masked(configuration) == {
        "url": "https://***12-characters@example.org/mcp?api_key=***8-characters&project=x",
        "headers": {
            "Authorization": "*** (hidden, 15 characters)",
            "X-Auth": "*** (hidden, 18 characters) ${MY_TOKEN}",
            "X-Project": "y",
        },
    }
    assert configuration["headers"]["Authorization"] == "Bearer s3cr3t-3"


def test_no_variable_is_hidden_whose_value_is_run_or_obeyed() -> None:
    function = "() { id > file; }"
    env: Any = {"BASH_FUNC_check_pass%%": function, "GIT_CONFIG_KEY_0": "core.fsmonitor", "SHOP_PASS": function}

    assert registration.masked({"env": env})["env"] == {**env, "SHOP_PASS": "*** (hidden, 17 characters)"}


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        ({"command": "npx", "args": ["-y", "a server", "/data"]}, "npx -y 'a server' /data"),
        (
            {"command": "db", "args": ["--token", "abcdefgh", "--url=postgres://u:secret@host/x"]},
            "db --token *** '--url=postgres://u:[redacted]@host/x'",
        ),
        (
            {"command": "db", "args": ["--key", "abcdefgh", "--pass=abcdefgh", "--keys", "--all", "x y"]},
            "db --key *** --pass=*** --keys --all 'x y'",
        ),
        ({"command": "db", "args": ["${KEY}"], "env": {"KEY": "${KEY}"}}, "db ***"),
        (
            {"url": "https://u:secret@a.example/mcp?key=abcdefgh&x=1"},
            "https://***8-characters@a.example/mcp?key=***8-characters&x=1",
        ),
        (
            {"url": "https://a.example/mcp", "headersHelper": "auth --token abcdefgh"},
            "https://a.example/mcp, with headers from: auth --token ***",
        ),
        ({"url": ""}, ""),
    ],
)
def test_a_servers_line_says_what_it_runs_without_secrets(entry: Any, line: str) -> None:
    text = json.dumps({"mcpServers": {"a": entry}})
    server = parse_configuration(Path("mcp.json"), text, {"KEY": "s3cret-s3cret"}).servers["a"]
    shown = registration.command_or_address(server)
    assert shown == line
    assert not [secret for secret in ("abcdefgh", "secret@", "s3cret") if secret in shown]


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ({"command": "db", "args": ["--pass=abcdefgh"]}, "db --pass=***"),
        (
            {"command": "db", "cwd": "/srv/db", "env": {"ZONE": "eu", "KEY": "abcdefgh"}},
            "db\ncwd: /srv/db\nenv: KEY\nenv: ZONE",
        ),
        (
            {"url": "https://a.example/mcp", "headers": {"X-Team": "a", "Authorization": "Bearer abcdefgh"}},
            "https://a.example/mcp\nheader: Authorization\nheader: X-Team",
        ),
        (
            {"command": "db", "cwd": "/srv/${env:KEY}", "env": {"KEY": "abcdefgh", "abcdefgh": "1", "A\ncwd: /b": "2"}},
            "db\ncwd: /srv/***\nenv: A cwd: /b\nenv: KEY\nenv: ***",
        ),
        (
            {"command": "sh", "args": ["-c", "export API_KEY='abcdefgh'; x"]},
            "sh -c 'export API_KEY='\"'\"'[redacted]'\"'\"'; x'",
        ),
        ({"url": ""}, ""),
    ],
)
def test_all_that_a_trust_key_covers_is_a_text_without_secrets(entry: Any, text: str) -> None:
    written = json.dumps({"mcpServers": {"a": entry}})
    server = parse_configuration(Path("mcp.json"), written, {"KEY": "abcdefgh"}).servers["a"]
    assert registration.entry_text(server) == text
