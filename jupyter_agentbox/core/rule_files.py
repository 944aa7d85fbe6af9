"""The text of a file of rules: reads it, says what is wrong at which place, and writes it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from typing import Final

from .approvers import Approvers, approvers_from_json
from .argument_conditions import problem_of
from .audit_trail import ArgumentsKept, WhenDown
from .calls import JsonObject, JsonValue
from .globs import problem_of_pattern
from .isolation import LADDER, Isolation
from .located_json import Lines, LocatedJsonError, Node, parse
from .policy import Effect, Layer, Rule
from .site_policy import MORE, Feature, HubPolicySource, Lock, ServerPattern, SiteAudit, SitePolicy
from .text import one_line
from .times import json_time
from .tools import ConfigurationProblem

#: The name of the files.
FILE_NAME: Final = "agentbox_rules.json"
#: Bytes that a file may have.
MAX_BYTES: Final = 1_000_000
#: Characters of a pattern.
MAX_PATTERN: Final = 1000
#: What no path of a notebook has.
_STEP: Final = re.compile(r"(?:^|/)\.{1,2}(?:/|$)")
#: Characters of a reason.
MAX_REASON: Final = 4000
#: Seconds that a rule may let a request wait: a year.
MAX_TIMEOUT: Final = 366 * 86_400
#: Persons of whom a rule may want that they approve.
MAX_APPROVERS: Final = 20
#: Problems of a file that are told.
_MOST_PROBLEMS: Final = 20

_KEYS: Final = ("effect", "server", "tool", "arguments", "notebook", "isolation", "timeout", "reason")
#: Groups that a rule may name whose members it is for.
MAX_GROUPS: Final = 50
MAX_DELEGATES: Final = 20
_APPROVERS_KEYS: Final = ("group", "count", "self", "delegates", "escalation")
_ESCALATION_KEYS: Final = ("group", "after")
_FILE_KEYS: Final = ("rules", "$schema")
#: What a rule can have in a site's file besides.
_SITE_RULE_KEYS: Final = ("groups",)
#: What a site's file can have besides.
_SITE_KEYS: Final = ("features", "servers", "audit", "hub_policy")
_SERVERS_KEYS: Final = ("allow", "deny")
_HUB_POLICY_KEYS: Final = ("url", "public_key", "hub")
#: 32 bytes in base64.
_PUBLIC_KEY: Final = re.compile(r"[A-Za-z0-9+/]{43}=")
_AUDIT_KEYS: Final = ("sinks", "when_down", "arguments", "token_file")


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleText:
    """What a file of rules says: rules, or problems, never both.

    Parameters
    ----------
    rules : tuple of Rule
        In their order; none if anything in the file is not understood.
    entries : tuple of dict
        The same as they stand in the file.
    problems : tuple of ConfigurationProblem
        What is wrong.
    schema : str or None
        What ``$schema`` says.
    site : SitePolicy
        What a site's file says besides rules.
    """

    rules: tuple[Rule, ...] = ()
    entries: tuple[JsonObject, ...] = ()
    problems: tuple[ConfigurationProblem, ...] = ()
    schema: str | None = None
    site: SitePolicy = field(default_factory=SitePolicy)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRules:
    """The user's file of rules.

    Parameters
    ----------
    path : str
        The file, which may be missing.
    entries : tuple of dict
        Its rules, as they stand there.
    revision : str
        Names what is in the file; empty if there is none.
    schema : str or None
        What ``$schema`` says.
    """

    path: str
    entries: tuple[JsonObject, ...] = ()
    revision: str = ""
    schema: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HubPolicyStatus:
    """How it stands with the policy of a Hub service.

    Parameters
    ----------
    hub, url : str
        The Hub's name, and where its policy is fetched.
    version : int or None
        The version that holds; ``None`` if none does, and then everything is denied.
    issued_at, expires_at : datetime or None
        When it was signed, and until when it holds.
    problem : str
        Why no newer one came; empty if the service said that it is the present one.
    """

    hub: str
    url: str
    version: int | None = None
    issued_at: datetime | None = None
    expires_at: datetime | None = None
    problem: str = ""

    def to_json(self) -> JsonObject:
        """Return it as the REST API sends it."""
        return {
            "hub": self.hub,
            "url": self.url,
            "version": self.version,
            "issued_at": json_time(self.issued_at),
            "expires_at": json_time(self.expires_at),
            "problem": self.problem or None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleBook:
    """The rules of all files.

    Parameters
    ----------
    rules : tuple of Rule
        The site's, then the user's; for each broken file one that asks about, or denies, everything.
    problems : tuple of ConfigurationProblem
        What is wrong in the files.
    user : UserRules or None
        The user's file; ``None`` where there is none to write.
    site : SitePolicy
        What the site's files say besides rules; of a broken one, that all is off.
    hub_policy : HubPolicyStatus or None
        How it stands with the policy of a Hub service, whose rules are among the site's; ``None`` if there is none.
    """

    rules: tuple[Rule, ...] = ()
    problems: tuple[ConfigurationProblem, ...] = ()
    user: UserRules | None = None
    site: SitePolicy = field(default_factory=SitePolicy)
    hub_policy: HubPolicyStatus | None = None


def refusal(problem: ConfigurationProblem, layer: Layer) -> Rule:
    """Return the rule that stands for a broken file: of the site it denies everything, of the user it asks."""
    denies = layer is Layer.SITE
    what = "everything is denied" if denies else "every call asks"
    return Rule(
        server="*",
        tool="*",
        effect=Effect.DENY if denies else Effect.ASK,
        layer=layer,
        reason=f"the rules in `{problem.path}` cannot be used, and until then {what}: {problem.message}",
        file=problem.path,
        line=problem.line or 0,
    )


def read_text(text: str, *, path: str, layer: Layer) -> RuleText:
    """Read the text of a file of rules.

    Parameters
    ----------
    text : str
        JSON: ``{"rules": [{"effect": "allow", "server": "shop", "tool": "list_*"}]}``.
    path : str
        The file; for rules and problems.
    layer : Layer
        Whose rules they are.
    """
    lines = Lines(text)

    def problem(message: str, at: int) -> ConfigurationProblem:
        line, column = lines.place(at)
        return ConfigurationProblem(path=path, message=message, line=line, column=column)

    try:
        node = parse(text)
    except LocatedJsonError as error:
        return RuleText(problems=(problem(one_line(str(error)), error.at),))
    checker = RuleChecker()
    checker.check(node, of_site=layer is Layer.SITE)
    if checker.found:
        return RuleText(problems=tuple(problem(one_line(message), at) for at, message in checker.shown()))
    entries = [(one.at, one.value) for one in items(node, "rules")]
    schema = member(node, "$schema")
    return RuleText(
        rules=tuple(
            rule_from_json(entry, layer, path, lines.place(at)[0]) for at, entry in entries if isinstance(entry, dict)
        ),
        entries=tuple(entry for _, entry in entries if isinstance(entry, dict)),
        schema=schema.value if schema is not None and isinstance(schema.value, str) else None,
        site=_site_policy(node, path),
    )


def _site_policy(node: Node, path: str) -> SitePolicy:
    """Return what a site's file says besides rules, in which nothing is wrong."""
    features, servers, audit, hub_policy = (member(node, key) for key in _SITE_KEYS)
    if not any(key in node.keys for key in _SITE_KEYS):
        return SitePolicy()
    given = features.value if features is not None and isinstance(features.value, dict) else {}
    lists = servers.value if servers is not None and isinstance(servers.value, dict) else {}
    allowed = lists.get("allow")
    return SitePolicy(
        features={Feature(name): Lock(str(lock)) for name, lock in given.items()},
        allowed=None if allowed is None else _patterns(allowed),
        denied=_patterns(lists.get("deny")),
        audit=SiteAudit() if audit is None else _site_audit(audit),
        files=(path,),
        hub_policy=None if hub_policy is None else _hub_policy(hub_policy),
    )


