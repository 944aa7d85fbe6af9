from __future__ import annotations

from dataclasses import replace

import pytest

from jupyter_agentbox.core.calls import JsonObject, JsonValue, Origin, ToolCall
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.policy import Effect, Evaluation, GrantLimit, Layer, Policy, Rule
from jupyter_agentbox.core.tools import ToolDescription
from tests.samples import a_call

ALLOW = Rule(server="shop", tool="*", effect=Effect.ALLOW)
ASK = Rule(server="*", tool="delete_*", effect=Effect.ASK, layer=Layer.SITE)
TOOL = ToolDescription(name="delete_order", description="Deletes an order.")
OTHER = ToolDescription(name="delete_order", description="Deletes all orders.")
DENY = Rule(server="shop", tool="delete_order", effect=Effect.DENY, layer=Layer.SESSION)


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
    second = Rule(server="*", tool="*", effect=Effect.ALLOW)

    assert Policy((ALLOW, second)).evaluate(a_call()).rule is ALLOW


@pytest.mark.parametrize(
    ("server", "tool", "matches"),
    [
        ("shop", "delete_order", True),
        ("shop", "delete_*", True),
        ("*", "*", True),
        ("sho?", "delete_orde[rs]", True),
        ("s*p", "*order", True),
        ("Shop", "delete_order", False),
        ("shop", "Delete_*", False),
        ("shop", "delete", False),
        ("*", "delete_order?", False),
        ("shop.*", "*", False),
        ("*", "shop.delete_order", False),
    ],
)
def test_server_and_tool_match_separately_as_a_whole_and_with_their_case(server: str, tool: str, matches: bool) -> None:
    assert Rule(server=server, tool=tool, effect=Effect.DENY).matches(a_call()) is matches


@pytest.mark.parametrize("effect", Effect)
def test_a_rule_for_a_server_is_for_no_other_whose_name_begins_the_same(effect: Effect) -> None:
    rule = Rule(server="shop", tool="*", effect=effect)
    assert rule.matches(ToolCall(server="shop", tool="orders.list", arguments={}))
    assert not rule.matches(ToolCall(server="shop.evil", tool="list", arguments={}))


@pytest.mark.parametrize(("server", "tool"), [("a.b", "c"), ("a", "b.c"), ("a[b]", "*?"), (".", "."), ("[.]", "]")])
def test_a_rule_of_a_tool_is_for_that_tool_only(server: str, tool: str) -> None:
    calls = [ToolCall(server=one, tool=two, arguments={}) for one, two in (("a.b", "c"), ("a", "b.c"), (server, tool))]
    rule = Rule.of_tool(calls[-1], Effect.ALLOW, layer=Layer.USER, reason="so")

    assert [rule.matches(call) for call in calls] == [call == calls[-1] for call in calls]
    assert (rule.layer, rule.reason) == (Layer.USER, "so")


@pytest.mark.parametrize("effect", Effect)
@pytest.mark.parametrize(
    ("notebook", "path", "matches"),
    [
        ("work/*", "work/orders.ipynb", True),
        ("work/*", "work/2026/orders.ipynb", True),
        ("*.ipynb", "orders.ipynb", True),
        ("work/orders.ipynb", "work/orders.ipynb", True),
        ("work/*", "elsewhere/work/orders.ipynb", False),
        ("work/*", "Work/orders.ipynb", False),
        ("*", None, False),
    ],
)
def test_a_rule_can_speak_of_some_notebooks_only(
    notebook: str, path: str | None, matches: bool, effect: Effect
) -> None:
    rule = Rule(server="*", tool="*", effect=effect, notebook=notebook)
    assert rule.matches(a_call(origin=Origin(notebook_path=path))) is matches


@pytest.mark.parametrize(("effect", "matches"), [(Effect.ALLOW, False), (Effect.ASK, True), (Effect.DENY, True)])
def test_a_pattern_that_allows_goes_no_step_up_in_a_path(effect: Effect, matches: bool) -> None:
    rule = Rule(server="*", tool="*", effect=effect, notebook="work/*")
    assert rule.matches(a_call(origin=Origin(notebook_path="work/../secret.ipynb"))) is matches


