"""``jupyter agentbox doctor``: what it finds, each on a set-up that is broken in one way."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox import __version__, doctor
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.sandbox_settings import SANDBOX_LEVELS
from jupyter_agentbox.storage.database import Database
from tests.ports import kept_port


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the only directory of Jupyter's configuration."""
    directory = tmp_path / "config"
    (directory / "jupyter_server_config.d").mkdir(parents=True)
    (directory / "labconfig").mkdir()
    extension = tmp_path / "share" / "labextensions" / "jupyter-agentbox"
    extension.mkdir(parents=True)
    (extension / "package.json").write_text(json.dumps({"version": __version__}))
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(directory))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setattr(doctor, "jupyter_config_path", lambda: [str(directory)])
    monkeypatch.setattr(doctor, "jupyter_path", lambda name: [str(tmp_path / "share" / name)])
    enable(directory, is_enabled=True)
    return directory


def enable(config: Path, *, is_enabled: bool) -> None:
    text = json.dumps({"ServerApp": {"jpserver_extensions": {"jupyter_agentbox": is_enabled}}})
    (config / "jupyter_server_config.d" / "jupyter_agentbox.json").write_text(text)


def test_extensions_that_are_enabled_are_fine(config: Path) -> None:
    assert [doctor.server_extension().state, doctor.lab_extension().state] == ["ok", "ok"]
    assert str(config) in doctor.server_extension().text


def test_a_server_extension_that_is_off_or_not_configured_is_a_problem(config: Path) -> None:
    enable(config, is_enabled=False)
    assert (doctor.server_extension().state, "disabled" in doctor.server_extension().text) == ("problem", True)
    (config / "jupyter_server_config.d" / "jupyter_agentbox.json").write_text("{")
    assert doctor.server_extension().text == "not enabled by any configuration file"


@pytest.mark.parametrize(
    "disabled", [{"jupyter-agentbox": True}, {"jupyter-agentbox:panel": True}, ["jupyter-agentbox"]]
)
def test_a_lab_extension_that_is_disabled_is_a_problem(config: Path, disabled: Any) -> None:
    (config / "labconfig" / "page_config.json").write_text(json.dumps({"disabledExtensions": disabled}))
    assert (doctor.lab_extension().state, "page_config.json" in doctor.lab_extension().text) == ("problem", True)


@pytest.mark.parametrize("disabled", [{"jupyter-agentbox": True}, ["jupyter-agentbox"]])
def test_a_lab_extension_that_a_stronger_file_enables_again_is_fine(
    config: Path, disabled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    weaker = config.parent / "etc" / "labconfig"
    weaker.mkdir(parents=True)
    monkeypatch.setattr(doctor, "jupyter_config_path", lambda: [str(config), str(weaker.parent)])
    (weaker / "page_config.json").write_text(json.dumps({"disabledExtensions": disabled}))
    assert doctor.lab_extension().state == "problem"
    text = json.dumps({"disabledExtensions": {"jupyter-agentbox": False}})
    (config / "labconfig" / "page_config.json").write_text(text)
    assert doctor.lab_extension().state == "ok"


def test_a_lab_extension_of_another_version_or_none_is_a_problem(config: Path) -> None:
    package = config.parent / "share" / "labextensions" / "jupyter-agentbox" / "package.json"
    package.write_text('{"version": "0.0.1"}')
    assert "0.0.1" in doctor.lab_extension().text
    package.unlink()
    package.parent.rmdir()
    assert doctor.lab_extension().text == "it is not installed"


def test_each_level_of_isolation_says_what_it_met(monkeypatch: pytest.MonkeyPatch) -> None:
    works = [Isolation.LANDLOCK]
    monkeypatch.setattr(doctor, "why_unavailable", lambda level: None if level in works else "there is none of it")
    first, *others = doctor.sandbox()
    assert (first.state, first.text, first.advice) == ("ok", "reached: landlock", "")
    assert {(other.name, other.state, other.text) for other in others} == {
        (f"sandbox {level.value}", "note", "there is none of it")
        for level in SANDBOX_LEVELS
        if level is not Isolation.LANDLOCK
    }
    works.clear()
    assert next(doctor.sandbox()).advice.startswith("plain kernels work; for sandboxed ones, ")


def test_a_store_is_looked_at_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "new" / "approvals.sqlite"
    assert (doctor.store(path).state, path.parent.exists()) == ("ok", False)

    database = Database(f"sqlite:///{path}", journal_mode="wal", busy_timeout=1.0, on_connect=lambda _: None)
    with database.transaction(write=True):
        pass
    database.close()
    assert (doctor.store(path).state, "journal mode `wal`" in doctor.store(path).text) == ("ok", True)
    assert [one.name for one in path.parent.iterdir()] == [path.name]

    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE agentbox_schema SET version = version + 1")
    connection.close()
    assert ("newer release" in doctor.store(path).text, doctor.store(path).state) == (True, "problem")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE agentbox_schema SET version = 1")
    connection.close()
    assert ("earlier release" in doctor.store(path).text, doctor.store(path).state) == (True, "note")
    path.write_bytes(b"no database" * 1000)
    assert "cannot be read" in doctor.store(path).text


def test_mistakes_in_rules_and_servers_are_told_with_their_place(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "sandbox", lambda: ())
    (config / "agentbox_rules.json").write_text('{\n"rules": [{"effect": "perhaps"}]}')
    (config / "mcp.json").write_text('{"mcpServers": {\n"shop": {"args": 7}}}')
    (config / "agentbox_rules.json").chmod(0o600)

    code = doctor.main(["--json"])

    checks = json.loads(capsys.readouterr().out)
    problems = {check["name"]: check["text"] for check in checks if check["state"] == "problem"}
    assert (code, sorted(problems)) == (doctor.PROBLEMS, ["MCP servers", "rules"])
    assert "agentbox_rules.json:2:" in problems["rules"]
    assert "mcp.json:2:" in problems["MCP servers"]


def test_a_sound_set_up_ends_with_0_and_no_line_has_a_secret(
    config: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "sandbox", lambda: ())
    entry = {"command": "shop", "env": {"KEY": "hunter2"}, "args": ["--key", "hunter2"]}
    (config / "mcp.json").write_text(json.dumps({"mcpServers": {"shop": entry}}))
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "hunter2")
    for name in ("JUPYTERHUB_API_URL", "JUPYTERHUB_USER", "JUPYTERHUB_SERVICE_PREFIX"):
        monkeypatch.setenv(name, "x")

    assert doctor.main([]) == doctor.OK
    text = capsys.readouterr().out
    assert ("shop" in text, "hunter2" in text) == (True, False)
    assert all(line.startswith(("ok ", "note ")) for line in text.splitlines())