def _hub_policy(node: Node) -> HubPolicySource:
    given = node.value if isinstance(node.value, dict) else {}
    return HubPolicySource(**{key: str(given[key]) for key in _HUB_POLICY_KEYS})


def _site_audit(node: Node) -> SiteAudit:
    given = node.value if isinstance(node.value, dict) else {}
    return SiteAudit(
        sinks=tuple(str(sink.value) for sink in items(node, "sinks")),
        when_down=str(given.get("when_down", "")),
        arguments=str(given.get("arguments", "")),
        token_file=str(given.get("token_file", "")),
    )


def _patterns(given: JsonValue) -> tuple[ServerPattern, ...]:
    entries = [entry for entry in given if isinstance(entry, dict)] if isinstance(given, list) else []
    return tuple(
        ServerPattern(
            command=tuple(str(part) for part in command) if isinstance(command := entry.get("command"), list) else (),
            url=str(entry.get("url", "")),
        )
        for entry in entries
    )


def write_text(entries: Sequence[JsonValue], *, schema: str | None = None) -> str:
    """Return the text of a file with these rules.

    Raises
    ------
    ValueError
        If they are no JSON.
    """
    head: JsonObject = {} if schema is None else {"$schema": schema}
    try:
        text = json.dumps({**head, "rules": list(entries)}, indent=2, ensure_ascii=False, allow_nan=False)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    return f"{text}\n"


