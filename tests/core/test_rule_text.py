from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.globs import problem_of_pattern
from jupyter_agentbox.core.isolation import LADDER, Isolation
from jupyter_agentbox.core.policy import Effect, GrantLimit, Layer, Policy, Rule
from jupyter_agentbox.core.rule_text import RuleText, read_text, write_text
from jupyter_agentbox.core.site_policy import Feature, HubPolicySource, Lock, ServerPattern, SiteAudit, SitePolicy
from tests.samples import calls

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=9)
patterns = st.text(st.sampled_from("ab*?[].é/"), min_size=1, max_size=6).filter(
    lambda pattern: not problem_of_pattern(pattern)
)
notebooks = patterns.filter(lambda path: {".", ".."}.isdisjoint(path.split("/")) and not path.startswith("/"))
numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
ranges = st.lists(numbers, min_size=2, max_size=2).map(lambda two: {"min": min(two), "max": max(two)})
simple = patterns | numbers | st.booleans() | st.none() | ranges | st.builds(lambda low: {"min": low}, numbers)
conditions = simple | st.lists(simple, min_size=1, max_size=3)
entries = st.fixed_dictionaries(
    {"effect": st.sampled_from([effect.value for effect in Effect]), "server": patterns, "tool": patterns},
    optional={
        "arguments": st.dictionaries(names, conditions, min_size=1, max_size=2),
        "notebook": notebooks,
        "isolation": st.sampled_from([level.value for level in LADDER if level is not Isolation.NONE]),
        "timeout": st.floats(0.001, 1000),
        "reason": names,
    },
)
NO_NOTEBOOK = "`notebook` is a path below the server's root directory: no `/` first, no `.` or `..` in it"
BASE = {"effect": "allow", "server": "shop", "tool": "list_*"}


def read(text: str, layer: Layer = Layer.USER) -> RuleText:
    return read_text(text, path="rules.json", layer=layer)


def of(**changes: Any) -> str:
    return json.dumps({"rules": [{**BASE, **changes}]})


@given(st.lists(entries, max_size=4))
def test_rules_are_read_as_they_were_written(given: list[Any]) -> None:
    text = write_text(given)
    found = read(text)

    assert found.problems == ()
    assert (list(found.entries), json.dumps(found.entries)) == (given, json.dumps(given))
    assert write_text(found.entries) == text
    again = read(write_text([rule.to_json() for rule in found.rules]))
    assert [rule.to_json() for rule in again.rules] == [rule.to_json() for rule in found.rules]


@given(st.lists(entries, max_size=5), st.lists(entries, max_size=5), calls)
def test_the_strictest_wins_and_no_rule_of_a_user_loosens_the_sites(
    site: list[Any], user: list[Any], call: Any
) -> None:
    of_site = read(write_text(site), Layer.SITE).rules
    of_user = read(write_text(user)).rules
    alone, together = Policy(of_site).evaluate(call), Policy((*of_site, *of_user)).evaluate(call)

    strictest = max((rule.effect.strictness for rule in (*of_site, *of_user) if rule.matches(call)), default=None)
    assert together.effect.strictness == (Effect.ASK.strictness if strictest is None else strictest)
    if alone.rule is not None:
        assert together.effect.strictness >= alone.effect.strictness


@given(st.text(st.sampled_from('[]{}:,"\\ \nruleseffctasktool*.0123456789\ud800é'), max_size=60))
def test_any_text_gives_rules_or_problems_and_never_both(text: str) -> None:
    found = read(text)
    assert not (found.rules and found.problems)
    assert all(problem.line and problem.column and problem.message for problem in found.problems)


keys = st.sampled_from([*BASE, "rules", "arguments", "timeout", "min"])
anything = st.recursive(
    st.none() | st.booleans() | numbers | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
)


@given(anything)
def test_any_json_gives_rules_or_problems(value: Any) -> None:
    for text in (json.dumps(value), json.dumps({"rules": value}), json.dumps({"rules": [value]})):
        found = read(text)
        assert len(found.rules) == len(found.entries)
        assert not (found.rules and found.problems)


