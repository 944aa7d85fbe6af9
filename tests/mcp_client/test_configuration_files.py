from __future__ import annotations

import os
from pathlib import Path

from jupyter_agentbox.mcp_client.configuration import Configuration, StdioServer, UnusableServer
from jupyter_agentbox.mcp_client.configuration_files import ConfigurationFiles


def test_a_file_that_does_not_exist_configures_nothing_until_it_does(tmp_path: Path) -> None:
    files = ConfigurationFiles([tmp_path / "mcp.json"], {})
    assert files.load() == Configuration()
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"a": {"command": "x"}}}')
    assert list(files.load().servers) == ["a"]


def test_an_unchanged_file_gives_the_same_object(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"a": {"command": "x"}}}')
    files = ConfigurationFiles([tmp_path / "mcp.json"], {})
    assert files.load() is files.load()


def test_the_first_of_several_files_wins_and_a_broken_one_does_not_hide_the_others(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("1.json", "2.json", "3.json", "4.json", "5.json")]
    paths[0].write_text('{"mcpServers": {"a": {"command": "1"}}}')
    paths[1].write_text('{"mcpServers": {"a": {"command": "2"}, "b": {"command": "2"}}}')
    paths[2].write_text("{")
    paths[3].write_bytes(b"\xff\xfe")
    paths[4].mkdir()
    read = ConfigurationFiles(paths, {}).load()
    assert {name: server.command for name, server in read.servers.items() if isinstance(server, StdioServer)} == {
        "a": "1",
        "b": "2",
    }
    assert [problem.path for problem in read.problems] == [str(path) for path in paths[2:]]


def test_servers_of_a_file_that_is_no_longer_valid_stay_until_it_is_valid_again(tmp_path: Path) -> None:
    first, second = paths = [tmp_path / "1.json", tmp_path / "2.json"]
    first.write_text('{"mcpServers": {"a": {"command": "1"}, "b": {"command": "1"}}}')
    second.write_text('{"mcpServers": {"a": {"command": "2"}}}')
    files = ConfigurationFiles(paths, {})
    before = files.load().servers

    first.write_text('{"mcpServers": {"a": {"command": "1"} "b": {"command": "1"}}}')
    broken = files.load()
    assert broken.servers == before
    assert [str(problem) for problem in broken.problems] == [
        f"{first}:1:39: not valid JSON: Expecting ',' delimiter; its servers stay as they were until you repair it"
    ]

    first.write_text('{"mcpServers": {"b": {"command": "1"}}}')
    assert files.load().servers == {**before, "a": StdioServer(name="a", command="2")}
    first.unlink()
    assert list(files.load().servers) == ["a"]


def test_an_env_file_is_read_below_env_and_again_when_it_changes(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text(
        '{"mcpServers": {"a": {"command": "x", "envFile": "${NAME}.env", "env": {"B": "mine"}}}}'
    )
    files = ConfigurationFiles([tmp_path / "mcp.json"], {"NAME": "shop"})
    missing = files.load().servers["a"]
    assert isinstance(missing, UnusableServer)
    assert str(tmp_path / "shop.env") in missing.error

    (tmp_path / "shop.env").write_text("A=s3cret\nB=file\n")
    first = files.load().servers["a"]
    assert isinstance(first, StdioServer)
    assert first.env == {"A": "s3cret", "B": "mine"}
    assert "s3cret" in first.secrets

    (tmp_path / "shop.env").write_text("A=other-secret\n")
    os.utime(tmp_path / "shop.env", (1, 1))
    second = files.load().servers["a"]
    assert isinstance(second, StdioServer)
    assert second.env == {"A": "other-secret", "B": "mine"}
