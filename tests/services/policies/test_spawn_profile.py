"""Rules for groups and variables of spawn profiles together: the strictest of both holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jupyter_agentbox.core.calls import Origin, ToolCall
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.policy import Effect
from jupyter_agentbox.core.site_policy import Feature
from jupyter_agentbox.core.spawn_profile import profile_of
from jupyter_agentbox.services.policies.manager import Person, PolicyManager
from jupyter_agentbox.storage.rule_files import RuleFiles, SitePlace

RULES = [
    {"effect": "allow", "server": "shop", "tool": "*"},
    {"effect": "deny", "server": "shop", "tool": "*", "groups": ["students"]},
]


def policies(site: Path, group: str, environment: dict[str, str]) -> PolicyManager:
    files = RuleFiles(user=None, sites=[SitePlace(path=site)], profile=profile_of(environment))
    return PolicyManager(source=files, person_of=lambda _: Person(groups=frozenset({group})))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("jupyter_agentbox.storage.rule_files.why_unprotected", lambda _path: "")  # see test_protection
    path = tmp_path / "agentbox_rules.json"
    path.write_text(json.dumps({"rules": RULES, "features": {"grants": "force-on"}}))
    return path


@pytest.mark.parametrize(
    ("group", "profile", "effect"),
    [
        ("staff", {}, Effect.ALLOW),
        ("staff", {"JUPYTER_AGENTBOX_MIN_ISOLATION": "landlock"}, Effect.DENY),
        ("students", {}, Effect.DENY),
        ("students", {"JUPYTER_AGENTBOX_MIN_ISOLATION": "landlock"}, Effect.DENY),
    ],
)
def test_two_groups_and_two_profiles(site: Path, group: str, profile: dict[str, str], effect: Effect) -> None:
    call = ToolCall(server="shop", tool="list", arguments={}, origin=Origin(isolation=Isolation.SRT))

    evaluation = policies(site, group, profile).evaluate(call)

    assert evaluation.effect is effect


def test_a_profile_turns_off_what_the_sites_file_forces_on(site: Path) -> None:
    found = policies(site, "staff", {"JUPYTER_AGENTBOX_GRANTS": "off"})

    assert found.site.is_off(Feature.GRANTS)
    assert not policies(site, "staff", {}).site.is_off(Feature.GRANTS)


@pytest.mark.parametrize("name", ["GRANTS", "GRANT"])
def test_a_variable_that_would_loosen_or_is_not_known_stops_all_calls_and_says_which(site: Path, name: str) -> None:
    found = policies(site, "staff", {f"JUPYTER_AGENTBOX_{name}": "on"})
    call = ToolCall(server="shop", tool="list", arguments={}, origin=Origin(isolation=Isolation.BUBBLEWRAP))

    evaluation = found.evaluate(call)

    assert evaluation.effect is Effect.DENY
    assert evaluation.rule is not None
    assert f"$JUPYTER_AGENTBOX_{name}" in evaluation.rule.reason
    assert all(found.site.is_off(feature) for feature in Feature)
    assert [problem.path for problem in found.problems()] == [f"$JUPYTER_AGENTBOX_{name}"]


def test_variables_hold_also_where_there_is_no_file() -> None:
    files = RuleFiles(user=None, profile=profile_of({"JUPYTER_AGENTBOX_AGENTS": "off"}))

    assert files.load().site.is_off(Feature.AGENTS)
