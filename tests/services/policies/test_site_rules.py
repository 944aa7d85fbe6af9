"""Rules of the site hold in every program, and nothing that a user sets takes them away."""

from __future__ import annotations

import json
from pathlib import Path

import jupyter_core.paths
import pytest

from jupyter_agentbox.composition import Settings, build
from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.policy import Effect, Policy, Rule
from jupyter_agentbox.headless.rules import read_rules
from jupyter_agentbox.paths import site_rules_paths, user_rules_path
from jupyter_agentbox.testing import FakeAnnouncer

CALL = ToolCall(server="shop", tool="drop", arguments={})
EVERYTHING = Policy((Rule(server="*", tool="*", effect=Effect.ALLOW),))


@pytest.fixture
def site_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(jupyter_core.paths, "SYSTEM_CONFIG_PATH", [str(tmp_path)])
    monkeypatch.setattr("jupyter_agentbox.storage.rule_files.why_unprotected", lambda _path: "")
    return tmp_path / "agentbox_rules.json"


def test_a_program_that_is_given_rules_obeys_the_sites_too(site_file: Path, tmp_path: Path) -> None:
    settings = Settings(mcp_config_path=(), database_url=f"sqlite:///{tmp_path / 'x.sqlite'}")
    box = build(settings, announcer=FakeAnnouncer(), policy=EVERYTHING)
    assert box.policies.evaluate(CALL).effect is Effect.ALLOW
    site_file.write_text(json.dumps({"rules": [{"effect": "deny", "server": "shop", "tool": "drop"}]}))
    assert box.policies.evaluate(CALL).effect is Effect.DENY
    site_file.write_text("{")
    assert box.policies.evaluate(CALL).effect is Effect.DENY


def test_a_directory_that_a_user_names_is_none_of_the_sites(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(tmp_path))
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "user"))
    assert tmp_path not in [path.parent for path, _ in site_rules_paths()]
    assert user_rules_path() == tmp_path / "user" / "agentbox_rules.json"


def test_a_file_that_a_program_is_given_is_read_as_a_whole_or_refused_with_each_place(tmp_path: Path) -> None:
    path = tmp_path / "rules.json"
    path.write_text('{"rules": [\n {"effect": "allow", "server": "shop", "tool": "*"}]}')
    assert read_rules(path).evaluate(CALL).effect is Effect.ALLOW
    path.write_text('{"rules": [\n {"effect": "alow", "server": "shop", "tool": 3}]}')
    with pytest.raises(ValueError, match=r"rules\.json:2:13: .*rules\.json:2:47: "):
        read_rules(path)
    with pytest.raises(FileNotFoundError):
        read_rules(tmp_path / "none.json")
