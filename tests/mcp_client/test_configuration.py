from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.core.calls import JsonValue
from jupyter_agentbox.core.tools import ConfigurationProblem
from jupyter_agentbox.mcp_client.configuration import (
    Configuration,
    HttpServer,
    OAuthClient,
    StdioServer,
    UnusableServer,
    parse_configuration,
    where_to_look,
)

PATH = Path("/etc/jupyter/mcp.json")


def parse(servers: JsonValue, key: str = "mcpServers", **environment: str) -> Configuration:
    return parse_configuration(PATH, json.dumps({key: servers}), environment)


@pytest.mark.parametrize("key", ["mcpServers", "servers"])
def test_a_process_is_read_with_all_its_keys(key: str) -> None:
    entry: JsonValue = {
        "type": "stdio",
        "command": "${BIN}/shop",
        "args": ["--port", 8080, "${env:MODE}"],
        "env": {"TOKEN": "${TOKEN}", "DEBUG": True, "UNSET": None},
        "cwd": "work",
        "timeout": 30,
        "protocolEra": "legacy",
        "unknown": 1,
    }
    read = parse({"shop": entry}, key, BIN="/opt", MODE="fast", TOKEN="s3cret")
    assert read == Configuration(
        servers={
            "shop": StdioServer(
                name="shop",
                command="/opt/shop",
                args=("--port", "8080", "fast"),
                env={"TOKEN": "s3cret", "DEBUG": "true"},
                cwd="/etc/jupyter/work",
                timeout=30.0,
                protocol_era="legacy",
                secrets=("s3cret", "true"),
            )
        }
    )


def test_an_endpoint_is_read_with_all_its_keys() -> None:
    entry: JsonValue = {
        "url": "https://me:password@${HOST}/mcp?key=query-secret",
        "headers": {"Authorization": "Bearer ${TOKEN}"},
        "timeout": 1.5,
    }
    server = parse({"web": entry}, HOST="example.org", TOKEN="s3cret").servers["web"]
    assert isinstance(server, HttpServer)
    assert server.url == "https://me:password@example.org/mcp?key=query-secret"
    assert server.headers == {"Authorization": "Bearer s3cret"}
    assert {"s3cret", "Bearer s3cret", "password", "query-secret"} <= set(server.secrets)
    assert (server.timeout, server.protocol_era) == (1.5, "auto")


def test_secrets_are_in_no_repr() -> None:
    read = parse(
        {
            "shop": {"command": "x", "args": ["s3cret"], "env": {"A": "s3cret"}},
            "web": {"url": "https://s3cret@h/", "headers": {"A": "s3cret"}},
        }
    )
    assert "s3cret" not in repr(read)


def test_both_keys_are_read_and_the_first_wins() -> None:
    text = json.dumps(
        {"servers": {"a": {"command": "1"}, "b": {"command": "2"}}, "mcpServers": {"a": {"command": "3"}}}
    )
    servers = parse_configuration(PATH, text, {}).servers
    assert {name: server.command for name, server in servers.items() if isinstance(server, StdioServer)} == {
        "a": "3",
        "b": "2",
    }


@pytest.mark.parametrize(
    ("entry", "transport"),
    [
        ({"command": "${NOPE}"}, "stdio"),
        ({"command": "x", "args": ["${NOPE}"]}, "stdio"),
        ({"command": "x", "env": {"A": "${env:NOPE}"}}, "stdio"),
        ({"command": "x", "cwd": "${NOPE}"}, "stdio"),
        ({"url": "https://${NOPE}/"}, "http"),
        ({"url": "https://h/", "headers": {"A": "Bearer ${NOPE}"}}, "http"),
    ],
)
def test_an_unset_variable_makes_a_server_unusable_and_is_named(entry: JsonValue, transport: str) -> None:
    server = parse({"a": entry, "b": {"command": "x"}}).servers["a"]
    assert isinstance(server, UnusableServer)
    assert (server.transport, server.is_disabled) == (transport, False)
    assert "`NOPE`" in server.error
    assert "${NOPE}" not in server.error.split("default")[0]


def test_a_disabled_server_is_kept_and_not_wrong() -> None:
    server = parse({"a": {"command": "x", "disabled": True}}).servers["a"]
    assert isinstance(server, UnusableServer)
    assert server.is_disabled