@pytest.mark.parametrize(
    ("wanted", "level", "matches"),
    [
        (Isolation.NONE, Isolation.NONE, True),
        (Isolation.LANDLOCK, Isolation.NONE, False),
        (Isolation.LANDLOCK, Isolation.SRT, False),
        (Isolation.LANDLOCK, Isolation.LANDLOCK, True),
        (Isolation.LANDLOCK, Isolation.BUBBLEWRAP_HOST_PROC, True),
        (Isolation.BUBBLEWRAP, Isolation.BUBBLEWRAP_HOST_PROC, False),
        (Isolation.BUBBLEWRAP, Isolation.BUBBLEWRAP, True),
        # Nobody here knows what a remote kernel is kept from: only a rule for any kernel speaks of it.
        (Isolation.NONE, Isolation.REMOTE, True),
        (Isolation.SRT, Isolation.REMOTE, False),
        (Isolation.BUBBLEWRAP, Isolation.REMOTE, False),
        (Isolation.REMOTE, Isolation.BUBBLEWRAP, False),
    ],
)
def test_a_rule_can_speak_of_kernels_that_are_kept_apart_far_enough(
    wanted: Isolation, level: Isolation, matches: bool
) -> None:
    rule = Rule(server="*", tool="*", effect=Effect.ALLOW, isolation=wanted)
    assert rule.matches(a_call(origin=Origin(isolation=level))) is matches


def meets(effect: Effect, conditions: JsonObject, arguments: JsonObject, tool: ToolDescription | None = None) -> bool:
    rule = Rule(server="shop", tool="*", effect=effect, arguments=conditions)
    return rule.matches(a_call(arguments=arguments), tool)


@pytest.mark.parametrize("effect", Effect)
@pytest.mark.parametrize(
    ("arguments", "matches"),
    [
        ({"order_id": 7, "why": "late"}, True),
        ({"order_id": 7, "why": "late", "more": 1}, True),
        ({"order_id": 8, "why": "late"}, False),
        ({"order_id": 7}, False),
        ({}, False),
    ],
)
def test_all_conditions_have_to_hold_and_a_missing_argument_meets_none(
    arguments: JsonObject, matches: bool, effect: Effect
) -> None:
    assert meets(effect, {"order_id": 7, "why": "l*"}, arguments) is matches


@pytest.mark.parametrize("value", ["7", True, None, [7], {"min": 7}])
def test_a_value_of_another_kind_is_allowed_by_no_rule_and_matches_all_others(value: JsonValue) -> None:
    assert [meets(effect, {"order_id": 7}, {"order_id": value}) for effect in Effect] == [False, True, True]


@pytest.mark.parametrize(
    ("schema", "matches"),
    [
        ({"properties": {"force": {"default": True}}}, [False, True, True]),
        ({"properties": {"force": {"default": False}}}, [False, False, False]),
        ({"properties": {"force": {}, "x": True}}, [False, False, False]),
        ({"properties": []}, [False, False, False]),
        ({}, [False, False, False]),
    ],
)
def test_what_a_tool_takes_for_a_missing_argument_makes_rules_stricter_only(
    schema: JsonObject, matches: list[bool]
) -> None:
    tool = ToolDescription(name="push", input_schema=schema)
    assert [meets(effect, {"force": True}, {}, tool) for effect in Effect] == matches


def test_a_condition_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="`x`"):
        Rule(server="*", tool="*", effect=Effect.ALLOW, arguments={"x": {"minimum": 1}})


@pytest.mark.parametrize(("kernel_id", "matches"), [(None, True), ("k1", True), ("k2", False)])
def test_a_rule_can_speak_of_one_kernel_only(kernel_id: str | None, matches: bool) -> None:
    assert Rule(server="*", tool="*", effect=Effect.ALLOW, kernel_id=kernel_id).matches(a_call()) is matches