def test_a_place_for_records_is_reached_or_not_and_its_password_is_not_shown(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        there = doctor.sink(f"https://user:hunter2@127.0.0.1:{port}/in?key=hunter2", "", names={})
        assert (there.state, "hunter2" in str(there)) == ("ok", False)
    with kept_port() as port:
        gone = doctor.sink(f"otlp+http://127.0.0.1:{port}/v1/logs?key=hunter2", "", names={})
    assert (gone.state, "hunter2" in str(gone)) == ("problem", False)
    assert doctor.sink(f"file://{tmp_path}/audit.jsonl", "", names={}).state == "ok"
    assert doctor.sink(f"file://{tmp_path}/missing/audit.jsonl", "", names={}).state == "problem"
    assert doctor.sink("ftp://host", "", names={}).state == "problem"
    assert doctor.sink("syslog://[::1", "", names={}).state == "problem"
    (tmp_path / "ada").mkdir()
    assert doctor.sink(f"file://{tmp_path}/{{user}}/audit.jsonl", "", names={"user": "ada"}).state == "ok"
    assert doctor.sink(f"https://127.0.0.1:{port}/", str(tmp_path / "no-token"), names={}).state == "problem"


@pytest.mark.parametrize(
    ("environment", "state"),
    [
        ({}, "ok"),
        ({"JUPYTERHUB_USER": "ada"}, "problem"),
        (dict.fromkeys(doctor._HUB_VARIABLES, "x"), "note"),
        (dict.fromkeys((*doctor._HUB_VARIABLES, "JUPYTERHUB_PUBLIC_URL"), "x"), "ok"),
    ],
)
def test_a_hubs_server_has_what_the_hub_gives(environment: dict[str, str], state: str) -> None:
    assert doctor.hub(environment).state == state


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="there is no /proc")
def test_the_environment_of_another_process_counts(tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "JUPYTERHUB_USER": "ada"}
    with subprocess.Popen(["sleep", "60"], env=env) as process:
        command = [
            sys.executable,
            "-m",
            "jupyter_agentbox.cli",
            "doctor",
            "--json",
            "--environment-of",
            str(process.pid),
        ]
        done = subprocess.run(command, capture_output=True, check=False)
        process.kill()
    (hub,) = (check for check in json.loads(done.stdout) if check["name"] == "JupyterHub")
    assert "JUPYTERHUB_API_URL" in hub["text"]  # which is missing there, unlike the user


def test_a_process_that_is_not_there_has_no_environment(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main(["--environment-of", str(2**31 - 1)]) == 2
    assert "cannot be read: No such file or directory" in capsys.readouterr().err