def test_a_rule_has_all_that_the_file_says_of_it() -> None:
    text = write_text(
        [
            BASE,
            {
                "effect": "ask",
                "server": "sh*",
                "tool": "*",
                "arguments": {"id": {"min": 1}},
                "notebook": "work/*",
                "isolation": "landlock",
                "timeout": 30,
                "reason": "look",
            },
        ],
        schema="./rules.schema.json",
    )
    found = read(text, Layer.SITE)

    assert found.schema == "./rules.schema.json"
    assert found.rules == (
        Rule(server="shop", tool="list_*", effect=Effect.ALLOW, layer=Layer.SITE, file="rules.json", line=4),
        Rule(
            server="sh*",
            tool="*",
            effect=Effect.ASK,
            layer=Layer.SITE,
            arguments={"id": {"min": 1}},
            notebook="work/*",
            isolation=Isolation.LANDLOCK,
            timeout=30.0,
            reason="look",
            file="rules.json",
            line=9,
        ),
    )


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("[]", ['1:1: a file of rules is an object with a list under "rules"']),
        ("{}", ["1:1: `rules` is missing"]),
        ('{"rules": {}}', ["1:11: `rules` must be a list"]),
        ('{"rules": [], "$schema": 1}', ["1:26: `$schema` must be a string"]),
        ('{"rules": [], "Rules": []}', ["1:15: unknown key `Rules`: did you mean `rules`?"]),
        ('{"rules": [],\n "x": []}', ["2:2: unknown key `x`: a file of rules has rules, $schema"]),
        ('{"rules": [\n  3]}', ["2:3: a rule must be an object"]),
        (of(efect=1), ["1:68: unknown key `efect`: did you mean `effect`?"]),
        (of(effect="permit"), ["1:23: `effect` must be `allow`, `ask` or `deny`, not `permit`"]),
        (of(effect="Allow"), ["1:23: `effect` must be `allow`, `ask` or `deny`, not `Allow`: did you mean `allow`?"]),
        (of(effect=None), ["1:23: `effect` must be `allow`, `ask` or `deny`, not `null`"]),
        (of(effect=""), ["1:23: `effect` must be `allow`, `ask` or `deny`, not an empty string"]),
        (of(effect=["ask"]), ["1:23: `effect` must be `allow`, `ask` or `deny`, not a list"]),
        (of(effect={}), ["1:23: `effect` must be `allow`, `ask` or `deny`, not an object"]),
        (of(server=""), ["1:42: `server` is empty; `*` matches everything"]),
        (of(server=["shop"]), ["1:42: `server` must be a string"]),
        (of(tool="x" * 1001), ["1:58: `tool` is longer than 1000 characters"]),
        (of(notebook=1), ["1:80: `notebook` must be a string"]),
        (of(tool="[ab"), ["1:58: `tool`: `[ab` has no `]`; write `[[]` for the letter `[`"]),
        (of(server="x[z-a]"), ["1:42: `server`: `z-a` in `[z-a]` is upside down: write `a-z`"]),
        (
            of(arguments={"x": ["[!9-0]"]}),
            ["1:87: the condition of `x`: `9-0` in `[!9-0]` is upside down: write `0-9`"],
        ),
        *((of(notebook=path), [f"1:80: {NO_NOTEBOOK}"]) for path in ("/home/*", "../*", "a/./b", "a/..")),
        (of(timeout=0), ["1:79: `timeout` must be a number of seconds, more than 0 and at most 31622400"]),
        (of(timeout=True), ["1:79: `timeout` must be a number of seconds, more than 0 and at most 31622400"]),
        (of(timeout="5"), ["1:79: `timeout` must be a number of seconds, more than 0 and at most 31622400"]),
        (of(arguments=[]), ["1:81: `arguments` must be an object: the name of an argument, and its condition"]),
        (of(arguments={"x": []}), ["1:87: the condition of `x`: an empty list matches nothing"]),
        (of(arguments={"x": ["y" * 1001]}), ["1:87: the condition of `x`: a pattern has more than 1000 characters"]),
        (
            '{"rules": [{"tool": "shop.list_*", "effect": "ask"}, {"tool": "x"}]}',
            [
                '1:12: `server` is missing: did you mean `"server": "shop", "tool": "list_*"`?',
                "1:54: `effect` is missing: it must be `allow`, `ask` or `deny`",
                "1:54: `server` is missing: a name or a pattern; `*` is every server",
            ],
        ),
        (
            '{"rules": [{"effect": "ask", "server": "x"}]}',
            ["1:12: `tool` is missing: a name or a pattern; `*` is every tool"],
        ),
        ('{"rules": [', ["1:12: expected a value"]),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, problems: list[str]) -> None:
    found = read(text)
    assert [str(problem) for problem in found.problems] == [f"rules.json:{problem}" for problem in problems]
    assert found.rules == ()


