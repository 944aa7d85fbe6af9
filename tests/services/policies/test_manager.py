"""What rules of files and of the program mean, and that no lasting answer of a person loosens them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from jupyter_agentbox.core.approvals import Answer, ApprovalRequest
from jupyter_agentbox.core.calls import JsonValue, Origin, ToolCall
from jupyter_agentbox.core.grant_uses import Scope
from jupyter_agentbox.core.grants import GrantTerms
from jupyter_agentbox.core.policy import Effect, Evaluation, GrantLimit, Layer, Policy, Rule
from jupyter_agentbox.core.rule_book import RuleBook
from jupyter_agentbox.core.rule_text import read_text, write_text
from jupyter_agentbox.core.site_policy import SitePolicy
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import InvalidDecisionError, StorageError
from jupyter_agentbox.services.grants.manager import GrantManager
from jupyter_agentbox.services.policies.manager import PolicyManager
from jupyter_agentbox.testing import FakeClock, FakeIds, MemoryApprovalStore
from tests.samples import a_decision, a_request

TOOL = ToolDescription(name="delete_order", description="Deletes an order.")


def answered(answer: Answer, *, kernel_id: str | None = "k1") -> ApprovalRequest:
    request = a_request()
    call = replace(request.call, origin=Origin(kernel_id=kernel_id), known_digest="")
    request = replace(request, call=call, tool=TOOL)
    return request.decide(a_decision(request, answer))


def effect_of(policies: PolicyManager, call: ToolCall, tool: ToolDescription = TOOL) -> Effect:
    return policies.evaluate(call, tool).effect


async def granted(answer: Answer) -> GrantManager:
    """Return a manager with a lasting answer to this tool."""
    grants = GrantManager(store=MemoryApprovalStore(), clock=FakeClock(), ids=FakeIds("g"))
    grant = await grants.give(answered(answer), None, trust_key="")
    assert grant is not None
    grants.remember(grant)
    return grants


async def test_a_rule_of_a_file_is_stricter_than_what_a_person_allowed() -> None:
    request = answered(Answer.ALLOW_ALWAYS)
    rule = Rule(server="*", tool="*", effect=Effect.DENY)
    policies = PolicyManager(policy=Policy((rule,)), grants=await granted(Answer.ALLOW_ALWAYS))
    assert effect_of(policies, request.call) is Effect.DENY


@pytest.mark.parametrize(("limit", "effect"), [(GrantLimit.NEVER, Effect.ASK), (GrantLimit.KERNEL, Effect.ALLOW)])
async def test_what_a_person_allowed_counts_where_a_rule_that_asks_says_so(limit: GrantLimit, effect: Effect) -> None:
    request = answered(Answer.ALLOW_ALWAYS)
    rule = Rule(server="*", tool="*", effect=Effect.ASK, layer=Layer.SITE, grants=limit)
    policies = PolicyManager(policy=Policy((rule,)), grants=await granted(Answer.ALLOW_ALWAYS))
    assert effect_of(policies, request.call) is effect


async def test_nobody_allows_for_all_kernels_what_a_rule_lets_be_allowed_for_one() -> None:
    rule = Rule(server="*", tool="*", effect=Effect.ASK, layer=Layer.SITE, grants=GrantLimit.KERNEL)
    request = replace(answered(Answer.ALLOW_ALWAYS), evaluation=Evaluation(effect=Effect.ASK, rule=rule))
    grants = GrantManager(store=MemoryApprovalStore(), clock=FakeClock(), ids=FakeIds("g"))
    with pytest.raises(InvalidDecisionError):
        await grants.give(request, GrantTerms(scope=Scope.USER, uses=2), trust_key="")
    assert await grants.give(request, GrantTerms(), trust_key="") is not None


class Book:
    """A source whose rules a test can change."""

    is_writable = True

    def __init__(self, *rules: Rule) -> None:
        self.book = RuleBook(rules=rules)

    def load(self) -> RuleBook:
        return self.book

    def write(self, entries: Sequence[JsonValue], *, revision: str | None = None, schema: str | None = None) -> None:
        del revision, schema
        read = read_text(write_text(entries), path="rules.json", layer=Layer.USER)
        self.book = RuleBook(rules=read.rules, problems=read.problems)


def test_the_rules_of_files_count_as_they_are_now() -> None:
    source = Book()
    policies = PolicyManager(source=source)
    call = answered(Answer.ALLOW_ONCE).call
    assert effect_of(policies, call) is Effect.ASK
    policies.write([{"effect": "allow", "server": "shop", "tool": "*"}])
    assert effect_of(policies, call) is Effect.ALLOW
    assert policies.in_force is policies.in_force
    source.book = RuleBook()
    assert effect_of(policies, call) is Effect.ASK


class Changing(Book):
    """A source whose rules change each time that they are looked at: first they allow, then they refuse."""

    def load(self) -> RuleBook:
        found, self.book = self.book, RuleBook(site=SitePolicy.closed("rules.json"))
        return found


async def test_what_is_said_of_one_call_comes_from_the_same_rules_and_of_the_next_from_the_new_ones() -> None:
    policies = PolicyManager(source=Changing(), grants=await granted(Answer.ALLOW_ALWAYS))
    call = answered(Answer.ALLOW_ALWAYS).call
    assert [effect_of(policies, call) for _ in range(2)] == [Effect.ALLOW, Effect.ASK]


async def test_of_equally_strict_rules_the_one_of_a_file_is_named_before_a_lasting_answer() -> None:
    rule = Rule(server="shop", tool="*", effect=Effect.DENY, layer=Layer.SITE)
    policies = PolicyManager(source=Book(rule), grants=await granted(Answer.REJECT_ALWAYS))
    assert policies.evaluate(answered(Answer.REJECT_ALWAYS).call).rule is rule


@pytest.mark.parametrize("effect", [Effect.ASK, Effect.DENY])
async def test_a_lasting_answer_loosens_no_rule_of_the_site(effect: Effect) -> None:
    source = Book(Rule(server="shop", tool="*", effect=effect, layer=Layer.SITE))
    policy = Policy((Rule(server="*", tool="*", effect=Effect.ALLOW),))
    policies = PolicyManager(source=source, policy=policy, grants=await granted(Answer.ALLOW_ALWAYS))
    assert effect_of(policies, answered(Answer.ALLOW_ALWAYS).call) is effect


def test_without_files_no_rule_can_be_written() -> None:
    policies = PolicyManager()
    assert (policies.is_writable, policies.problems()) == (False, ())
    with pytest.raises(StorageError):
        policies.write([])
