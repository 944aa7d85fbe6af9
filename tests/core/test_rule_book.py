from __future__ import annotations

from datetime import UTC, datetime

import pytest

from jupyter_agentbox.core.policy import Effect, Layer
from jupyter_agentbox.core.rule_book import HubPolicyStatus, refusal
from jupyter_agentbox.core.tools import ConfigurationProblem


@pytest.mark.parametrize(("layer", "effect"), [(Layer.SITE, Effect.DENY), (Layer.USER, Effect.ASK)])
def test_a_broken_file_stands_for_a_rule_about_everything(layer: Layer, effect: Effect) -> None:
    rule = refusal(ConfigurationProblem(path="rules.json", message="not so", line=3, column=4), layer)
    assert (rule.server, rule.tool, rule.effect, rule.layer, rule.file, rule.line) == (
        *("*", "*", effect, layer, "rules.json", 3),
    )
    assert "not so" in rule.reason


def test_how_it_stands_with_a_hubs_policy_is_sent_with_times_in_utc() -> None:
    time = datetime(2026, 1, 2, tzinfo=UTC)
    status = HubPolicyStatus(hub="h", url="https://h/", version=7, issued_at=time, expires_at=time)
    told = {"hub": "h", "url": "https://h/", "version": 7, "problem": None}
    assert status.to_json() == {
        **told,
        "issued_at": "2026-01-02T00:00:00.000Z",
        "expires_at": "2026-01-02T00:00:00.000Z",
    }