def test_what_is_wrong_with_a_rule_is_told_with_its_number() -> None:
    text = json.dumps({"x": 1, "rules": [BASE, {**BASE, "effect": "alow"}, BASE, 3]})
    found = [(problem.rule, problem.column) for problem in read(text).problems]
    assert found == [(None, 2), (2, text.index('"alow"') + 1), (4, text.index("3]") + 1)]


def test_an_isolation_is_one_of_the_levels() -> None:
    (problem,) = read(of(isolation="bubblewarp")).problems
    assert problem.message.endswith("did you mean `bubblewrap`?")


def test_a_site_says_what_kernels_below_a_level_may_not_do() -> None:
    text = write_text([{**BASE, "effect": "deny", "below": "landlock"}])
    (rule,) = read(text, Layer.SITE).rules
    call = ToolCall(server="shop", tool="list_orders", arguments={})
    levels = (Isolation.NONE, Isolation.REMOTE, Isolation.SRT, Isolation.LANDLOCK, Isolation.BUBBLEWRAP)
    denied = [rule.matches(replace(call, origin=replace(call.origin, isolation=level))) for level in levels]
    assert denied == [True, True, True, False, False]


def test_no_rule_is_for_kernels_below_none_and_no_user_writes_one() -> None:
    for found in (read(of(below="none"), Layer.SITE), read(of(below="landlock"))):
        assert len(found.problems) == 1


@pytest.mark.parametrize("limit", GrantLimit)
def test_a_site_says_which_grants_allow_what_its_rule_asks_about(limit: GrantLimit) -> None:
    (rule,) = read(of(effect="ask", grants=limit.value), Layer.SITE).rules
    assert rule.grants is limit
    assert rule.to_json() == {**BASE, "effect": "ask", **({"grants": limit.value} if limit.mildness else {})}


@pytest.mark.parametrize(
    ("more", "layer", "message"),
    [
        ({"effect": "ask", "grants": "any"}, Layer.USER, "`grants` can stand in a site's file only"),
        ({"effect": "ask", "grants": "user"}, Layer.SITE, "`grants` must be"),
        ({"effect": "allow", "grants": "any"}, Layer.SITE, "`grants` is for a rule that asks"),
    ],
)
def test_grants_stand_only_where_they_mean_something(more: Any, layer: Layer, message: str) -> None:
    (problem,) = read(of(**more), layer).problems
    assert message in problem.message


def test_no_grants_stand_beside_approvers() -> None:
    text = of(effect="ask", grants="any", approvers={"group": "stewards"})
    (problem,) = read_text(text, path="p", layer=Layer.SITE, is_of_hub=True).problems
    assert "cannot stand beside `approvers`" in problem.message


def test_no_rule_asks_for_what_is_no_more_and_no_less_than_another_level() -> None:
    assert len(read(of(isolation="remote")).problems) == 1


