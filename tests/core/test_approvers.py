"""Rules that name who has to approve, and requests that several persons have to approve."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, Decision, Lapse
from jupyter_agentbox.core.approvers import Approvers, Escalation
from jupyter_agentbox.core.located_json import parse
from jupyter_agentbox.core.policy import Layer, Policy, Rule
from jupyter_agentbox.core.reviewers import Reviewer, Via
from jupyter_agentbox.core.rule_checks import RuleChecker
from jupyter_agentbox.core.rule_text import rule_from_json
from jupyter_agentbox.exceptions import InvalidDecisionError, InvalidTransitionError, StaleDigestError
from tests.samples import a_call, a_decision, a_request

KEYS = ("effect", "server", "tool", "approvers")
ASK = '{"effect": "ask", "server": "a", "tool": "b", "approvers": %s}'


def problems(rule: str) -> list[str]:
    checker = RuleChecker(KEYS)
    checker.check_rule(parse(rule))
    return [message for _, message in checker.shown()]


def a_vote(request: ApprovalRequest, name: str, **changes: Any) -> Decision:
    return a_decision(request, **{"reviewer": Reviewer(name=name, via=Via.BROWSER), **changes})


@pytest.mark.parametrize(
    ("given", "approvers"),
    [
        ({"group": "stewards"}, Approvers(group="stewards")),
        ({"group": "g", "count": 2, "self": True}, Approvers(group="g", count=2, self_counts=True)),
        (
            {"group": "g", "break_glass": "h", "reason": "required"},
            Approvers(group="g", break_glass="h", needs_reason=True),
        ),
        (
            {"group": "g", "delegates": ["h", "i"], "escalation": {"group": "j", "after": 900}},
            Approvers(group="g", delegates=("h", "i"), escalation=Escalation(group="j", after=900)),
        ),
    ],
)
def test_a_rule_names_its_approvers_as_its_file_does(given: Any, approvers: Approvers) -> None:
    entry = {"effect": "ask", "server": "a", "tool": "b", "approvers": given}

    rule = rule_from_json(entry, Layer.SITE, "policy.json", 1)

    assert rule.approvers == approvers
    assert rule.to_json()["approvers"] == {"count": 1, "self": False, **given}


@pytest.mark.parametrize(
    "given",
    [
        '{"group": "g"}',
        '{"group": "g", "count": 20, "self": false}',
        '{"group": "g", "break_glass": "h", "reason": "optional"}',
        '{"group": "g", "delegates": ["h"], "escalation": {"group": "i", "after": 0.5}}',
    ],
)
def test_approvers_are_a_group_and_how_many_of_it(given: str) -> None:
    assert problems(ASK % given) == []


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("1", '`approvers` must be an object: `{"group": "data-stewards", "count": 1}`'),
        ("{}", "`group` is missing: it says whose members are asked"),
        ('{"group": "g", "count": 0}', "`count` must be a number from 1 to 20"),
        ('{"group": "g", "count": 21}', "`count` must be a number from 1 to 20"),
        ('{"group": "g", "count": true}', "`count` must be a number from 1 to 20"),
        ('{"group": "g", "count": "2"}', "`count` must be a number from 1 to 20"),
        ('{"group": "g", "self": 1}', "`self` must be true or false"),
        (
            '{"group": "g", "quorum": 1}',
            "unknown key `quorum`: `approvers` has group, count, self, delegates, escalation, break_glass, reason",
        ),
        ('{"group": "g", "break_glass": ["h"]}', "the name of a group must be a non-empty string"),
        ('{"group": "g", "break_glass": ""}', "the name of a group must be a non-empty string"),
        ('{"group": "g", "reason": true}', "`reason` must be `optional` or `required`"),
        ('{"group": "g", "delegates": "h"}', "`delegates` must be a list of at most 20 groups"),
        ('{"group": "g", "delegates": [""]}', "the name of a group must be a non-empty string"),
        ('{"group": "g", "delegates": [1]}', "the name of a group must be a non-empty string"),
        (
            '{"group": "g", "escalation": 900}',
            '`escalation` must be an object: `{"group": "managers", "after": 900}`',
        ),
        ('{"group": "g", "escalation": {"after": 1}}', "`group` is missing: it says who may answer then"),
        ('{"group": "g", "escalation": {"group": "h"}}', "`after` must be a number of seconds above 0"),
        ('{"group": "g", "escalation": {"group": "h", "after": 0}}', "`after` must be a number of seconds above 0"),
        ('{"group": "g", "escalation": {"group": "h", "after": true}}', "`after` must be a number of seconds above 0"),
    ],
)
def test_what_is_wrong_with_approvers_is_told(given: str, problem: str) -> None:
    assert problems(ASK % given) == [problem]


def test_delegates_may_answer_from_the_start_and_others_after_a_time() -> None:
    approvers = Approvers(group="g", delegates=("h",), escalation=Escalation(group="i", after=900))
    assert approvers.groups_after(0) == approvers.groups_after(899) == {"g", "h"}
    assert approvers.groups_after(900) == {"g", "h", "i"}
    assert Approvers(group="g").groups_after(900) == {"g"}


def test_only_a_rule_that_asks_has_approvers() -> None:
    rule = '{"effect": "deny", "server": "a", "tool": "b", "approvers": {"group": "g"}}'
    assert problems(rule) == ["`approvers` are of use in a rule whose effect is `ask` only"]
    assert problems('{"server": "a", "tool": "b", "approvers": {"group": "g"}}') == [
        "`effect` is missing: it must be `allow`, `ask` or `deny`"
    ]


def test_a_file_without_approvers_does_not_take_them() -> None:
    checker = RuleChecker()
    checker.check_rule(parse(ASK % "1"))
    (problem,) = [message for _, message in checker.shown()]
    assert problem == "`approvers` can stand in the policy of a Hub service only"


def test_a_request_keeps_the_approvals_that_are_not_enough_and_then_the_decision() -> None:
    request = a_request()
    ada, bob = a_vote(request, "ada"), a_vote(request, "bob")

    endorsed = request.endorse(ada).endorse(bob)
    decided = endorsed.decide(a_vote(request, "cleo"))

    assert (endorsed.status, endorsed.votes, endorsed.decision) == (request.status, (ada, bob), None)
    assert (decided.votes, decided.status.value) == ((ada, bob), "approved")


def test_a_person_approves_once() -> None:
    request = a_request()
    with pytest.raises(InvalidDecisionError):
        request.endorse(a_vote(request, "ada")).endorse(a_vote(request, "ada"))


@pytest.mark.parametrize(
    "changes", [{"answer": Answer.ALLOW_ALWAYS}, {"answer": Answer.REJECT_ONCE}, {"arguments": {"order_id": 8}}]
)
def test_one_of_several_can_only_allow_the_call_as_it_is_once(changes: Any) -> None:
    request = a_request()
    with pytest.raises(InvalidDecisionError):
        request.endorse(a_vote(request, "ada", **changes))


def test_what_was_not_seen_or_has_ended_is_not_approved() -> None:
    request = a_request()
    with pytest.raises(StaleDigestError):
        request.endorse(a_vote(request, "ada", digest="other"))
    with pytest.raises(InvalidTransitionError):
        request.lapse(Lapse.TIMED_OUT).endorse(a_vote(request, "ada"))


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ({"self": True}, {"self": False}, {"self": False}),
        ({"count": 2, "self": True}, {"self": True}, {"count": 2, "self": True}),
        ({"break_glass": "leads"}, {}, {}),
        (
            {"break_glass": "leads"},
            {"break_glass": "leads", "reason": "required"},
            {"break_glass": "leads", "reason": "required"},
        ),
        ({"delegates": ["h", "i"]}, {"delegates": ["i", "j"]}, {"delegates": ["i"]}),
        ({"escalation": {"group": "h", "after": 60}}, {}, {}),
        ({"escalation": {"group": "h", "after": 60}}, {"escalation": {"group": "i", "after": 60}}, {}),
        (
            {"escalation": {"group": "h", "after": 60}},
            {"escalation": {"group": "h", "after": 90}},
            {"escalation": {"group": "h", "after": 90}},
        ),
    ],
)
def test_of_rules_that_ask_one_group_all_count(one: Any, other: Any, both: Any) -> None:
    def rule(**approvers: Any) -> Rule:
        entry = {"effect": "ask", "server": "a", "tool": "*", "approvers": {"group": "g", **approvers}}
        return rule_from_json(entry, Layer.SITE, "policy.json", 1)

    elsewhere = replace(rule(**other), approvers=Approvers(group="others"))
    for rules in ([rule(**one), rule(**other)], [rule(**other), elsewhere, rule(**one)]):
        found = Policy(tuple(rules)).evaluate(a_call(server="a"))
        assert found.rule is not None
        assert found.rule.approvers == rule(**both).approvers