@pytest.mark.parametrize(
    ("bound_to", "tool", "matches"),
    [(None, None, True), (None, TOOL, True), (TOOL, TOOL, True), (TOOL, OTHER, False), (TOOL, None, False)],
)
def test_a_rule_can_speak_of_one_description_of_a_tool_only(
    bound_to: ToolDescription | None, tool: ToolDescription | None, matches: bool
) -> None:
    rule = Rule(server="*", tool="*", effect=Effect.ALLOW, definition=bound_to.digest if bound_to else None)

    assert rule.matches(a_call(), tool) is matches
    assert Policy((rule,)).evaluate(a_call(), tool).effect is (Effect.ALLOW if matches else Effect.ASK)


def test_many_rules_of_many_servers_are_found_again_for_each_tool() -> None:
    rules = [Rule(server=f"s{number}", tool="*", effect=Effect.ALLOW) for number in range(1200)]
    policy = Policy((*rules, Rule(server="s*", tool="delete", effect=Effect.DENY)))
    for _ in range(2):
        for number, rule in enumerate(rules):
            assert policy.evaluate(a_call(server=f"s{number}", tool="list")).rule is rule
            assert policy.evaluate(a_call(server=f"s{number}", tool="list")).rule is rule
            assert policy.evaluate(a_call(server=f"s{number}", tool="delete")).effect is Effect.DENY


def test_rules_can_be_added() -> None:
    assert Policy((ALLOW,)).with_rules([DENY]) == Policy((ALLOW, DENY))


def test_a_rule_names_itself() -> None:
    assert str(ASK) == "site: ask *.delete_*"


@pytest.mark.parametrize(
    ("server", "tool", "layer", "effect", "wanted"),
    [
        ("agentbox", "register_mcp_server", Layer.USER, Effect.ALLOW, Effect.ALLOW),
        ("agentbox", "register_mcp_server", Layer.SESSION, Effect.ALLOW, Effect.ASK),
        ("*", "*", Layer.SITE, Effect.ALLOW, Effect.ASK),
        ("agentbox", "*", Layer.USER, Effect.ALLOW, Effect.ASK),
        ("*", "register_mcp_server", Layer.USER, Effect.ALLOW, Effect.ASK),
        ("agentbox", "register_mcp_serve?", Layer.USER, Effect.ALLOW, Effect.ASK),
        ("*", "*", Layer.USER, Effect.DENY, Effect.DENY),
    ],
)
def test_only_a_rule_of_a_file_with_both_full_names_allows_that_a_server_is_added(
    server: str, tool: str, layer: Layer, effect: Effect, wanted: Effect
) -> None:
    call = ToolCall(server="agentbox", tool="register_mcp_server", arguments={})
    rule = Rule(server=server, tool=tool, layer=layer, effect=effect)
    assert Policy((rule,)).evaluate(call).effect is wanted


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
    ("pattern", "server", "tool", "may"),
    [
        ("shop.*", "shop", "orders.list", True),
        ("shop.*", "shop.evil", "list", False),
        ("a[.]b.c", "a.b", "c", True),
        ("a[.]b.c", "a", "b.c", False),
        ("[].]x.c", ".x", "c", True),
        ("*.list", "shop", "orders.list", False),
        ("*list*", "shop", "list", True),
        ("shop", "shop", "list", False),
        ("*", "agentbox", "register_mcp_server", False),
        ("agentbox.register_mcp_server", "agentbox", "register_mcp_server", True),
    ],
)
def test_the_first_dot_of_what_is_left_to_a_model_divides_server_and_tool(
    pattern: str, server: str, tool: str, may: bool
) -> None:
    call = ToolCall(server=server, tool=tool, arguments={})

    evaluation = Policy(model_may_allow=(pattern,)).evaluate(call)
    assert evaluation == Evaluation(effect=Effect.ASK, model_may_allow=may)


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
        (MAY, Evaluation(effect=Effect.ASK, rule=ASK), Evaluation(effect=Effect.ASK, rule=ASK)),
    ],
)
def test_a_floor_that_asks_a_person_keeps_models_out(
    evaluation: Evaluation, floor: Evaluation, expected: Evaluation
) -> None:
    assert evaluation.at_least(floor) == expected