def test_of_many_problems_the_first_are_told() -> None:
    problems = read(json.dumps({"rules": [1] * 50})).problems
    assert len(problems) == 21
    assert problems[-1].message == "and 30 more problems from here on"


def deep() -> Any:
    value: Any = []
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize("entry", [float("nan"), deep()], ids=["nan", "deep"])
def test_what_is_no_json_is_not_written(entry: Any) -> None:
    with pytest.raises(ValueError, match=r"nested|JSON"):
        write_text([entry])


def site(**more: Any) -> RuleText:
    return read(json.dumps({"rules": [], **more}), Layer.SITE)


def test_a_file_of_the_site_says_which_features_and_servers_its_users_have() -> None:
    found = site(
        features={"grants": "force-off", "edit": "user-choice"},
        servers={"allow": [{"command": ["uvx", "mcp-*", "..."]}, {"url": "https://a.example.org/*"}], "deny": []},
    )
    assert found.problems == ()
    assert found.site == SitePolicy(
        features={Feature.GRANTS: Lock.FORCE_OFF, Feature.EDIT: Lock.USER_CHOICE},
        allowed=(ServerPattern(command=("uvx", "mcp-*", "...")), ServerPattern(url="https://a.example.org/*")),
        files=("rules.json",),
    )
    key = "0f" * 32
    assert site(servers={"deny": [{"trust_key": key}]}).site == SitePolicy(
        denied=(ServerPattern(trust_key=key),), files=("rules.json",)
    )
    assert site().site == SitePolicy()
    assert site(servers={}).site == SitePolicy(files=("rules.json",))
    assert site(features={}).site == SitePolicy(files=("rules.json",))


def test_a_file_of_the_site_says_where_records_go() -> None:
    given = {"sinks": ["stdout:"], "when_down": "deny", "arguments": "digest", "token_file": "/etc/token"}
    assert site(audit=given).site == SitePolicy(
        audit=SiteAudit(sinks=("stdout:",), when_down="deny", arguments="digest", token_file="/etc/token"),
        files=("rules.json",),
    )
    assert site(audit={"sinks": []}).site == SitePolicy(files=("rules.json",))
    for names in ([], ["*password*", "iban"]):
        assert site(audit={"sinks": [], "secret_names": names}).site.audit.secret_names == tuple(names)


