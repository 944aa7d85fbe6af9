from __future__ import annotations

import pytest

from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.policy import Effect, Evaluation, Layer, Policy, Rule, exactly
from tests.samples import a_call

ALLOW = Rule(tool="shop.*", effect=Effect.ALLOW)
ASK = Rule(tool="*.delete_*", effect=Effect.ASK, layer=Layer.SITE)
DENY = Rule(tool="shop.delete_order", effect=Effect.DENY, layer=Layer.SESSION)


def test_without_a_rule_a_person_is_asked() -> None:
    assert Policy().evaluate(a_call()) == Evaluation(effect=Effect.ASK, rule=None)


@pytest.mark.parametrize(
    ("rules", "winner"),
    [
        ((ALLOW,), ALLOW),
        ((ALLOW, ASK), ASK),
        ((ASK, ALLOW), ASK),
        ((DENY, ASK, ALLOW), DENY),
        ((ALLOW, ASK, DENY), DENY),
    ],
)
def test_the_strictest_matching_rule_wins_in_any_order(rules: tuple[Rule, ...], winner: Rule) -> None:
    assert Policy(rules).evaluate(a_call()) == Evaluation(effect=winner.effect, rule=winner)


def test_of_equally_strict_rules_the_first_is_named() -> None:
    second = Rule(tool="*", effect=Effect.ALLOW)

    assert Policy((ALLOW, second)).evaluate(a_call()).rule is ALLOW


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("shop.delete_order", True),
        ("shop.delete_*", True),
        ("*", True),
        ("shop.delete_orde?", True),
        ("Shop.delete_order", False),
        ("shop.delete", False),
        ("delete_order", False),
    ],
)
def test_a_pattern_matches_the_whole_name_and_its_case(pattern: str, matches: bool) -> None:
    assert Rule(tool=pattern, effect=Effect.DENY).matches(a_call()) is matches


@pytest.mark.parametrize(
    ("pattern", "server", "tool", "allows", "denies"),
    [
        ("shop.*", "shop", "list", True, True),
        ("shop.*", "shop", "orders.list", True, True),
        ("shop.*", "shop.evil", "list", False, True),
        ("shop.list", "shop", "list", True, True),
        ("a.b.c", "a", "b.c", True, True),
        ("a.b.c", "a.b", "c", False, True),
        ("a[.]b.c", "a.b", "c", True, True),
        ("a[.]b.c", "a", "b.c", False, True),
        ("[].]x.c", ".x", "c", True, True),
        ("*.list", "shop.evil", "list", True, True),
        ("*.list", "shop", "orders.list", False, True),
        ("*list*", "shop.evil", "list", True, True),
        ("shop", "shop", "list", False, False),
    ],
)
def test_what_allows_is_for_one_server_and_what_denies_reaches_further(
    pattern: str, server: str, tool: str, allows: bool, denies: bool
) -> None:
    call = ToolCall(server=server, tool=tool, arguments={})

    assert Rule(tool=pattern, effect=Effect.ALLOW).matches(call) is allows
    assert Rule(tool=pattern, effect=Effect.ASK).matches(call) is denies
    assert Rule(tool=pattern, effect=Effect.DENY).matches(call) is denies


@pytest.mark.parametrize(("server", "tool"), [("a.b", "c"), ("a", "b.c"), ("a[b]", "*?"), (".", "."), ("[.]", "]")])
def test_an_exact_pattern_allows_its_own_tool_only(server: str, tool: str) -> None:
    calls = [ToolCall(server=one, tool=two, arguments={}) for one, two in (("a.b", "c"), ("a", "b.c"), (server, tool))]
    rule = Rule(tool=exactly(calls[-1]), effect=Effect.ALLOW)

    assert [rule.matches(call) for call in calls] == [call == calls[-1] for call in calls]


@pytest.mark.parametrize(("kernel_id", "matches"), [(None, True), ("k1", True), ("k2", False)])
def test_a_rule_can_speak_of_one_kernel_only(kernel_id: str | None, matches: bool) -> None:
    assert Rule(tool="*", effect=Effect.ALLOW, kernel_id=kernel_id).matches(a_call()) is matches


@pytest.mark.parametrize(
    ("bound_to", "described_as", "matches"),
    [(None, None, True), (None, "d1", True), ("d1", "d1", True), ("d1", "d2", False), ("d1", None, False)],
)
def test_a_rule_can_speak_of_one_description_of_a_tool_only(
    bound_to: str | None, described_as: str | None, matches: bool
) -> None:
    rule = Rule(tool="*", effect=Effect.ALLOW, definition=bound_to)

    assert rule.matches(a_call(), described_as) is matches
    assert Policy((rule,)).evaluate(a_call(), described_as).effect is (Effect.ALLOW if matches else Effect.ASK)