def rule_from_json(entry: JsonObject, layer: Layer, path: str, line: int) -> Rule:
    """Return the rule of an entry in which nothing is wrong."""
    arguments, notebook, timeout = entry.get("arguments"), entry.get("notebook"), entry.get("timeout")
    return Rule(
        server=str(entry["server"]),
        tool=str(entry["tool"]),
        effect=Effect(entry["effect"]),
        layer=layer,
        reason=str(entry.get("reason", "")),
        arguments=arguments if isinstance(arguments, dict) else {},
        notebook=notebook if isinstance(notebook, str) else None,
        isolation=Isolation(entry.get("isolation", Isolation.NONE)),
        timeout=float(timeout) if isinstance(timeout, int | float) else None,
        groups=tuple(map(str, groups)) if isinstance(groups := entry.get("groups"), list) else (),
        approvers=_approvers(entry.get("approvers")),
        file=path,
        line=line,
    )


def _approvers(given: JsonValue) -> Approvers | None:
    if not isinstance(given, dict):
        return None
    return approvers_from_json(given)


class RuleChecker:
    """Looks for all that is wrong in a file of rules.

    Parameters
    ----------
    keys : sequence of str
        What a rule can have in this file.

    Attributes
    ----------
    found : list of (int, str)
        Where, and what.
    """

    def __init__(self, keys: Sequence[str] = _KEYS) -> None:
        self._keys = keys
        self.found: list[tuple[int, str]] = []

    def shown(self) -> Iterator[tuple[int, str]]:
        """Yield the problems, by their place, that are told."""
        ordered = sorted(self.found)
        yield from ordered[:_MOST_PROBLEMS]
        if len(ordered) > _MOST_PROBLEMS:
            yield ordered[_MOST_PROBLEMS][0], f"and {len(ordered) - _MOST_PROBLEMS} more problems from here on"

    def check(self, node: Node, *, of_site: bool = False) -> None:
        """Look at a whole file."""
        if not isinstance(node.content, dict):
            self.say(node, 'a file of rules is an object with a list under "rules"')
            return
        if of_site:
            self.check_keys(node, (*_FILE_KEYS, *_SITE_KEYS), "a site's file of rules")
            self._check_audit(member(node, "audit"))
            self._check_hub_policy(member(node, "hub_policy"))
            self.check_for_users(node)
        elif is_sites := next((key for key in _SITE_KEYS if key in node.keys), ""):
            self.found.append((node.keys[is_sites], f"`{is_sites}` can stand in a site's file only"))
        else:
            self.check_keys(node, _FILE_KEYS, "a file of rules")
        schema = member(node, "$schema")
        if schema is not None and not isinstance(schema.content, str):
            self.say(schema, "`$schema` must be a string")
        if not of_site:
            self._check_rules(node)

    def check_for_users(self, node: Node) -> None:
        """Look at what a site can say of users' own tools: rules, features and servers."""
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
            for one in rules.content:
                self.check_rule(one)

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

    def _check_hub_policy(self, given: Node | None) -> None:
        if given is None:
            return
        if not isinstance(given.content, dict):
            self.say(given, "`hub_policy` must be an object with `url`, `public_key` and `hub`")
            return
        self.check_keys(given, _HUB_POLICY_KEYS, "`hub_policy`")
        for name in _HUB_POLICY_KEYS:
            self.check_text(given, name, MAX_PATTERN, missing=f"`{name}` is missing in `hub_policy`")
        url, key = member(given, "url"), member(given, "public_key")
        if url is not None and not str(url.content).startswith(("https://", "http://")):
            self.say(url, "`url` must begin with `https://` or `http://`")
        if key is not None and not _PUBLIC_KEY.fullmatch(str(key.content)):
            self.say(key, "`public_key` must be what `jupyter agentbox hub --show-policy-key` prints")

    def _check_server(self, given: Node) -> None:
        if not isinstance(given.content, dict) or len(given.content) != 1:
            self.say(given, 'a server is `{"command": ["PROGRAM", "ARGUMENT"]}` or `{"url": "https://HOST/*"}`')
            return
        self.check_keys(given, ("command", "url"), "a server")
        self.check_text(given, "url", MAX_PATTERN)
        url = member(given, "url")
        if url is not None and isinstance(url.content, str) and "://" not in url.content:
            self.say(url, "`url` must begin with `https://` or `http://`")
        command = member(given, "command")
        if command is not None and not _is_command(command.value):
            self.say(command, f"`command` must be a list of strings, the program first; a last `{MORE}` is any others")
        for part in items(given, "command"):
            if isinstance(part.content, str) and (problem := problem_of_pattern(part.content)):
                self.say(part, problem)

    def check_rule(self, node: Node) -> None:
        """Look at a rule."""
        if not isinstance(node.content, dict):
            self.say(node, "a rule must be an object")
            return
        of_site = [key for key in _SITE_RULE_KEYS if key in node.keys and key not in self._keys]
        for key in of_site:
            self.found.append((node.keys[key], f"`{key}` can stand in a site's file only"))
        self.check_keys(node, (*self._keys, *of_site), "a rule")
        self._check_choice(node, "effect", [effect.value for effect in Effect])
        self._check_choice(node, "isolation", [level.value for level in LADDER], needed=False)
        tool = member(node, "tool")
        self.check_text(node, "server", MAX_PATTERN, missing=_hint(tool))
        self.check_text(node, "tool", MAX_PATTERN, missing="`tool` is missing")
        self.check_text(node, "notebook", MAX_PATTERN)
        for name in ("server", "tool", "notebook"):
            self._check_pattern(node, name)
        self.check_text(node, "reason", MAX_REASON, may_be_empty=True)
        self._check_timeout(member(node, "timeout"))
        self._check_arguments(member(node, "arguments"))
        self._check_groups(member(node, "groups"))
        self._check_approvers(node)

    def check_keys(self, node: Node, known: Sequence[str], whose: str) -> None:
        """Look for keys of an object that are not known."""
        for key, at in node.keys.items():
            if key not in known:
                meant = get_close_matches(key.lower(), known, 1)
                hint = f"did you mean `{meant[0]}`?" if meant else f"{whose} has {', '.join(known)}"
                self.found.append((at, f"unknown key `{key:.80}`: {hint}"))

    def _check_choice(self, node: Node, name: str, known: Sequence[str], *, needed: bool = True) -> None:
        given = member(node, name)
        if given is None:
            if needed:
                self.say(node, f"`{name}` is missing")
        elif given.content not in known:
            meant = get_close_matches(str(given.content).lower()[:80], known, 1)
            self.say(given, f"`{name}` must be {_listed(known)}" + (f": did you mean `{meant[0]}`?" if meant else ""))

    def check_text(self, node: Node, name: str, limit: int, *, missing: str = "", may_be_empty: bool = False) -> None:
        """Look at a member that is a text, and whose absence is a problem if `missing` says something."""
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
                self.say(group, "the name of a group must be a string that is not empty")

    def _check_approvers(self, rule: Node) -> None:
        given, effect = member(rule, "approvers"), member(rule, "effect")
        if given is None or "approvers" not in self._keys:
            return
        if effect is not None and effect.content != Effect.ASK.value:
            self.say(given, "`approvers` are of use in a rule whose effect is `ask` only")
        if not isinstance(given.content, dict):
            self.say(given, '`approvers` must be an object: `{"group": "data-stewards", "count": 1}`')
            return
        self.check_keys(given, _APPROVERS_KEYS, "`approvers`")
        self.check_text(given, "group", MAX_PATTERN, missing="`group` is missing: whose members are asked?")
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
        self.check_text(given, "group", MAX_PATTERN, missing="`group` is missing: who may answer then?")
        after = member(given, "after")
        seconds = None if after is None else after.content
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < float("inf"):
            self.say(after or given, "`after` must be a number of seconds above 0")

    def say(self, node: Node, message: str) -> None:
        """Note what is wrong with a value."""
        self.found.append((node.at, message))


