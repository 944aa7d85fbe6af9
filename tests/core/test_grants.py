"""Which calls a lasting answer covers, and what ends it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from jupyter_agentbox.core.calls import Origin, ToolCall
from jupyter_agentbox.core.grant_uses import Scope, Void
from jupyter_agentbox.core.grants import Grant, GrantTerms, apply_grants, grant_for, only_reads
from jupyter_agentbox.core.policy import Effect, Evaluation, GrantLimit, Layer, Rule
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import InvalidDecisionError
from tests.samples import ADA, NOON, a_call

ASK = Evaluation(effect=Effect.ASK)
KEY = "key"
TOOL = ToolDescription(name="delete_order", description="Deletes an order.")
LIST = ToolDescription(name="list_orders", annotations={"readOnlyHint": True})
COUNT = ToolDescription(name="count_orders", annotations={"readOnlyHint": True, "destructiveHint": False})
ODD = ToolDescription(name="odd", annotations={"readOnlyHint": True, "destructiveHint": True})
LATER = NOON + timedelta(hours=1)
AGENT = Origin(kernel_id="k1", notebook_path="work/orders.ipynb", thread_id="t1", turn_id="u1")


def a_grant(
    scope: Scope = Scope.KERNEL,
    *,
    call: ToolCall | None = None,
    tool: ToolDescription = TOOL,
    effect: Effect = Effect.ALLOW,
    **more: Any,
) -> Grant:
    """Return a grant that was given to a call at noon; it is one hour old at most."""
    terms = GrantTerms(scope=scope, **more)
    return grant_for(
        call or a_call(),
        tool,
        terms,
        id="g1",
        request_id="r1",
        effect=effect,
        granter=ADA,
        now=NOON,
        trust_key=KEY,
        tools=[TOOL, LIST, COUNT, ODD],
    )


def applied(
    grant: Grant, call: ToolCall, tool: ToolDescription | None = TOOL, evaluation: Evaluation = ASK, key: str = KEY
) -> Evaluation:
    return apply_grants([grant], call, tool, evaluation, trust_key=key, now=NOON + timedelta(minutes=1))


def test_the_call_that_it_was_given_to_is_its_first_use() -> None:
    grant = a_grant(uses=2)
    assert (grant.used, grant.last_used_at, grant.is_over(NOON)) == (1, NOON, False)
    assert grant.used_at(LATER) == replace(grant, used=2, last_used_at=LATER)
    assert grant.used_at(LATER).is_over(NOON)


def test_a_grant_names_itself_in_what_it_allows() -> None:
    grant = a_grant()
    assert applied(grant, a_call()) == Evaluation(effect=Effect.ALLOW, grant=grant.use)


@pytest.mark.parametrize(
    ("scope", "changes", "is_covered"),
    [
        (Scope.CALL, {}, True),
        (Scope.CALL, {"origin": replace(AGENT, cell_id="another")}, True),
        (Scope.CALL, {"arguments": {"order_id": 8}}, False),
        (Scope.CALL, {"origin": Origin(kernel_id="k2")}, False),
        (Scope.KERNEL, {"arguments": {"order_id": 8}}, True),
        (Scope.KERNEL, {"tool": "other"}, False),
        (Scope.KERNEL, {"server": "shop2"}, False),
        (Scope.KERNEL, {"origin": Origin(kernel_id="k2")}, False),
        (Scope.KERNEL, {"origin": Origin()}, False),
        (Scope.THREAD, {"origin": AGENT}, True),
        (Scope.THREAD, {"origin": replace(AGENT, turn_id="u2")}, True),
        (Scope.THREAD, {"origin": replace(AGENT, thread_id="t2")}, False),
        (Scope.THREAD, {}, False),
        (Scope.THREAD, {"origin": replace(AGENT, kernel_id="k2")}, False),
        (Scope.USER, {"origin": Origin(kernel_id="k2")}, True),
        (Scope.USER, {"origin": Origin()}, True),
        (Scope.USER, {"tool": "other"}, False),
    ],
)
def test_a_grant_is_for_its_scope_and_no_further(scope: Scope, changes: dict[str, Any], is_covered: bool) -> None:
    given = a_call(origin=AGENT) if scope is Scope.THREAD else a_call()
    call = a_call(**changes)
    effect = applied(a_grant(scope, call=given, until=LATER), call, replace(TOOL, name=call.tool)).effect
    assert effect is (Effect.ALLOW if is_covered else Effect.ASK)


def test_what_a_server_said_to_only_read_is_granted_together() -> None:
    grant = a_grant(Scope.SERVER_READ_ONLY, call=a_call(tool="list_orders"), tool=LIST)

    def effect_of(tool: ToolDescription) -> Effect:
        return applied(grant, a_call(tool=tool.name), tool).effect

    assert (effect_of(LIST), effect_of(COUNT)) == (Effect.ALLOW, Effect.ALLOW)
    assert (effect_of(TOOL), effect_of(ODD)) == (Effect.ASK, Effect.ASK)
    assert effect_of(ToolDescription(name="new", annotations={"readOnlyHint": True})) is Effect.ASK


@pytest.mark.parametrize(
    ("annotations", "reads"),
    [
        ({}, False),
        ({"readOnlyHint": "yes"}, False),
        ({"readOnlyHint": True}, True),
        ({"readOnlyHint": True, "destructiveHint": True}, False),
    ],
)
def test_a_tool_only_reads_if_its_server_says_so_plainly(annotations: dict[str, Any], reads: bool) -> None:
    assert only_reads(ToolDescription(name="x", annotations=annotations)) is reads


def test_a_change_of_the_description_voids_a_grant_and_says_what_it_was() -> None:
    grant, changed = a_grant(), replace(TOOL, description="Deletes all orders.")
    voided = applied(grant, a_call(), changed).voided
    assert voided is not None
    assert (voided.grant, voided.void, voided.before) == (grant.use, Void.DEFINITION, TOOL)


def test_a_change_of_the_server_voids_a_grant() -> None:
    evaluation = applied(a_grant(), a_call(), key="another")
    assert (evaluation.effect, evaluation.voided and evaluation.voided.void) == (Effect.ASK, Void.SERVER)


def test_a_void_grant_holds_no_more_even_if_all_is_as_it_was() -> None:
    evaluation = applied(replace(a_grant(), void=Void.DEFINITION), a_call())
    assert (evaluation.effect, evaluation.voided and evaluation.voided.void) == (Effect.ASK, Void.DEFINITION)


def test_of_a_tool_that_nobody_was_shown_no_description_before_is_told() -> None:
    grant = a_grant(Scope.SERVER_READ_ONLY, call=a_call(tool="list_orders"), tool=LIST)
    voided = applied(grant, a_call(tool="count_orders"), replace(COUNT, title="x")).voided
    assert voided is not None
    assert voided.before is None


def test_a_rejection_holds_through_all_changes() -> None:
    grant = a_grant(effect=Effect.DENY)
    evaluation = applied(grant, a_call(), replace(TOOL, description="Harmless."), key="another")
    assert evaluation == Evaluation(effect=Effect.DENY, grant=grant.use)
    assert applied(grant, a_call(), None).effect is Effect.DENY


def test_an_unknown_tool_is_granted_nothing() -> None:
    assert applied(a_grant(), a_call(), None) == ASK


@pytest.mark.parametrize("effect", Effect)
def test_a_rule_stands_above_every_grant_that_allows(effect: Effect) -> None:
    evaluation = Evaluation(effect=effect, rule=Rule(server="*", tool="*", effect=effect, layer=Layer.SITE))
    assert applied(a_grant(), a_call(), evaluation=evaluation) == evaluation


@pytest.mark.parametrize(
    ("limit", "scopes"),
    [
        (GrantLimit.NEVER, set()),
        (GrantLimit.KERNEL, set(Scope) - {Scope.USER}),
        (GrantLimit.ANY, set(Scope)),
    ],
)
def test_a_rule_that_asks_says_which_grants_allow_its_calls(limit: GrantLimit, scopes: set[Scope]) -> None:
    rule = Rule(server="*", tool="*", effect=Effect.ASK, layer=Layer.SITE, grants=limit)
    asked = Evaluation(effect=Effect.ASK, rule=rule)
    found = set()
    for scope in Scope:
        grant = a_grant(scope, call=a_call(origin=AGENT, tool=LIST.name), tool=LIST, until=LATER)
        call = a_call(origin=AGENT, tool=LIST.name)
        if applied(grant, call, LIST, asked).effect is Effect.ALLOW:
            found.add(scope)
        assert applied(grant, call, LIST).effect is Effect.ALLOW  # without the rule
    assert found == scopes


def test_a_grant_for_all_kernels_is_not_given_where_a_rule_limits_grants_to_one() -> None:
    terms = GrantTerms(scope=Scope.USER, uses=2)
    with pytest.raises(InvalidDecisionError, match="one kernel only"):
        terms.check(a_call(), TOOL, Effect.ALLOW, now=NOON, limit=GrantLimit.KERNEL)
    terms.check(a_call(), TOOL, Effect.DENY, now=NOON, limit=GrantLimit.KERNEL)
    terms.check(a_call(), TOOL, Effect.ALLOW, now=NOON, limit=GrantLimit.ANY)
    GrantTerms().check(a_call(), TOOL, Effect.ALLOW, now=NOON, limit=GrantLimit.KERNEL)


def test_a_rejection_is_stricter_than_a_rule_that_allows_or_asks_and_than_a_grant() -> None:
    allowed, rejected = a_grant(), replace(a_grant(effect=Effect.DENY), id="g2")
    rule = Evaluation(effect=Effect.ALLOW, rule=Rule(server="*", tool="*", effect=Effect.ALLOW))
    for evaluation in (rule, ASK):
        found = apply_grants([allowed, rejected], a_call(), TOOL, evaluation, trust_key=KEY, now=NOON)
        assert found == Evaluation(effect=Effect.DENY, grant=rejected.use)


def test_a_grant_without_a_number_of_calls_goes_first() -> None:
    counted, open_ended = a_grant(uses=5), replace(a_grant(), id="g2")
    found = apply_grants([counted, open_ended], a_call(), TOOL, ASK, trust_key=KEY, now=NOON)
    assert found.grant == open_ended.use


def test_a_grant_ends_at_its_time() -> None:
    assert applied(a_grant(until=NOON + timedelta(seconds=30)), a_call()) == ASK


def test_code_of_a_thread_is_granted_whatever_is_found_in_it() -> None:
    code = ToolCall(server="notebook", tool="run_code", arguments={"code": "1"}, origin=AGENT)
    other = replace(code, arguments={"code": "2"}, known_digest="")
    tool = ToolDescription(name="run_code", annotations={"findings": [1]})
    found = replace(tool, annotations={"findings": [2]})

    assert applied(a_grant(Scope.THREAD, call=code, tool=tool), other, found, key="").effect is Effect.ALLOW
    # For the tool as such the answer is for what was found, and other findings end nothing.
    assert applied(a_grant(Scope.KERNEL, call=code, tool=tool), other, found, key="") == ASK
    assert applied(a_grant(Scope.KERNEL, call=code, tool=tool), other, tool, key="").effect is Effect.ALLOW


@pytest.mark.parametrize(("server", "tool"), [("agentbox", "register_mcp_server"), ("notebook", "set_approval_mode")])
def test_what_decides_who_is_asked_can_never_be_granted(server: str, tool: str) -> None:
    call = a_call(server=server, tool=tool)
    seen = ToolDescription(name=tool)
    with pytest.raises(InvalidDecisionError):
        GrantTerms().check(call, seen, Effect.ALLOW, now=NOON)
    GrantTerms().check(call, seen, Effect.DENY, now=NOON)
    assert applied(a_grant(call=call, tool=seen), call, seen).effect is Effect.ASK


@pytest.mark.parametrize(
    ("terms", "call", "tool", "effect"),
    [
        (GrantTerms(until=NOON), a_call(), TOOL, Effect.ALLOW),
        (GrantTerms(uses=0), a_call(), TOOL, Effect.ALLOW),
        (GrantTerms(uses=1_000_001), a_call(), TOOL, Effect.ALLOW),
        (GrantTerms(scope=Scope.USER), a_call(), TOOL, Effect.ALLOW),
        (GrantTerms(scope=Scope.KERNEL), a_call(origin=Origin()), TOOL, Effect.ALLOW),
        (GrantTerms(scope=Scope.THREAD), a_call(), TOOL, Effect.ALLOW),
        (GrantTerms(scope=Scope.SERVER_READ_ONLY), a_call(), TOOL, Effect.ALLOW),
        (GrantTerms(scope=Scope.SERVER_READ_ONLY), a_call(), LIST, Effect.DENY),
    ],
)
def test_terms_that_say_nothing_or_too_much_are_refused(
    terms: GrantTerms, call: ToolCall, tool: ToolDescription, effect: Effect
) -> None:
    with pytest.raises(InvalidDecisionError):
        terms.check(call, tool, effect, now=NOON)


@pytest.mark.parametrize(
    ("terms", "call", "tool"),
    [
        (GrantTerms(), a_call(), TOOL),
        (GrantTerms(scope=Scope.USER, uses=1), a_call(origin=Origin()), TOOL),
        (GrantTerms(scope=Scope.USER, until=LATER), a_call(), TOOL),
        (GrantTerms(scope=Scope.THREAD), a_call(origin=AGENT), TOOL),
        (GrantTerms(scope=Scope.SERVER_READ_ONLY), a_call(), LIST),
    ],
)
def test_terms_that_are_clear_are_taken(terms: GrantTerms, call: ToolCall, tool: ToolDescription) -> None:
    terms.check(call, tool, Effect.ALLOW, now=NOON)