def test_rules_can_be_added() -> None:
    assert Policy((ALLOW,)).with_rules([DENY]) == Policy((ALLOW, DENY))


def test_a_rule_names_itself() -> None:
    assert str(ASK) == "site: ask *.delete_*"


@pytest.mark.parametrize(
    ("pattern", "layer", "effect", "wanted"),
    [
        ("agentbox.register_mcp_server", Layer.USER, Effect.ALLOW, Effect.ALLOW),
        ("agentbox.register_mcp_server", Layer.SESSION, Effect.ALLOW, Effect.ASK),
        ("*", Layer.SITE, Effect.ALLOW, Effect.ASK),
        ("agentbox.*", Layer.USER, Effect.ALLOW, Effect.ASK),
        ("agentbox.register_mcp_serve?", Layer.USER, Effect.ALLOW, Effect.ASK),
        ("*", Layer.USER, Effect.DENY, Effect.DENY),
    ],
)
def test_only_a_rule_of_a_file_with_its_full_name_allows_that_a_server_is_added(
    pattern: str, layer: Layer, effect: Effect, wanted: Effect
) -> None:
    call = ToolCall(server="agentbox", tool="register_mcp_server", arguments={})
    assert Policy((Rule(tool=pattern, layer=layer, effect=effect),)).evaluate(call).effect is wanted


@pytest.mark.parametrize("floor", Effect)
@pytest.mark.parametrize("effect", Effect)
def test_a_floor_makes_an_evaluation_stricter_and_never_milder(effect: Effect, floor: Effect) -> None:
    evaluation, least = Evaluation(effect=effect), Evaluation(effect=floor)

    assert evaluation.at_least(least) is (least if floor.strictness > effect.strictness else evaluation)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ((), Evaluation(effect=Effect.ASK, model_may_allow=True)),
        ((ALLOW,), Evaluation(effect=Effect.ALLOW, rule=ALLOW)),
        ((ASK,), Evaluation(effect=Effect.ASK, rule=ASK)),
        ((DENY,), Evaluation(effect=Effect.DENY, rule=DENY)),
    ],
)
def test_a_model_may_allow_what_the_policy_names_and_no_rule_speaks_of(
    rules: tuple[Rule, ...], expected: Evaluation
) -> None:
    policy = Policy(model_may_allow=("other.*", "shop.delete_*")).with_rules(rules)

    assert policy.evaluate(a_call()) == expected


@pytest.mark.parametrize(
    ("pattern", "server", "tool"),
    [("shop.*", "shop.evil", "list"), ("*", "agentbox", "register_mcp_server"), ("*.list", "shop", "orders.list")],
)
def test_a_model_may_allow_nothing_that_a_rule_of_the_same_pattern_could_not(
    pattern: str, server: str, tool: str
) -> None:
    call = ToolCall(server=server, tool=tool, arguments={})

    assert Policy(model_may_allow=(pattern,)).evaluate(call) == Evaluation(effect=Effect.ASK)


MAY = Evaluation(effect=Effect.ASK, model_may_allow=True)


@pytest.mark.parametrize(
    ("evaluation", "floor", "expected"),
    [
        (MAY, Evaluation(effect=Effect.ALLOW), MAY),
        (MAY, MAY, MAY),
        (MAY, Evaluation(effect=Effect.ASK), Evaluation(effect=Effect.ASK)),
        (Evaluation(effect=Effect.ASK), MAY, Evaluation(effect=Effect.ASK)),
        (Evaluation(effect=Effect.ALLOW), MAY, MAY),
        (MAY, Evaluation(effect=Effect.DENY), Evaluation(effect=Effect.DENY)),
    ],
)
def test_a_floor_that_asks_a_person_keeps_models_out(
    evaluation: Evaluation, floor: Evaluation, expected: Evaluation
) -> None:
    assert evaluation.at_least(floor) == expected


@pytest.mark.parametrize("effect", Effect)
def test_without_asking_only_what_would_ask_is_refused(effect: Effect) -> None:
    evaluation = Evaluation(effect=effect)
    refused = evaluation.without_asking(DENY)

    assert refused == (Evaluation(effect=Effect.DENY, rule=DENY) if effect is Effect.ASK else evaluation)
