"""Validation of rules files: errors with their place, in rules and in a site's other settings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Final

from .argument_conditions import problem_of
from .audit_trail import ArgumentsKept, WhenDown
from .calls import JsonValue
from .globs import problem_of_pattern
from .isolation import LADDER, Isolation
from .located_json import Node, items, member
from .policy import Effect, GrantLimit
from .site_policy import MORE, Feature, Lock, problem_of_url

#: Maximum length of a pattern, in characters.
MAX_PATTERN: Final = 1000
#: Maximum length of a reason, in characters.
MAX_REASON: Final = 4000
#: Maximum timeout of a rule, in seconds: a year.
MAX_TIMEOUT: Final = 366 * 86_400
#: Maximum number of approvers that a rule can require.
MAX_APPROVERS: Final = 20
#: Maximum number of groups in a rule.
MAX_GROUPS: Final = 50
MAX_DELEGATES: Final = 20
#: A step that no notebook path contains.
_STEP: Final = re.compile(r"(?:^|/)\.{1,2}(?:/|$)")
#: Maximum number of problems reported per file.
_MOST_PROBLEMS: Final = 20
_KEYS: Final = ("effect", "server", "tool", "arguments", "notebook", "isolation", "timeout", "reason")
#: Those of a rule in the policy of a Hub service for users' own tools.
HUB_RULE_KEYS: Final = (*_KEYS, "approvers")
APPROVERS_KEYS: Final = ("group", "count", "self", "delegates", "escalation", "break_glass", "reason")
_ESCALATION_KEYS: Final = ("group", "after")
_FILE_KEYS: Final = ("rules", "$schema")
#: Additional keys of rules in a site's file.
_SITE_RULE_KEYS: Final = ("groups", "below", "grants")
#: Where keys can stand that not all files have.
_ELSEWHERE: Final = {
    **dict.fromkeys(_SITE_RULE_KEYS, "a site's file"),
    "approvers": "the policy of a Hub service",
}
#: Additional keys of a site's file.
SITE_KEYS: Final = ("features", "servers", "audit", "hub_policy")
#: Further ones of what a Hub service signs.
SIGNED_KEYS: Final = ("central_servers",)
#: The longest time that a call of a central server may take with its approvers' time, in seconds.
_LONGEST_CALL: Final = 90 * 86_400
#: The name of a central server.
CENTRAL_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_SERVERS_KEYS: Final = ("allow", "deny")
HUB_POLICY_KEYS: Final = ("url", "public_key", "hub")
#: 32 bytes in base64.
_PUBLIC_KEY: Final = re.compile(r"[A-Za-z0-9+/]{43}=")
_TRUST_KEY: Final = re.compile(r"[0-9a-f]{64}")
_AUDIT_KEYS: Final = ("sinks", "when_down", "arguments", "token_file", "secret_names")


class RuleChecker:
    """Finds all errors in a rules file.

    Parameters
    ----------
    keys : sequence of str
        The valid keys of a rule in this file.

    Attributes
    ----------
    found : list of (int, str)
        Offsets and messages.
    numbers : dict of int to int
        Offsets of errors in the rules of a file, and the number of the rule, from 1.
    """

    def __init__(self, keys: Sequence[str] = _KEYS) -> None:
        self._keys = keys
        self.found: list[tuple[int, str]] = []
        self.numbers: dict[int, int] = {}

    def shown(self) -> Iterator[tuple[int, str]]:
        """Yield the problems to report, ordered by place."""
        ordered = sorted(self.found)
        yield from ordered[:_MOST_PROBLEMS]
        if len(ordered) > _MOST_PROBLEMS:
            yield ordered[_MOST_PROBLEMS][0], f"and {len(ordered) - _MOST_PROBLEMS} more problems from here on"

    def check(self, node: Node, *, of_site: bool = False, of_hub: bool = False) -> None:
        """Check a whole file, or what a Hub service signed."""
        if not isinstance(node.content, dict):
            self.say(node, 'a file of rules is an object with a list under "rules"')
            return
        if of_site:
            keys = (*_FILE_KEYS, *SITE_KEYS, *(SIGNED_KEYS if of_hub else ()))
            self.check_keys(node, keys, "a site's file of rules")
            self._check_central(member(node, "central_servers"))
            self._check_audit(member(node, "audit"))
            self._check_hub_policy(member(node, "hub_policy"))
            self.check_for_users(node)
        elif is_sites := next((key for key in SITE_KEYS if key in node.keys), ""):
            self.found.append((node.keys[is_sites], f"`{is_sites}` can stand in a site's file only"))
        else:
            self.check_keys(node, _FILE_KEYS, "a file of rules")
        schema = member(node, "$schema")
        if schema is not None and not isinstance(schema.content, str):
            self.say(schema, "`$schema` must be a string")
        if not of_site:
            self._check_rules(node)

    def check_for_users(self, node: Node) -> None:
        """Check a site's settings for users' own tools: rules, features and servers."""
        self._keys = (*self._keys, *_SITE_RULE_KEYS)
        self._check_features(member(node, "features"))
        self._check_servers(member(node, "servers"))
        self._check_rules(node)

    def _check_rules(self, node: Node) -> None:
        rules = member(node, "rules")
        if rules is None:
            self.say(node, "`rules` is missing")
        elif not isinstance(rules.content, list):
            self.say(rules, "`rules` must be a list")
        else:
            for number, one in enumerate(rules.content, 1):
                before = len(self.found)
                self.check_rule(one)
                self.numbers.update((at, number) for at, _ in self.found[before:])

    def _check_features(self, given: Node | None) -> None:
        if given is None:
            return
        if not isinstance(given.content, dict):
            self.say(given, '`features` must be an object: `{"grants": "force-off"}`')
            return
        self.check_keys(given, [feature.value for feature in Feature], "`features`")
        for name in given.content:
            if name in [feature.value for feature in Feature]:
                self._check_choice(given, name, [lock.value for lock in Lock])

    def _check_servers(self, given: Node | None) -> None:
        if given is None:
            return
        if not isinstance(given.content, dict):
            self.say(given, "`servers` must be an object with lists under `allow` and `deny`")
            return
        self.check_keys(given, _SERVERS_KEYS, "`servers`")
        for name in _SERVERS_KEYS:
            listed = member(given, name)
            if listed is not None and not isinstance(listed.content, list):
                self.say(listed, f"`{name}` must be a list")
            for one in items(given, name):
                self._check_server(one)

    def _check_audit(self, given: Node | None) -> None:
        if given is None:
            return
        if not isinstance(given.content, dict):
            self.say(given, '`audit` must be an object: `{"sinks": ["syslog:///dev/log"]}`')
            return
        self.check_keys(given, _AUDIT_KEYS, "`audit`")
        sinks = member(given, "sinks")
        if sinks is None or not isinstance(sinks.content, list):
            self.say(sinks or given, "`sinks` must be a list of addresses")
        for sink in items(given, "sinks"):
            if not isinstance(sink.content, str) or not 0 < len(sink.content) <= MAX_PATTERN:
                self.say(sink, "an address must be a string")
        self._check_choice(given, "when_down", [one.value for one in WhenDown], needed=False)
        self._check_choice(given, "arguments", [one.value for one in ArgumentsKept], needed=False)
        self.check_text(given, "token_file", MAX_PATTERN)
        self._check_secret_names(given)

    def _check_secret_names(self, audit: Node) -> None:
        given = member(audit, "secret_names")
        if given is not None and not isinstance(given.content, list):
            self.say(given, '`secret_names` must be a list of patterns: `["*password*", "*_token"]`')
        for name in items(audit, "secret_names"):
            if not isinstance(name.content, str) or not 0 < len(name.content) <= MAX_PATTERN:
                self.say(name, "a name of secrets must be a non-empty string")
            elif problem := problem_of_pattern(name.content):
                self.say(name, f"`secret_names`: {problem}")

    def _check_central(self, given: Node | None) -> None:
        if given is None:
            return
        if not isinstance(given.content, dict):
            self.say(given, "`central_servers` must be an object: the name of each server, and its `timeout`")
            return
        for name in given.content:
            seconds = member(given, name)
            value = None if seconds is None else seconds.content
            is_time = isinstance(value, int | float) and not isinstance(value, bool) and 1 <= value <= _LONGEST_CALL
            if not CENTRAL_NAME.fullmatch(name) or not is_time:
                self.say(
                    seconds or given,
                    f"`{name:.80}` must be the name of a central server, with the seconds that a call of it may take",
                )

    def _check_hub_policy(self, given: Node | None) -> None:
        if given is None:
            return
        if not isinstance(given.content, dict):
            self.say(given, "`hub_policy` must be an object with `url`, `public_key` and `hub`")
            return
        self.check_keys(given, HUB_POLICY_KEYS, "`hub_policy`")
        for name in HUB_POLICY_KEYS:
            self.check_text(given, name, MAX_PATTERN, missing=f"`{name}` is missing in `hub_policy`")
        url, key = member(given, "url"), member(given, "public_key")
        if url is not None and not str(url.content).startswith(("https://", "http://")):
            self.say(url, "`url` must begin with `https://` or `http://`")
        if key is not None and not _PUBLIC_KEY.fullmatch(str(key.content)):
            self.say(key, "`public_key` must be what `jupyter agentbox hub --show-policy-key` prints")

    def _check_server(self, given: Node) -> None:
        if not isinstance(given.content, dict) or len(given.content) != 1:
            known = '`{"command": ["PROGRAM", "ARGUMENT"]}`, `{"url": "https://HOST/*"}` or `{"trust_key": "…"}`'
            self.say(given, f"a server is {known}")
            return
        self.check_keys(given, ("command", "url", "trust_key"), "a server")
        trust_key = member(given, "trust_key")
        if trust_key is not None and not _TRUST_KEY.fullmatch(str(trust_key.content)):
            self.say(trust_key, "`trust_key` must be 64 lower-case hexadecimal digits")
        self.check_text(given, "url", MAX_PATTERN)
        url = member(given, "url")
        if url is not None and isinstance(url.content, str) and url.content and (why := problem_of_url(url.content)):
            self.say(url, why)
        command = member(given, "command")
        if command is not None and not _is_command(command.value):
            self.say(command, f"`command` must be a list of strings, the program first; a last `{MORE}` is any others")
        for part in items(given, "command"):
            if isinstance(part.content, str) and (problem := problem_of_pattern(part.content)):
                self.say(part, problem)

    def check_rule(self, node: Node) -> None:
        """Check a rule."""
        if not isinstance(node.content, dict):
            self.say(node, "a rule must be an object")
            return
        elsewhere = {key: where for key, where in _ELSEWHERE.items() if key in node.keys and key not in self._keys}
        for key, where in elsewhere.items():
            self.found.append((node.keys[key], f"`{key}` can stand in {where} only"))
        self.check_keys(node, (*self._keys, *elsewhere), "a rule")
        self._check_choice(node, "effect", [effect.value for effect in Effect])
        self._check_choice(node, "isolation", [level.value for level in LADDER], needed=False)
        sandboxes = [level.value for level in LADDER if level is not Isolation.NONE]
        self._check_choice(node, "below", sandboxes, needed=False)
        self._check_choice(node, "grants", [limit.value for limit in GrantLimit], needed=False)
        grants, effect = member(node, "grants"), member(node, "effect")
        if grants is not None and effect is not None and effect.content != Effect.ASK.value:
            self.say(grants, "`grants` is for a rule that asks")
        elif grants is not None and "approvers" in node.keys:
            self.say(grants, "`grants` cannot stand beside `approvers`, who approve each call")
        tool = member(node, "tool")
        self.check_text(node, "server", MAX_PATTERN, missing=_hint(tool))
        self.check_text(node, "tool", MAX_PATTERN, missing="`tool` is missing: a name or a pattern; `*` is every tool")
        self.check_text(node, "notebook", MAX_PATTERN)
        for name in ("server", "tool", "notebook"):
            self._check_pattern(node, name)
        self.check_text(node, "reason", MAX_REASON, may_be_empty=True)
        self._check_timeout(member(node, "timeout"))
        self._check_arguments(member(node, "arguments"))
        self._check_groups(member(node, "groups"))
        self._check_approvers(node)

    def check_keys(self, node: Node, known: Sequence[str], whose: str) -> None:
        """Check an object for unknown keys."""
        for key, at in node.keys.items():
            if key not in known:
                meant = get_close_matches(key.lower(), known, 1)
                hint = f"did you mean `{meant[0]}`?" if meant else f"{whose} has {', '.join(known)}"
                self.found.append((at, f"unknown key `{key:.80}`: {hint}"))

    def _check_choice(self, node: Node, name: str, known: Sequence[str], *, needed: bool = True) -> None:
        given = member(node, name)
        if given is None:
            if needed:
                self.say(node, f"`{name}` is missing: it must be {_listed(known)}")
        elif given.content not in known:
            meant = get_close_matches(str(given.content).lower()[:80], known, 1)
            hint = f": did you mean `{meant[0]}`?" if meant else ""
            self.say(given, f"`{name}` must be {_listed(known)}, not {_shown(given)}{hint}")

    def check_text(self, node: Node, name: str, limit: int, *, missing: str = "", may_be_empty: bool = False) -> None:
        """Check a string member; if `missing` is not empty, its absence is an error with that message."""
        given = member(node, name)
        if given is None:
            if missing:
                self.say(node, missing)
        elif not isinstance(given.content, str):
            self.say(given, f"`{name}` must be a string")
        elif len(given.content) > limit:
            self.say(given, f"`{name}` is longer than {limit} characters")
        elif not given.content and not may_be_empty:
            self.say(given, f"`{name}` is empty; `*` matches everything")

    def _check_pattern(self, node: Node, name: str) -> None:
        given = member(node, name)
        if given is None or not isinstance(given.content, str):
            return
        problem = problem_of_pattern(given.content)
        if problem:
            self.say(given, f"`{name}`: {problem}")
        elif name == "notebook" and (given.content.startswith("/") or _STEP.search(given.content)):
            self.say(
                given, "`notebook` is a path below the server's root directory: no `/` first, no `.` or `..` in it"
            )

    def _check_timeout(self, given: Node | None) -> None:
        if given is None:
            return
        value = given.content
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_TIMEOUT:
            self.say(given, f"`timeout` must be a number of seconds, more than 0 and at most {MAX_TIMEOUT}")

    def _check_arguments(self, given: Node | None) -> None:
        if given is None:
            return
        if not isinstance(given.content, dict):
            self.say(given, "`arguments` must be an object: the name of an argument, and its condition")
            return
        for name, condition in given.content.items():
            problem = problem_of(condition.value) or _too_long(condition)
            if problem:
                self.say(condition, f"the condition of `{name:.80}`: {problem}")

    def _check_groups(self, given: Node | None) -> None:
        if given is None:
            return
        if not isinstance(given.content, list) or not 0 < len(given.content) <= MAX_GROUPS:
            self.say(given, f'`groups` must be a list of 1 to {MAX_GROUPS} groups of JupyterHub: `["students"]`')
            return
        self._check_group_names(given.content)

    def _check_group_names(self, given: Sequence[Node]) -> None:
        for group in given:
            if not isinstance(group.content, str) or not 0 < len(group.content) <= MAX_PATTERN:
                self.say(group, "the name of a group must be a non-empty string")

    def _check_approvers(self, rule: Node) -> None:
        given, effect = member(rule, "approvers"), member(rule, "effect")
        if given is None or "approvers" not in self._keys:
            return
        if effect is not None and effect.content != Effect.ASK.value:
            self.say(given, "`approvers` are of use in a rule whose effect is `ask` only")
        if not isinstance(given.content, dict):
            self.say(given, '`approvers` must be an object: `{"group": "data-stewards", "count": 1}`')
            return
        self.check_keys(given, APPROVERS_KEYS, "`approvers`")
        self.check_text(given, "group", MAX_PATTERN, missing="`group` is missing: it says whose members are asked")
        count, itself = member(given, "count"), member(given, "self")
        if count is not None and (
            isinstance(count.content, bool)
            or not isinstance(count.content, int)
            or not 1 <= count.content <= MAX_APPROVERS
        ):
            self.say(count, f"`count` must be a number from 1 to {MAX_APPROVERS}")
        if itself is not None and not isinstance(itself.content, bool):
            self.say(itself, "`self` must be true or false")
        self._check_delegates(member(given, "delegates"))
        self._check_escalation(member(given, "escalation"))
        breakers = member(given, "break_glass")
        if breakers is not None:
            self._check_group_names([breakers])
        reason = member(given, "reason")
        if reason is not None and reason.content not in ("optional", "required"):
            self.say(reason, "`reason` must be `optional` or `required`")

    def _check_delegates(self, given: Node | None) -> None:
        if given is None:
            return
        if not isinstance(given.content, list) or len(given.content) > MAX_DELEGATES:
            self.say(given, f"`delegates` must be a list of at most {MAX_DELEGATES} groups")
            return
        self._check_group_names(given.content)

    def _check_escalation(self, given: Node | None) -> None:
        if given is None:
            return
        if not isinstance(given.content, dict):
            self.say(given, '`escalation` must be an object: `{"group": "managers", "after": 900}`')
            return
        self.check_keys(given, _ESCALATION_KEYS, "`escalation`")
        self.check_text(given, "group", MAX_PATTERN, missing="`group` is missing: it says who may answer then")
        after = member(given, "after")
        seconds = None if after is None else after.content
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < float("inf"):
            self.say(after or given, "`after` must be a number of seconds above 0")

    def say(self, node: Node, message: str) -> None:
        """Record an error at a value."""
        self.found.append((node.at, message))


def _is_command(value: JsonValue) -> bool:
    """Whether a value can be a command pattern."""
    if not isinstance(value, list) or not value or value[0] == MORE:
        return False
    return all(isinstance(part, str) and len(part) <= MAX_PATTERN for part in value)


def _hint(tool: Node | None) -> str:
    """Return an error for a missing server, with a suggestion of what may have been meant."""
    if tool is None or not isinstance(tool.content, str) or "." not in tool.content:
        return "`server` is missing: a name or a pattern; `*` is every server"
    server, _, name = tool.content.partition(".")
    return f'`server` is missing: did you mean `"server": "{server:.80}", "tool": "{name:.80}"`?'


def _shown(given: Node) -> str:
    """Return a value for a message; of a list or an object only that it is one."""
    if isinstance(given.content, list | dict):
        return "a list" if isinstance(given.content, list) else "an object"
    text = given.content if isinstance(given.content, str) else json.dumps(given.content)
    return f"`{text:.80}`" if text else "an empty string"


def _too_long(condition: Node) -> str:
    ones = condition.content if isinstance(condition.content, list) else [condition]
    is_long = any(isinstance(one.content, str) and len(one.content) > MAX_PATTERN for one in ones)
    return f"a pattern has more than {MAX_PATTERN} characters" if is_long else ""


def _listed(names: Sequence[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    return f"{', '.join(quoted[:-1])} or {quoted[-1]}"
