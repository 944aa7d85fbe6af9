"""What a policy file may say, and how it is told where something is wrong."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from jupyter_agentbox.core.approvers import Approvers
from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.policy import Effect, Layer, Rule
from jupyter_agentbox.core.rule_checks import (
    APPROVERS_KEYS,
    MAX_APPROVERS,
    MAX_GROUPS,
    MAX_PATTERN,
    MAX_REASON,
    MAX_TIMEOUT,
)
from jupyter_agentbox.hub.app import HubService, main
from jupyter_agentbox.hub.policy_file import MAX_VALID, MIN_VALID, PolicyFile, PolicyFileError, read_policy_file
from jupyter_agentbox.mcp_client.configuration import HttpServer, StdioServer, UnusableServer

SCHEMA: Any = json.loads((resources.files("jupyter_agentbox") / "schemas/agentbox_hub.schema.json").read_text("utf-8"))
VALIDATOR = jsonschema_rs.validator_for(SCHEMA)
RULE: dict[str, Any] = {"effect": "ask", "server": "warehouse", "tool": "*"}
SERVER = {"url": "https://warehouse.example/mcp", "headers": {"Authorization": "Bearer ${WAREHOUSE_TOKEN}"}}


def read(directory: Path, text: str | dict[str, Any], **environment: str) -> PolicyFile:
    path = directory / "policy.json"
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    return read_policy_file(path, environment)


def problems(directory: Path, text: str | dict[str, Any]) -> list[str]:
    try:
        read(directory, text)
    except PolicyFileError as error:
        return [str(problem).removeprefix(f"{directory}/policy.json:") for problem in error.problems]
    return []


def test_a_policy_has_rules_with_approvers_servers_secrets_and_auditors(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    rule = {**RULE, "approvers": {"group": "data-stewards", "count": 2}, "reason": "costly", "timeout": 60}
    text = {"rules": [rule], "mcpServers": {"warehouse": SERVER}, "secrets": {"WAREHOUSE_TOKEN": "token"}}

    found = read(tmp_path, {**text, "auditors": ["auditors"]})

    (read_rule,) = found.policy.rules
    assert read_rule == Rule(
        server="warehouse",
        tool="*",
        effect=Effect.ASK,
        layer=Layer.SITE,
        reason="costly",
        timeout=60.0,
        approvers=Approvers(group="data-stewards", count=2),
        file=str(tmp_path / "policy.json"),
        line=1,
    )
    server = found.servers_for({}).servers["warehouse"]
    assert isinstance(server, HttpServer)
    assert server.headers == {"Authorization": "Bearer s3cret"}
    assert found.auditors == {"auditors"}
    assert "s3cret" not in repr(found)


def test_of_rules_that_ask_the_one_that_wants_more_persons_counts(tmp_path: Path) -> None:
    one, two = ({**RULE, "approvers": {"group": "g", "count": count}} for count in (1, 2))
    found = read(tmp_path, {"rules": [RULE, one, two]})
    rule = found.policy.evaluate(ToolCall(server=RULE["server"], tool="query", arguments={})).rule
    assert rule is not None
    assert rule.approvers is not None
    assert rule.approvers.count == 2


def test_an_entry_that_names_the_user_is_each_users_own(tmp_path: Path) -> None:
    own = {"command": "serve", "env": {"USER_NAME": "${HUB_USER}", "GROUPS": "${HUB_GROUPS}"}}
    found = read(tmp_path, {"rules": [], "mcpServers": {"own": own, "shared": {"command": "serve"}}})

    assert list(found.servers_for({}).servers) == ["shared"]
    of_ada = found.servers_for({}, user="ada", groups={"b", "a"}).servers
    (server,) = of_ada.values()
    assert isinstance(server, StdioServer)
    assert server.env == {"USER_NAME": "ada", "GROUPS": "a,b"}


@pytest.mark.parametrize(
    ("user", "url"),
    [
        ("ada", "https://mcp.example.org/u/ada/mcp"),
        ("ada?", "https://mcp.example.org/u/ada%3F/mcp"),
        ("bob/../ada#", "https://mcp.example.org/u/bob%2F..%2Fada%23/mcp"),
        ("x%2f..%2fada", "https://mcp.example.org/u/x%252f..%252fada/mcp"),
        ("@evil.example", "https://mcp.example.org/u/%40evil.example/mcp"),
        ("..", None),
    ],
)
def test_a_users_name_stays_in_its_part_of_a_url(tmp_path: Path, user: str, url: str | None) -> None:
    own = {"url": "https://mcp.example.org/u/${HUB_USER}/mcp"}
    found = read(tmp_path, {"rules": [], "mcpServers": {"own": own}})
    server = found.servers_for({}, user=user).servers["own"]
    if url is None:
        assert isinstance(server, UnusableServer)
        assert "`HUB_USER` is `..`" in server.error
    else:
        assert isinstance(server, HttpServer)
        assert server.url == url


def test_a_group_whose_name_could_be_two_is_left_out(tmp_path: Path) -> None:
    own = {"command": "serve", "env": {"GROUPS": "${HUB_GROUPS}"}}
    found = read(tmp_path, {"rules": [], "mcpServers": {"own": own}})
    server = found.servers_for({}, user="ada", groups={"b", "admins,a"}).servers["own"]
    assert isinstance(server, StdioServer)
    assert server.env == {"GROUPS": "b"}


def test_a_users_name_is_no_variable(tmp_path: Path) -> None:
    own = {"command": "serve", "env": {"USER_NAME": "${HUB_USER}"}}
    found = read(tmp_path, {"rules": [], "mcpServers": {"own": own}}, KEY="s3cret")
    server = found.servers_for({"KEY": "s3cret"}, user="${KEY}").servers["own"]
    assert isinstance(server, StdioServer)
    assert server.env == {"USER_NAME": "${KEY}"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{", ["1:2: expected a key in double quotes"]),
        ("[]", ['1:1: a policy is an object with a list under "rules"']),
        ("{}", ["1:1: `rules` is missing"]),
        (
            '{"rules": [],\n "mcpServer": {}}',
            ["2:2: unknown key `mcpServer`: did you mean `mcpServers`?"],
        ),
        (
            '{"rules": [{"effect": "ask", "server": "a", "tool": "b", "approver": {"group": "g"}}]}',
            ["1:58: unknown key `approver`: did you mean `approvers`?"],
        ),
        (
            '{"rules": [{"effect": "allow", "server": "a", "tool": "b", "approvers": {"group": "g"}}]}',
            ["1:73: `approvers` are of use in a rule whose effect is `ask` only"],
        ),
        (
            '{"rules": [{"effect": "ask", "server": "a", "tool": "b",\n"approvers": {"count": 0, "self": 1}}]}',
            [
                "2:14: `group` is missing: it says whose members are asked",
                "2:24: `count` must be a number from 1 to 20",
                "2:35: `self` must be true or false",
            ],
        ),
        (
            '{"rules": [{"effect": "ask", "server": "a", "tool": "b", "isolation": "none"}]}',
            [
                (
                    "1:58: unknown key `isolation`: "
                    "a rule has effect, server, tool, arguments, groups, approvers, timeout, reason"
                )
            ],
        ),
        ('{"rules": [], "mcpServers": []}', ["1:29: `mcpServers` must be an object of servers"]),
        (
            '{"rules": [], "mcpServers": {"a b": {"command": "x"}}}',
            ["1:30: `a b` cannot be the name of a server: use letters, digits, `-` and `_`"],
        ),
        (
            '{"rules": [], "secrets": {"A": "missing"}}',
            ["1:32: the file of the secret cannot be read: No such file or directory"],
        ),
        (
            '{"rules": [], "secrets": {"A": "half\\u0000"}}',
            ["1:32: the file of the secret cannot be read: its name has a null character"],
        ),
        (
            '{"rules": [], "local": {"hub": "h", "rules": [], "central_servers": ["warehouse"]}}',
            ["1:69: `central_servers` must be true or false"],
        ),
        ('{"rules": [], "auditors": [""]}', ["1:28: the name of a group must be a non-empty string"]),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, text: str, found: list[str]) -> None:
    assert problems(tmp_path, text) == found


def test_an_entry_whose_variable_has_no_value_is_told_with_its_place(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, '{"rules": [],\n"mcpServers": {\n  "w": {"command": "x", "args": ["${NOPE}"]}}}')
    assert problem.startswith("3:3: the server `w` cannot be used: the environment variable `NOPE` is not set")


@pytest.mark.parametrize(
    "changes",
    [
        {"effect": "permit"},
        {"server": ""},
        {"notebook": "a"},
        {"isolation": "none"},
        {"approvers": {}},
        {"approvers": {"group": ""}},
        {"approvers": {"group": "g", "count": MAX_APPROVERS + 1}},
        {"approvers": {"group": "g", "self": 1}},
        {"approvers": {"group": "g", "break_glass": ""}},
        {"approvers": {"group": "g", "reason": "always"}},
        {"approvers": {"group": "g", "quorum": 1}},
        {"approvers": {"group": "g"}, "effect": "deny"},
    ],
)
def test_what_is_not_read_does_not_fit_the_schema(tmp_path: Path, changes: dict[str, Any]) -> None:
    document = {"rules": [{**RULE, **changes}]}
    assert (bool(problems(tmp_path, document)), VALIDATOR.is_valid(document)) == (True, False)


def test_the_schema_has_the_names_and_bounds_of_the_code(tmp_path: Path) -> None:
    rule = {**RULE, "arguments": {"x": ["a", 1]}, "timeout": 1, "reason": "r"}
    rule |= {"approvers": {"group": "g", "count": 1, "self": True}, "groups": ["students"]}
    document = {
        "$schema": "x",
        "rules": [rule],
        "auditors": ["a"],
        "local": {
            "hub": "h",
            "valid": MAX_VALID,
            "rules": [RULE],
            "features": {},
            "servers": {},
            "central_servers": True,
        },
        "secrets": {},
        "mcpServers": {"a": {"command": "b"}},
    }

    assert (problems(tmp_path, document), VALIDATOR.is_valid(document)) == ([], True)
    assert set(SCHEMA["properties"]) == set(document)
    local = SCHEMA["properties"]["local"]["properties"]
    assert set(local) == set(document["local"])
    assert (local["valid"]["minimum"], local["valid"]["maximum"]) == (MIN_VALID, MAX_VALID)
    of_rule = SCHEMA["$defs"]["rule"]["properties"]
    assert set(of_rule) == set(rule)
    assert of_rule["timeout"]["maximum"] == MAX_TIMEOUT
    assert of_rule["groups"]["maxItems"] == MAX_GROUPS
    assert of_rule["reason"]["maxLength"] == MAX_REASON
    assert set(of_rule["approvers"]["properties"]) == set(APPROVERS_KEYS)
    assert of_rule["approvers"]["properties"]["count"]["maximum"] == MAX_APPROVERS
    assert SCHEMA["$defs"]["pattern"]["maxLength"] == MAX_PATTERN


def test_the_command_checks_a_policy_and_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "policy.json"
    path.write_text(json.dumps({"rules": [RULE], "mcpServers": {"warehouse": {"command": "python"}}}))

    assert main(["--policy", str(path), "--check-config"]) == 0
    assert capsys.readouterr().out == f"{path}: 1 rule, 1 central server; nothing is wrong\n"
    path.write_text('{"rule": []}')
    assert main(["--policy", str(path), "--check-config"]) == 2
    assert f"{path}:1:2: unknown key `rule`: did you mean `rules`?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--polcy=x"], "there is no option `--polcy`. Did you mean `policy`?"),
        (["--HubService.keep_dayz=3"], "there is no option `--HubService.keep_dayz`. Did you mean `keep_days`?"),
        (["x.json"], "`x.json` is not an option"),
    ],
)
def test_an_option_that_does_not_exist_is_refused(
    tmp_path: Path, options: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "policy.json"
    path.write_text(json.dumps({"rules": []}))
    assert main([f"--policy={path}", "--check-config", *options]) == 2
    assert says in capsys.readouterr().err


def test_of_two_groups_the_one_that_is_not_asked_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = [
        {**RULE, "tool": "drop_*", "approvers": {"group": "security"}},
        {**RULE, "approvers": {"group": "everyone", "count": 2, "self": True}},
    ]
    path = tmp_path / "policy.json"
    for order in (rules, rules[::-1]):
        path.write_text(
            json.dumps({"rules": order, "mcpServers": {"warehouse": {"command": sys.executable}}}, indent=1)
        )
        assert main([f"--policy={path}", "--check-config"]) == 0
        noted = "do not ask `security`: it asks 2 persons of `everyone`" in capsys.readouterr().err
        assert noted is (order is rules)


OAUTH = {"clientId": "agentbox", "clientSecret": "${WAREHOUSE_TOKEN}", "scopes": ["read"]}


@pytest.mark.parametrize("key", ["oauth", "auth"])
def test_a_server_to_which_each_user_signs_in_runs_once_for_each(tmp_path: Path, key: str) -> None:
    url = {"url": "https://crm.example/mcp"}
    servers = {
        "crm": {**url, key: OAUTH},
        "mail": {**url, key: True},
        "wiki": {**url, key: False},
        "chat": {**url, key: None},
    }
    found = read(tmp_path, {"rules": [], "mcpServers": servers}, WAREHOUSE_TOKEN="s3cret")
    assert found.sign_in_servers == found.own_servers == {"crm", "mail"}
    assert list(found.servers_for({}).servers) == ["wiki", "chat"]
    own = found.servers_for({"WAREHOUSE_TOKEN": "s3cret"}, user="ada").servers["crm"]
    assert isinstance(own, HttpServer)
    assert (own.oauth.client_id, own.oauth.client_secret, own.oauth.scopes) == ("agentbox", "s3cret", ("read",))


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ({"command": "python"}, "1:30: the server `crm` has `oauth`, but it is a program: people sign in to servers"),
        (
            {"url": "https://crm.example/mcp", "headersHelper": "token"},
            "the server `crm` has `oauth` and `headersHelper`: remove one of them",
        ),
        ({"url": "http://crm.example/mcp"}, "nobody can sign in to the server `crm`: its `url` must begin with https"),
        (
            {"url": "https://crm.example/mcp", "headers": {"authorization": "Bearer s3cret"}},
            "the server `crm` has `oauth` and an `Authorization` header: remove the header if each user signs in",
        ),
    ],
)
def test_a_server_to_which_nobody_can_sign_in_is_an_error(tmp_path: Path, entry: dict[str, Any], says: str) -> None:
    (problem,) = problems(tmp_path, {"rules": [], "mcpServers": {"crm": {**entry, "oauth": True}}})
    assert says in problem
    assert "s3cret" not in problem


@pytest.mark.parametrize(
    ("oauth", "says"),
    [
        ({"clientID": "agentbox"}, "1:82: unknown key `clientID`: did you mean `clientId`?"),
        ({"clientId": "agentbox", "scope": ["read"]}, "1:106: unknown key `scope`: did you mean `scopes`?"),
        ({"clientSecret": "s3cret"}, "the server `crm` has a `clientSecret` without a `clientId`"),
        ({"clientId": "${CRM_ID}"}, "`CRM_ID` is not set: add it to `secrets` or to the service's environment, or"),
        ("true", '"oauth" must be an object, true or false'),
    ],
)
def test_a_mistake_in_the_settings_of_a_sign_in_is_an_error(tmp_path: Path, oauth: Any, says: str) -> None:
    servers = {"crm": {"url": "https://crm.example/mcp", "oauth": oauth}}
    (problem,) = problems(tmp_path, {"rules": [], "mcpServers": servers})
    assert says in problem
    assert "s3cret" not in problem


def test_a_key_of_an_entry_that_has_no_meaning_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "policy.json"
    servers = {"crm": {"url": "https://crm.example/mcp", "oAuth": True, "timeout": 60}}
    path.write_text(json.dumps({"rules": [], "mcpServers": servers}))
    assert main([f"--policy={path}", "--check-config"]) == 0
    noted = "the key `oAuth` of the server `crm` has no meaning here. Did you mean `oauth`?"
    assert capsys.readouterr().err == f"note: {path}: {noted}\n"


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("https://hub.example/services/agentbox/", ""),
        ("http://127.0.0.1:8000/services/agentbox/", ""),
        ("http://hub.example/services/agentbox/", "the address that people open does not begin with https"),
        ("/services/agentbox/", "`HubService.public_url` is not set to the address that people open"),
    ],
)
def test_an_address_to_which_no_provider_sends_people_back_is_noted(
    tmp_path: Path, address: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "policy.json"
    servers = {"crm": {"url": "https://crm.example/mcp", "oauth": True}}
    path.write_text(json.dumps({"rules": [], "mcpServers": servers}))
    assert main([f"--policy={path}", "--check-config", f"--HubService.public_url={address}"]) == 0
    noted = capsys.readouterr().err
    assert noted == (f"note: {path}: nobody can sign in to the server `crm`, because {why}\n" if why else "")


@pytest.mark.parametrize("address", ["https://hub.example/services/agentbox", "https://hub.example/services/agentbox/"])
def test_the_address_that_people_open_ends_with_a_slash(address: str) -> None:
    assert HubService(public_url=address).settings().public_url == "https://hub.example/services/agentbox/"


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (lambda key: (key.write_text("no key"), key.chmod(0o600)), "does not contain"),
        (lambda key: (key.write_text("0" * 64), key.chmod(0o644)), "other users can read the key in"),
        (lambda key: key.mkdir(), "should be a file with a key, but is a directory"),
        (lambda key: key.symlink_to("nowhere"), "but is a directory, or leads to no file"),
    ],
)
@pytest.mark.parametrize("trait", ["policy_key", "sign_in_key"])
def test_a_file_of_keys_that_cannot_be_used_is_an_error_and_none_is_made(
    tmp_path: Path, trait: str, harm: Callable[[Path], object], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path, key = tmp_path / "policy.json", tmp_path / "key"
    servers = {"crm": {"url": "https://crm.example/mcp", "oauth": True}}
    path.write_text(json.dumps({"rules": [], "mcpServers": servers, "local": {"hub": "h", "rules": []}}))
    others = f"--HubService.{'sign_in_key' if trait == 'policy_key' else 'policy_key'}={tmp_path / 'other'}"
    command = [f"--policy={path}", "--check-config", f"--HubService.{trait}={key}", others]
    assert main(command) == 0
    assert [one.name for one in tmp_path.iterdir()] == ["policy.json"]
    capsys.readouterr()
    harm(key)
    assert main(command) == 2
    assert says in capsys.readouterr().err


def test_the_value_of_a_secret_is_in_no_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "key").write_text("s3cret-s3cret")
    (tmp_path / "key").chmod(0o600)
    servers = {"warehouse": {"command": "run-${API_KEY}"}}
    path = tmp_path / "policy.json"
    path.write_text(json.dumps({"rules": [], "mcpServers": servers, "secrets": {"API_KEY": "key"}}))
    assert main([f"--policy={path}", "--check-config"]) == 0
    told = capsys.readouterr()
    assert "s3cret" not in told.out + told.err
    assert "the server `warehouse` cannot start: the program of its `command` does not exist" in told.err


def test_the_command_notes_what_is_probably_not_meant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    path = tmp_path / "policy.json"
    escalation = {"group": "leads", "after": 600}
    rules: list[dict[str, Any]] = [
        {"effect": "allow", "server": "warehose", "tool": "*"},
        {"effect": "ask", "server": "ware*", "tool": "*", "approvers": {"group": "g", "escalation": escalation}},
        {"effect": "ask", "server": "files", "tool": "*", "approvers": {"group": "g", "escalation": escalation}},
        {"effect": "deny", "server": "*", "tool": "*"},
    ]
    rules[2]["timeout"] = 600
    (tmp_path / "run.sh").write_text("#!/bin/sh\n")
    (tmp_path / "run.sh").chmod(0o755)
    servers = {
        "warehouse": {"command": "no-such-program"},
        "files": {"command": "./run.sh", "cwd": str(tmp_path)},
        "gone": {"command": "/no/such/program"},
        "here": {"command": "./no.sh", "cwd": str(tmp_path), "env": {"PATH": "/bin"}},
        "other": {"command": "no-such-program", "env": {"PATH": "/bin"}},
        "ours": {"command": "python"},
        "mail": {"command": "no-such-mail-of-${HUB_USER}"},
    }
    (tmp_path / "key").write_text("\n")
    (tmp_path / "key").chmod(0o600)
    policy = {"rules": rules, "mcpServers": servers, "secrets": {"KEY": "key"}}
    path.write_text(json.dumps(policy, indent=1))

    assert main(["--policy", str(path), "--check-config"]) == 0

    told = capsys.readouterr()
    assert told.out.endswith("4 rules, 7 central servers; no errors, 7 notes\n")
    line = {rule["server"]: path.read_text().partition(f'"{rule["server"]}"')[0].count("\n") for rule in rules}
    expected = {
        f"{path}:{line['warehose'] - 1}: no central server matches `warehose`. Did you mean `warehouse`?",
        (
            f"{path}:{line['files'] - 1}: the group `leads` is never asked: it may decide after 600 seconds,"
            " but the request expires after 600 seconds"
        ),
        f"{path}: the file of the secret `KEY` is empty",
        f"{path}: the server `warehouse` cannot start: there is no program `no-such-program` in this PATH: /usr/bin",
        f"{path}: the server `gone` cannot start: there is no program `/no/such/program`",
        f"{path}: the server `here` cannot start: there is no program `{tmp_path}/no.sh`",
        f"{path}: the server `other` cannot start: there is no program `no-such-program` in the PATH of its entry",
    }
    assert {one.removeprefix("note: ") for one in told.err.splitlines()} == expected


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (None, "does not exist"),
        ("c.HubService.most_calls = 3 +", "SyntaxError"),
        ("c.HubService.most_calls = most", "NameError: name 'most' is not defined"),
        (
            "c.HubService.databse_url = 'sqlite://'",
            "`HubService.databse_url`, which does not exist. Did you mean `database_url`?",
        ),
    ],
)
def test_the_command_does_not_go_on_with_defaults_if_its_configuration_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], config: str | None, message: str
) -> None:
    policy, path = tmp_path / "policy.json", tmp_path / "hub_config.py"
    policy.write_text('{"rules": []}')
    if config is not None:
        path.write_text(config)

    assert main(["--policy", str(policy), "--config", str(path), "--check-config"]) == 2
    assert message in capsys.readouterr().err
    path.write_text("c.HubService.most_calls = 3")
    assert main(["--policy", str(policy), "--config", str(path), "--check-config"]) == 0


def test_files_that_everybody_can_write_are_refused_and_readable_secrets_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, secret = tmp_path / "policy.json", tmp_path / "key"
    path.write_text('{"rules": [], "secrets": {"KEY": "key"}}')
    secret.write_text("s3cret")
    secret.chmod(0o644)
    assert read_policy_file(path, {}).secrets == {"KEY": "s3cret"}
    assert "can read the secret" in caplog.text
    assert "s3cret" not in caplog.text
    secret.chmod(0o602)
    with pytest.raises(PolicyFileError, match="the file of the secret cannot be used: every user"):
        read_policy_file(path, {})
    secret.chmod(0o600)
    path.chmod(0o646)
    with pytest.raises(PolicyFileError, match="every user of this machine can change it"):
        read_policy_file(path, {})


def test_the_command_says_what_it_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "--policy" in capsys.readouterr().err
    assert main(["--policy", str(tmp_path / "none.json")]) == 2
    assert "cannot be read: No such file or directory" in capsys.readouterr().err


def test_a_rule_can_be_for_groups_of_the_user_who_calls(tmp_path: Path) -> None:
    text = {"rules": [{**RULE, "groups": ["students"]}]}
    assert VALIDATOR.is_valid(text)
    assert read(tmp_path, text).policy.rules[0].groups == ("students",)
    for wrong in ([], ["a", ""], "students", [1]):
        broken = {"rules": [{**RULE, "groups": wrong}]}
        assert not VALIDATOR.is_valid(broken)
        assert problems(tmp_path, broken)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
@pytest.mark.parametrize("name", ["policy.json", "key"])
def test_a_file_of_another_user_is_refused(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "key").write_text("s3cret")
    path = tmp_path / "policy.json"
    path.write_text(json.dumps({"rules": [], "secrets": {"KEY": "key"}}))
    for file in (path, tmp_path / "key"):
        file.chmod(0o660)
    assert main([f"--policy={path}", "--check-config"]) == 0
    assert capsys.readouterr().err.count("members of its group can change it") == 2
    os.chown(tmp_path / name, 12345, -1)
    assert main([f"--policy={path}", "--check-config"]) == 2
    assert "it belongs to another user (number 12345), who can change it" in capsys.readouterr().err