#: Addresses that would match no server at all -> what is said of them.
UNMATCHABLE = {
    "*://evil.example/*": "`url` must begin with `https://` or `http://`",
    "htps://evil.example/*": "`url` must begin with `https://` or `http://`",
    "https:///mcp": "`url` has no host",
    "https://[ab].evil.example/*": "`url` cannot be understood",
    "https://evil.example:*/mcp": "`url` cannot be understood",
    "https://eve@evil.example/*": "`url` must not contain a user name",
    "https://evil.example/mc?/*": "`url` must end with the path",
    "https://evil.example/mcp#x": "`url` must end with the path",
    "https://evil.example/* ": "`url` must not contain a space",
    "https://evil.example\\*": "`url` must not contain a space, a line break or a `\\`",
    "https://evil\n.example/*": "`url` must not contain a space",
    "https://evil.example,other.example/*": "a character in its host that no host has",
    "https://%65vil,.example/*": "a character in its host that no host has",
    "https://.evil.example/*": "a dot in its host with nothing before or after it",
    "https://*b\N{LATIN SMALL LETTER U WITH DIAERESIS}cher.example/*": "in Punycode",
    "https://evil.example/[z-a]*": "upside down",
    "https://evil.example/[a": "has no `]`",
}


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"audit": []}, "`audit` must be an object"),
        ({"audit": {}}, "`sinks` must be a list"),
        ({"audit": {"sinks": "stdout:"}}, "`sinks` must be a list"),
        ({"audit": {"sinks": [1]}}, "an address must be a string"),
        ({"audit": {"sinks": [""]}}, "an address must be a string"),
        ({"audit": {"sinks": [], "when_down": "run"}}, "`when_down` must be"),
        ({"audit": {"sinks": [], "arguments": "all"}}, "`arguments` must be"),
        ({"audit": {"sinks": [], "token_file": ""}}, "`token_file` is empty"),
        ({"audit": {"sinks": [], "secret_names": "iban"}}, "`secret_names` must be a list of patterns"),
        ({"audit": {"sinks": [], "secret_names": [1]}}, "a name of secrets must be a non-empty string"),
        ({"audit": {"sinks": [], "secret_names": ["[a"]}}, "`secret_names`: "),
        ({"audit": {"sinks": [], "sink": []}}, "unknown key `sink`"),
        ({"features": []}, "`features` must be an object"),
        ({"features": {"grant": "force-off"}}, "unknown key `grant`: did you mean `grants`?"),
        ({"features": {"grants": "off"}}, "`grants` must be"),
        ({"features": {"grants": False}}, "`grants` must be"),
        ({"servers": []}, "`servers` must be an object"),
        ({"servers": {"allowed": []}}, "unknown key `allowed`: did you mean `allow`?"),
        ({"servers": {"allow": {}}}, "`allow` must be a list"),
        ({"servers": {"allow": ["uvx"]}}, "a server is"),
        ({"servers": {"allow": [{}]}}, "a server is"),
        ({"servers": {"allow": [{"command": ["uvx"], "url": "https://x"}]}}, "a server is"),
        ({"servers": {"allow": [{"name": "shop"}]}}, "unknown key `name`"),
        ({"servers": {"allow": [{"command": "uvx"}]}}, "`command` must be a list"),
        ({"servers": {"allow": [{"command": []}]}}, "`command` must be a list"),
        ({"servers": {"allow": [{"command": ["..."]}]}}, "`command` must be a list"),
        ({"servers": {"allow": [{"command": ["uvx", 1]}]}}, "`command` must be a list"),
        ({"servers": {"deny": [{"url": "example.org"}]}}, "`url` must begin with"),
        ({"servers": {"deny": [{"url": ""}]}}, "`url` is empty"),
        ({"servers": {"deny": [{"trust_key": "0F" * 32}]}}, "`trust_key` must be 64 lower-case"),
        ({"servers": {"deny": [{"trust_key": 5}]}}, "`trust_key` must be 64 lower-case"),
        *(({"servers": {"deny": [{"url": url}]}}, why) for url, why in UNMATCHABLE.items()),
        ({"feature": {}}, "unknown key `feature`: did you mean `features`?"),
        ({"servers": {"deny": [{"command": ["/opt/[z-a]"]}]}}, "`z-a` in `[z-a]` is upside down: write `a-z`"),
    ],
)
def test_what_is_wrong_in_a_file_of_the_site_is_told(more: Any, problem: str) -> None:
    found = site(**more)
    assert problem in found.problems[0].message
    assert found.site == SitePolicy()


@pytest.mark.parametrize("key", ["features", "servers", "audit"])
def test_what_only_a_site_says_makes_a_file_of_a_user_broken(key: str) -> None:
    (found,) = read(json.dumps({"rules": [], key: {}})).problems
    assert found.message == f"`{key}` can stand in a site's file only"


@given(anything)
def test_any_features_and_servers_are_read_or_told(value: Any) -> None:
    for more in (
        {"features": value},
        {"servers": value},
        {"servers": {"allow": value}},
        {"servers": {"deny": [value]}},
    ):
        found = site(**more)
        assert not (found.problems and found.site != SitePolicy())


def test_a_sites_rule_can_be_for_groups() -> None:
    found = read(of(groups=["students", "guests"]), Layer.SITE)
    assert found.problems == ()
    assert found.rules[0].groups == ("students", "guests")
    assert found.rules[0].to_json() == {**BASE, "groups": ["students", "guests"]}