@pytest.mark.parametrize(
    "entry",
    [
        5,
        {},
        {"command": 5},
        {"command": "x", "args": "y"},
        {"command": "x", "args": [["y"]]},
        {"command": "x", "env": ["A=1"]},
        {"command": "x\0"},
        {"command": "~nobody-here/bin/x"},
        {"command": "x", "cwd": "~nobody-here"},
        {"command": "x", "envFile": "~nobody-here/.env"},
        {"url": "http://h/", "headersHelper": "~nobody-here/bin/x"},
        {"url": "http://h/", "headers": {"A": "b "}},
        {"url": "http://h/", "headers": {"A": "b\u000bc"}},
        {"command": "x", "timeout": 0},
        {"command": "x", "timeout": "30"},
        {"command": "x", "timeout": True},
        {"command": "x", "type": "sse"},
        {"url": "ftp://h/"},
        {"url": "https:///mcp"},
        {"url": "https://h:port/"},
        {"url": "https://h/", "headers": {"A": "line\nbreak"}},
        {"url": "https://h/", "headers": {"A:": "x"}},
        {"type": "http"},
    ],
)
def test_a_malformed_server_is_reported_with_its_place_and_the_others_work(entry: JsonValue) -> None:
    text = '{\n  "mcpServers": {\n    "good": {"command": "x"},\n    "bad": ' + json.dumps(entry) + "\n}}"
    read = parse_configuration(PATH, text, {})
    (problem,) = read.problems
    assert (problem.path, problem.line, problem.column) == (str(PATH), 4, 5)
    assert "`bad`" in problem.message
    assert isinstance(read.servers["bad"], UnusableServer)
    assert isinstance(read.servers["good"], StdioServer)


def test_the_line_of_each_entry_is_known_and_is_no_part_of_the_configuration() -> None:
    text = '{"servers": {"a": {"command": "a"}, "b": {"url": "http://b/"}},\n"mcpServers": {\n"a": {"command": "a"}}}'
    read = parse_configuration(PATH, text, {})
    moved = parse_configuration(PATH, f"\n\n{text}", {})
    assert {name: where_to_look(one, has_panel=False) for name, one in startable(read).items()} == {
        "a": f"Its entry is at {PATH}:3.",
        "b": f"Its entry is at {PATH}:1.",
    }
    assert startable(moved)["a"].place == f"{PATH}:5"
    assert moved == read


def startable(read: Configuration) -> dict[str, StdioServer | HttpServer]:
    return {name: one for name, one in read.servers.items() if not isinstance(one, UnusableServer)}


def test_nobody_is_sent_nowhere() -> None:
    assert not where_to_look(StdioServer(name="a", command="a"), has_panel=False)


@pytest.mark.parametrize(
    ("bad", "column"),
    [
        ('"bad": {"command": "a"}, "bad": {"command": "b"}', 26),
        ('"bad": {"command": "a"}, /* "x": */ "b\\u0061d": {"command": "b"},', 37),
        ('"bad": {"command": "a", "command": "b"}', 25),
        ('"bad": {"command": "a", "env": {"A": "1", "A": "2"}}', 43),
        ('"bad": {"command": "a", "theirs": [{"x": 1}, {"x": 1, "x": 2}]}', 55),
    ],
)
def test_a_key_that_stands_twice_makes_its_server_unusable_and_no_other(bad: str, column: int) -> None:
    good = '"good": {"command": "x", "env": {"command": "x"}}'
    text = f'{{"inputs": 1, "inputs": 2, "mcpServers": {{{good},\n{bad}\n}}}}'
    read = parse_configuration(PATH, text, {})
    (problem,) = read.problems
    assert (problem.path, problem.line, problem.column) == (str(PATH), 2, column)
    assert read.servers["bad"] == UnusableServer(name="bad", transport="stdio", error=str(problem))
    assert isinstance(read.servers["good"], StdioServer)


def test_a_key_of_all_servers_that_stands_twice_makes_the_file_unusable() -> None:
    read = parse_configuration(PATH, '{"mcpServers": {"a": {"command": "x"}},\n "mcpServers": {}}', {})
    (problem,) = read.problems
    assert (problem.line, problem.column) == (2, 2)
    assert not read.servers


def test_broken_json_is_reported_with_line_and_column() -> None:
    read = parse_configuration(PATH, '{\n  "mcpServers": {\n    "a": {"command": "x"\n', {})
    assert read == Configuration(
        problems=(
            ConfigurationProblem(path=str(PATH), message="not valid JSON: Expecting ',' delimiter", line=4, column=1),
        )
    )


@pytest.mark.parametrize("text", ["[]", "5", '{"mcpServers": []}', "[" * 100_000])
def test_json_of_another_shape_is_reported(text: str) -> None:
    read = parse_configuration(PATH, text, {})
    assert not read.servers
    assert len(read.problems) == 1


