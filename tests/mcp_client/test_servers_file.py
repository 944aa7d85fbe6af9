"""Adding a server to ``mcp.json`` leaves all else in it as it is."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_agentbox.exceptions import ServerConfigurationError
from jupyter_agentbox.mcp_client import jsonc
from jupyter_agentbox.mcp_client.servers_file import ServersFile

SHOP: Any = {"command": "npx", "args": ["-y", "shop mcp"], "env": {"SHOP_TOKEN": "${SHOP_TOKEN}"}}
ENVIRONMENT = {"SHOP_TOKEN": "t"}


def a_file(path: Path, text: str | bytes | None = None, *, known: tuple[str, ...] = ()) -> ServersFile:
    if text is not None:
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    return ServersFile(path, known=lambda: known, environment=ENVIRONMENT)


def add(file: ServersFile, name: str = "shop", configuration: Any = SHOP) -> str:
    """Add a server as a page does, and return the text of the file."""
    file.add(name, configuration, revision=file.preview(name, configuration).revision)
    return file.path.read_bytes().decode()


BEFORE = """\
{
  // my servers
  "$schema": "x", /* kept */
  "mcpServers": {
    "mail": {
      "command": "mail" // the old one
    }, // and
    "files": {"command": "files",},   // its comment, too
  },
  "inputs": [1, 2],
}
"""
AFTER = """\
{
  // my servers
  "$schema": "x", /* kept */
  "mcpServers": {
    "mail": {
      "command": "mail" // the old one
    }, // and
    "files": {"command": "files",},   // its comment, too
    "shop": {
      "command": "npx",
      "args": [
        "-y",
        "shop mcp"
      ],
      "env": {
        "SHOP_TOKEN": "${SHOP_TOKEN}"
      }
    }
  },
  "inputs": [1, 2],
}
"""


def test_comments_other_keys_and_their_order_stay(tmp_path: Path) -> None:
    assert add(a_file(tmp_path / "mcp.json", BEFORE)) == AFTER


def test_what_is_shown_is_what_is_added_and_where(tmp_path: Path) -> None:
    shown = a_file(tmp_path / "mcp.json", BEFORE).preview("shop", SHOP)
    lines = AFTER.splitlines()
    assert shown.text.splitlines() == lines[shown.line - 1 : shown.line - 1 + len(shown.text.splitlines())]
    assert (shown.starts, shown.notes) == ("npx -y 'shop mcp'", ())
    assert (tmp_path / "mcp.json").read_text() == BEFORE


def test_a_program_that_prints_headers_is_shown_too(tmp_path: Path) -> None:
    entry: Any = {"url": "https://x.example/mcp", "headersHelper": "curl https://evil.example"}
    shown = a_file(tmp_path / "mcp.json", BEFORE).preview("shop", entry)
    assert shown.starts == "https://x.example/mcp, with headers from: curl https://evil.example"


@pytest.mark.parametrize(
    "before",
    [
        None,
        "",
        "{}",
        '{"mcpServers": {}}',
        '{"mcpServers": {"a": {"command": "x"}}}',
        '{"servers": {"a": {"command": "x"}}, "inputs": []}',
        '{"inputs": []}',
        '{\n\t"mcpServers": {\n\t\t"a": {\n\t\t\t"command": "x"\n\t\t}\n\t}\n}',
        '{"mcpServers": {\n}}',
        '{"mcpServers": {"a": {"command": "x, }"} /* , */ }}',
        '{\r\n  "mcpServers": {\r\n    "a": {"command": "x"}\r\n  }\r\n}\r\n',
        '{"mcpServers": {"a": {"command": "x"}},}',
        '{"mcpServers": {"a": {"command": "x"} // last\n}}',
        '{"mcpServers": { // none\n}}',
    ],
)
def test_any_way_of_writing_is_added_to(tmp_path: Path, before: str | None) -> None:
    text = add(a_file(tmp_path / "mcp.json", before))

    known: Any = jsonc.parse(before) if before else {}
    key = "servers" if "servers" in known else "mcpServers"
    assert jsonc.parse(text) == {**known, key: {**known.get(key, {}), "shop": SHOP}}
    assert ("\r\n" in text) == ("\r\n" in (before or ""))
    assert "\n" not in text.replace("\r\n", "") or "\r\n" not in text


@given(st.dictionaries(st.text(max_size=5), st.recursive(st.none() | st.integers() | st.text(max_size=5), st.lists)))
def test_other_servers_whatever_they_are_stay(tmp_path_factory: pytest.TempPathFactory, others: Any) -> None:
    others.pop("shop", None)
    path = tmp_path_factory.mktemp("any") / "mcp.json"
    text = add(a_file(path, json.dumps({"mcpServers": others}, indent=4)))
    assert list(json.loads(text)["mcpServers"].items()) == [*others.items(), ("shop", SHOP)]


def test_a_file_that_changed_meanwhile_is_left_as_it_is(tmp_path: Path) -> None:
    file = a_file(tmp_path / "mcp.json", "{}")
    revision = file.preview("shop", SHOP).revision
    (tmp_path / "mcp.json").write_text(BEFORE)
    with pytest.raises(ServerConfigurationError, match="changed meanwhile"):
        file.add("shop", SHOP, revision=revision)
    assert (tmp_path / "mcp.json").read_text() == BEFORE


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("{", ":1:2"),
        ('{"mcpServers": {"a": 1,\n "a": 2}}', ":2:2"),
        ("[]", ""),
        ('{"mcpServers": []}', ""),
        (b"\xff", ""),
    ],
)
def test_a_file_that_cannot_be_read_is_left_as_it_is_and_says_where(
    tmp_path: Path, text: str | bytes, place: str
) -> None:
    file = a_file(tmp_path / "mcp.json", text)
    before = file.path.read_bytes()
    with pytest.raises(ServerConfigurationError) as caught:
        file.preview("shop", SHOP)
    assert f"{file.path}{place}" in str(caught.value)
    assert file.path.read_bytes() == before


def test_a_pipe_in_the_place_of_the_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "mcp.json")
    with pytest.raises(ServerConfigurationError, match="not an ordinary file"):
        a_file(tmp_path / "mcp.json").preview("shop", SHOP)


def test_a_link_stays_a_link_and_rights_stay_and_a_new_file_is_for_its_user_alone(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("{}")
    (tmp_path / "real.json").chmod(0o640)
    (tmp_path / "mcp.json").symlink_to(tmp_path / "real.json")
    add(a_file(tmp_path / "mcp.json"))
    assert (tmp_path / "mcp.json").is_symlink()
    assert stat.S_IMODE((tmp_path / "real.json").stat().st_mode) == 0o640
    assert "shop" in (tmp_path / "real.json").read_text()

    add(a_file(tmp_path / "new" / "mcp.json"))
    assert stat.S_IMODE((tmp_path / "new" / "mcp.json").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "configuration",
    [
        {"command": "x", "env": {"SHOP_TOKEN": "s3cret"}},
        {"url": "https://x.example/", "headers": {"Authorization": "Bearer s3cret"}},
        {"url": "https://ada:s3cret@x.example/"},
        {"url": "https://x.example/?api_key=s3cret"},
        {"url": "https://x.example/?api_key=s3cret&user=${USER}"},
        {"url": "https://x.example/", "headersHelper": "login --password s3cret"},
    ],
)
def test_a_secret_is_refused_and_not_repeated(tmp_path: Path, configuration: Any) -> None:
    with pytest.raises(ServerConfigurationError, match="NAME") as caught:
        a_file(tmp_path / "mcp.json").preview("shop", configuration)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "configuration", "text"),
    [
        ("shop", {"comand": "x"}, "Did you mean `command`"),
        ("shop", {"command": 7}, '"command" must be a string'),
        ("shop", {}, "needs a"),
        ("shop", {"url": "ftp://x"}, "http"),
        ("shop", {"command": "x", "type": "sse"}, "not supported"),
        ("sh op", SHOP, "letters"),
        ("agentbox", SHOP, "reserved"),
        ("mail", SHOP, "already"),
        ("shop", {"command": "x" * 60_000}, "bytes"),
        ("shop", {"command": "\ud800"}, "not JSON"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, name: str, configuration: Any, text: str) -> None:
    with pytest.raises(ServerConfigurationError, match=text):
        a_file(tmp_path / "mcp.json", known=("mail",)).preview(name, configuration)


def test_a_variable_that_is_not_set_is_told_and_does_not_hinder(tmp_path: Path) -> None:
    shown = a_file(tmp_path / "mcp.json").preview("shop", {"command": "x", "env": {"A_KEY": "${AGENTBOX_UNSET}"}})
    (note,) = shown.notes
    assert "`AGENTBOX_UNSET` is not set" in note