def _is_command(value: JsonValue) -> bool:
    """Whether a value can be a command's pattern."""
    if not isinstance(value, list) or not value or value[0] == MORE:
        return False
    return all(isinstance(part, str) and len(part) <= MAX_PATTERN for part in value)


def _hint(tool: Node | None) -> str:
    """Say that the server is missing, and how to write what may be meant."""
    if tool is None or not isinstance(tool.content, str) or "." not in tool.content:
        return "`server` is missing"
    server, _, name = tool.content.partition(".")
    return f'`server` is missing: did you mean `"server": "{server:.80}", "tool": "{name:.80}"`?'


def _too_long(condition: Node) -> str:
    ones = condition.content if isinstance(condition.content, list) else [condition]
    is_long = any(isinstance(one.content, str) and len(one.content) > MAX_PATTERN for one in ones)
    return f"a pattern has more than {MAX_PATTERN} characters" if is_long else ""


def _listed(names: Sequence[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    return f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def member(node: Node, name: str) -> Node | None:
    """Return what an object has under a name."""
    return node.content.get(name) if isinstance(node.content, dict) else None


def items(node: Node, name: str) -> Sequence[Node]:
    """Return what a list has that is under a name."""
    found = member(node, name)
    return found.content if found is not None and isinstance(found.content, list) else ()