def test_a_file_without_servers_configures_nothing() -> None:
    assert parse_configuration(PATH, "{}", {}) == Configuration()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"shop": {"command": "x"}}', 'has no "mcpServers": write {"mcpServers": {"shop": ...}}'),
        (
            '{"mcpServers": {"shop": {"comand": "x"}}}',
            'server `shop`: needs a "command", or a "url" (is "comand" a typo?)',
        ),
    ],
)
def test_a_likely_slip_is_named(text: str, message: str) -> None:
    [problem] = parse_configuration(Path("/etc/mcp.json"), text, {}).problems

    assert problem.message == message
    assert str(problem).startswith("/etc/mcp.json:1:")


def test_an_empty_file_of_servers_is_no_problem() -> None:
    assert parse_configuration(Path("/etc/mcp.json"), "{}", {}).problems == ()


SECRET = "s3cret-value"
WRONG = {
    "command": "x",
    "args": [[SECRET]],
    "env": {"TOKEN": [SECRET]},
    "cwd": [SECRET],
    "timeout": SECRET,
}


def test_all_that_is_wrong_is_told_at_once_with_key_and_line_and_without_values() -> None:
    text = json.dumps({"mcpServers": {"good": {"command": "y"}, "bad": WRONG, "worse": {"url": SECRET}}}, indent=1)
    bad, worse = parse_configuration(PATH, text, {}).problems

    lines = text.splitlines()
    assert lines[bad.line - 1].strip() == '"bad": {'
    for key, what in (
        ("args.0", "a string"),
        ("env.TOKEN", "a string"),
        ("cwd", "a string"),
        ("timeout", "a number of seconds greater than 0"),
    ):
        written = key.split(".")[-1] if key.startswith("env") else key.split(".")[0]
        line = next(number for number, text in enumerate(lines, 1) if f'"{written}":' in text)
        assert f'"{key}" must be {what} (line {line})' in bad.message
    assert '"url" must start with http:// or https://' in worse.message
    assert SECRET not in bad.message + worse.message


def test_all_variables_that_are_not_set_are_named() -> None:
    server = parse({"a": {"command": "${ONE}", "args": ["${TWO}", "${ONE}"]}}).servers["a"]
    assert isinstance(server, UnusableServer)
    assert server.error.count("`ONE`") == server.error.count("`TWO`") == 1


def test_reading_a_file_without_servers_loads_no_models() -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from jupyter_agentbox.mcp_client.configuration import parse_configuration\n"
        "parse_configuration(Path('mcp.json'), '{}', {}); print('pydantic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    "written",
    [
        {"oauth": {"clientId": "me", "clientSecret": "${SECRET}", "scopes": ["a", "b"]}},
        {"oauth": {"clientId": "me", "clientSecret": "${SECRET}", "scopes": "a b", "callbackPort": 8080}},
        {"auth": {"CLIENT_ID": "me", "CLIENT_SECRET": "${SECRET}", "scopes": ["a", "b"]}},
    ],
)
def test_how_to_sign_in_is_read_as_other_programs_write_it_and_the_secret_is_never_shown(
    tmp_path: Path, written: dict[str, Any]
) -> None:
    text = json.dumps({"mcpServers": {"web": {"url": "https://a.example/mcp", **written}}})
    server = parse_configuration(tmp_path / "mcp.json", text, {"SECRET": "s3cret"}).servers["web"]

    assert isinstance(server, HttpServer)
    assert (server.oauth.client_id, server.oauth.client_secret, server.oauth.scopes) == ("me", "s3cret", ("a", "b"))
    assert "s3cret" in server.secrets
    assert "s3cret" not in repr(server)


@pytest.mark.parametrize("switch", [True, False, None, {}])
def test_a_switch_in_the_place_of_a_client_is_none(tmp_path: Path, switch: Any) -> None:
    text = json.dumps({"mcpServers": {"web": {"url": "https://a.example/mcp", "oauth": switch}}})
    server = parse_configuration(tmp_path / "mcp.json", text, {}).servers["web"]
    assert isinstance(server, HttpServer)
    assert server.oauth == OAuthClient()


@pytest.mark.parametrize("wrong", ["me", 7, {"clientId": 7}, {"scopes": 7}])
def test_a_client_that_is_none_is_malformed(tmp_path: Path, wrong: Any) -> None:
    text = json.dumps({"mcpServers": {"web": {"url": "https://a.example/mcp", "oauth": wrong}}})
    assert '"oauth' in parse_configuration(tmp_path / "mcp.json", text, {}).problems[0].message