MILD, MILDER = (replace(ASK, layer=Layer.SITE, grants=limit) for limit in (GrantLimit.KERNEL, GrantLimit.ANY))


def test_of_rules_that_ask_the_one_that_lets_fewer_grants_allow_is_stricter() -> None:
    call = a_call()
    assert Policy((MILDER, MILD)).evaluate(call).rule == MILD
    assert Policy((MILDER, MILD, ASK)).evaluate(call).rule == ASK
    asked = Evaluation(effect=Effect.ASK, rule=MILDER)
    assert Evaluation(effect=Effect.ASK).at_least(Evaluation(effect=Effect.ASK, rule=ASK)).rule == ASK
    assert asked.at_least(Evaluation(effect=Effect.ASK)) == asked
    assert Evaluation(effect=Effect.ASK, rule=ASK).at_least(asked).rule == ASK


def test_a_rule_that_asks_keeps_what_it_says_where_another_one_lets_fewer_grants_allow() -> None:
    site = replace(MILDER, timeout=30, reason="ask the shop")
    floor = Evaluation(effect=Effect.ASK, rule=ASK)
    assert Evaluation(effect=Effect.ASK, rule=site).at_least(floor).rule == replace(site, grants=ASK.grants)


@pytest.mark.parametrize("effect", Effect)
def test_without_asking_only_what_would_ask_is_refused(effect: Effect) -> None:
    evaluation = Evaluation(effect=effect)
    refused = evaluation.without_asking(DENY)

    assert refused == (Evaluation(effect=Effect.DENY, rule=DENY) if effect is Effect.ASK else evaluation)


OF_GROUP = ("students", "guests")


@pytest.mark.parametrize("effect", list(Effect))
@pytest.mark.parametrize("groups", [frozenset({"guests", "x"}), frozenset({"x"}), frozenset(), None])
def test_a_rule_for_groups_is_for_their_members_and_where_they_are_unknown_only_if_it_is_strict(
    effect: Effect, groups: frozenset[str] | None
) -> None:
    other = Rule(server="other", tool="*", effect=Effect.DENY)
    policy = Policy((other, Rule(server="shop", tool="*", effect=effect, groups=OF_GROUP, reason="look")))
    holds = effect is not Effect.ALLOW if groups is None else "guests" in groups

    of_person = policy.for_groups(groups)
    found = of_person.evaluate(a_call())

    assert of_person.rules[0] is other
    assert found.effect is (effect if holds else Effect.ASK)
    assert (found.rule is not None) is holds
    if found.rule is not None:
        known = "you are in the group `guests`"
        unknown = "it is not known in which groups of JupyterHub you are"
        assert found.rule.reason == f"look (because {unknown if groups is None else known})"


def test_a_rule_for_groups_that_nobody_asked_about_allows_nothing_and_denies_all() -> None:
    allow, deny = (Rule(server="*", tool="*", effect=effect, groups=("x",)) for effect in (Effect.ALLOW, Effect.DENY))
    assert Policy((allow,)).evaluate(a_call()).effect is Effect.ASK
    assert Policy((deny,)).evaluate(a_call()).effect is Effect.DENY


def test_a_reason_names_the_person_where_others_read_it() -> None:
    rule = Rule(server="*", tool="*", effect=Effect.ASK, groups=("x",))
    found = rule.for_groups(frozenset({"x"}), person="ada")
    assert found is not None
    assert found.reason == "because ada is in the group `x`"


def test_a_policy_without_groups_is_the_same_for_everybody() -> None:
    policy = Policy((ALLOW, ASK))
    assert policy.for_groups(frozenset({"x"})) is policy


@pytest.mark.parametrize("rule", [None, ALLOW])
def test_an_evaluation_names_the_version_of_the_hubs_policy_if_there_is_one(rule: Rule | None) -> None:
    assert "policy_version" not in Evaluation(effect=Effect.ALLOW, rule=rule).to_json()
    assert Evaluation(effect=Effect.ALLOW, rule=rule, policy_version=7).to_json()["policy_version"] == 7