@pytest.mark.parametrize(
    ("text", "layer", "message"),
    [
        (of(groups=["students"]), Layer.USER, "`groups` can stand in a site's file only"),
        (of(groups=[]), Layer.SITE, '`groups` must be a list of 1 to 50 groups of JupyterHub: `["students"]`'),
        (of(groups=["x"] * 51), Layer.SITE, '`groups` must be a list of 1 to 50 groups of JupyterHub: `["students"]`'),
        (of(groups="students"), Layer.SITE, '`groups` must be a list of 1 to 50 groups of JupyterHub: `["students"]`'),
        (of(groups=[""]), Layer.SITE, "the name of a group must be a non-empty string"),
        (of(groups=["a", 3]), Layer.SITE, "the name of a group must be a non-empty string"),
    ],
)
def test_groups_that_are_none_are_told(text: str, layer: Layer, message: str) -> None:
    found = read(text, layer)
    assert [problem.message for problem in found.problems] == [message]
    assert found.rules == ()


KEY = "A" * 43 + "="
HUB_POLICY = {"url": "https://hub.example/services/agentbox/api/policy", "public_key": KEY, "hub": "hub.example"}


def of_site(**keys: Any) -> RuleText:
    return read(json.dumps({"rules": [], **keys}), Layer.SITE)


def test_a_sites_file_names_the_hub_service_whose_policy_holds_and_the_first_file_that_does_counts() -> None:
    found = of_site(hub_policy=HUB_POLICY).site
    assert found.hub_policy == HubPolicySource(**HUB_POLICY)
    other = of_site(hub_policy={**HUB_POLICY, "hub": "other"}).site
    assert SitePolicy().with_stricter(found).with_stricter(other).hub_policy == found.hub_policy


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ([], "`hub_policy` must be an object with `url`, `public_key` and `hub`"),
        ({**HUB_POLICY, "key": ""}, "unknown key `key`: `hub_policy` has url, public_key, hub"),
        ({**HUB_POLICY, "url": "ftp://x"}, "`url` must begin with `https://` or `http://`"),
        (
            {**HUB_POLICY, "public_key": "AAAA"},
            "`public_key` must be what `jupyter agentbox hub --show-policy-key` prints",
        ),
        ({"url": HUB_POLICY["url"], "public_key": KEY}, "`hub` is missing in `hub_policy`"),
        ({"public_key": KEY, "hub": "h"}, "`url` is missing in `hub_policy`"),
        ({"url": HUB_POLICY["url"], "hub": "h"}, "`public_key` is missing in `hub_policy`"),
    ],
)
def test_what_names_no_hub_service_is_told_and_the_file_does_not_count(given: Any, problem: str) -> None:
    found = of_site(hub_policy=given)
    assert [one.message for one in found.problems] == [problem]
    assert found.site.hub_policy is None


def test_no_file_of_a_user_names_a_hub_service() -> None:
    found = read(json.dumps({"rules": [], "hub_policy": HUB_POLICY}))
    assert found.problems[0].message == "`hub_policy` can stand in a site's file only"


def signed(central: Any, *, is_of_hub: bool = True) -> RuleText:
    text = json.dumps({"rules": [], "central_servers": central})
    return read_text(text, path="the policy", layer=Layer.SITE, is_of_hub=is_of_hub)


def test_what_a_hub_service_signed_names_its_servers_and_no_file_does() -> None:
    assert signed({"warehouse": 3900, "git-hub_2": 1.5}).site.central_servers == {"warehouse": 3900, "git-hub_2": 1.5}
    (problem,) = signed({"warehouse": 3900}, is_of_hub=False).problems
    assert "unknown key `central_servers`" in problem.message


@pytest.mark.parametrize(
    "central", [[], {"../x": 1}, {"": 1}, {"a": 0}, {"a": True}, {"a": "1"}, {"a": None}, {"a": {"url": "https://x"}}]
)
def test_names_of_central_servers_that_are_not_understood_are_refused(central: Any) -> None:
    read = signed(central)
    assert (len(read.problems), read.site.central_servers) == (1, {})
