from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from jupyter_agentbox.core.policy import Effect, Layer, Rule
from jupyter_agentbox.core.rule_book import HubPolicyStatus, RuleBook, UserRules, refusal
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


def test_a_rule_is_new_unless_an_equal_one_of_the_users_file_stood_on_any_line() -> None:
    old = Rule(server="shop", tool="*", effect=Effect.ASK, layer=Layer.USER, file="mine.json", line=2)
    new = replace(old, effect=Effect.ALLOW, line=3)
    of_site = replace(new, layer=Layer.SITE, file="site.json")
    stands_for_a_file = replace(new, file="other.json")
    user = UserRules(path="mine.json")
    before = RuleBook(rules=(old,), user=user)

    after = RuleBook(rules=(of_site, stands_for_a_file, replace(old, line=9), new), user=user)

    assert after.written_since(before) == (new,)
    assert RuleBook(rules=(new,)).written_since(before) == ()


def test_the_service_says_what_its_own_version_is_called_and_a_users_server_the_number_that_it_was_sent() -> None:
    status = HubPolicyStatus(hub="hub.example.org", url="https://hub.example.org/", version=7)
    books = (RuleBook(), RuleBook(version="915c1e78f217"), RuleBook(hub_policy=status))
    assert [book.policy_version for book in books] == [None, "915c1e78f217", 7]
