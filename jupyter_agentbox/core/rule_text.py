"""Reading and writing the text of rules files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from .approvers import Approvers, approvers_from_json
from .calls import JsonObject, JsonValue
from .isolation import Isolation
from .located_json import Lines, LocatedJsonError, Node, items, member, parse
from .policy import Effect, GrantLimit, Layer, Rule
from .rule_checks import HUB_POLICY_KEYS, HUB_RULE_KEYS, SIGNED_KEYS, SITE_KEYS, RuleChecker
from .site_policy import Feature, HubPolicySource, Lock, ServerPattern, SiteAudit, SitePolicy
from .text import one_line
from .tools import ConfigurationProblem

#: The file name.
FILE_NAME: Final = "agentbox_rules.json"
#: Maximum size of a file, in bytes.
MAX_BYTES: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleText:
    """The contents of a rules file: either rules or problems.

    Parameters
    ----------
    rules : tuple of Rule
        In file order; empty if anything in the file is invalid.
    entries : tuple of dict
        The rules as written in the file.
    problems : tuple of ConfigurationProblem
        The errors found.
    schema : str or None
        The value of ``$schema``.
    site : SitePolicy
        A site file's settings other than rules.
    """

    rules: tuple[Rule, ...] = ()
    entries: tuple[JsonObject, ...] = ()
    problems: tuple[ConfigurationProblem, ...] = ()
    schema: str | None = None
    site: SitePolicy = field(default_factory=SitePolicy)


def read_text(text: str, *, path: str, layer: Layer, is_of_hub: bool = False) -> RuleText:
    """Parse the text of a rules file.

    Parameters
    ----------
    text : str
        JSON: ``{"rules": [{"effect": "allow", "server": "shop", "tool": "list_*"}]}``.
    path : str
        The file's path, for rules and problems.
    layer : Layer
        The origin of the rules.
    is_of_hub : bool
        Whether a Hub service signed it; only its rules can name approvers.
    """
    lines = Lines(text)
    checker = RuleChecker(HUB_RULE_KEYS) if is_of_hub else RuleChecker()

    def problem(message: str, at: int) -> ConfigurationProblem:
        line, column = lines.place(at)
        rule = checker.numbers.get(at)
        return ConfigurationProblem(path=path, message=message, line=line, column=column, rule=rule)

    try:
        node = parse(text)
    except LocatedJsonError as error:
        return RuleText(problems=(problem(one_line(str(error)), error.at),))
    checker.check(node, of_site=layer is Layer.SITE, of_hub=is_of_hub)
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
    """Return the other settings of a valid site file."""
    features, servers, audit, hub_policy = (member(node, key) for key in SITE_KEYS)
    if not any(key in node.keys for key in (*SITE_KEYS, *SIGNED_KEYS)):
        return SitePolicy()
    central = member(node, "central_servers")
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
        central_servers={} if central is None else _central_servers(central),
    )


def _central_servers(node: Node) -> dict[str, float]:
    given = node.value if isinstance(node.value, dict) else {}
    return {name: float(seconds) for name, seconds in given.items() if isinstance(seconds, int | float)}


def _hub_policy(node: Node) -> HubPolicySource:
    given = node.value if isinstance(node.value, dict) else {}
    return HubPolicySource(**{key: str(given[key]) for key in HUB_POLICY_KEYS})


def _site_audit(node: Node) -> SiteAudit:
    given = node.value if isinstance(node.value, dict) else {}
    names = tuple(str(name.value) for name in items(node, "secret_names"))
    return SiteAudit(
        sinks=tuple(str(sink.value) for sink in items(node, "sinks")),
        when_down=str(given.get("when_down", "")),
        arguments=str(given.get("arguments", "")),
        token_file=str(given.get("token_file", "")),
        secret_names=names if "secret_names" in given else None,
    )


def _patterns(given: JsonValue) -> tuple[ServerPattern, ...]:
    entries = [entry for entry in given if isinstance(entry, dict)] if isinstance(given, list) else []
    return tuple(
        ServerPattern(
            command=tuple(str(part) for part in command) if isinstance(command := entry.get("command"), list) else (),
            url=str(entry.get("url", "")),
            trust_key=str(entry.get("trust_key", "")),
        )
        for entry in entries
    )


def write_text(entries: Sequence[JsonValue], *, schema: str | None = None) -> str:
    """Return the text of a file with these rules.

    Raises
    ------
    ValueError
        If they are not JSON.
    """
    head: JsonObject = {} if schema is None else {"$schema": schema}
    try:
        text = json.dumps({**head, "rules": list(entries)}, indent=2, ensure_ascii=False, allow_nan=False)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    return f"{text}\n"


def rule_from_json(entry: JsonObject, layer: Layer, path: str, line: int) -> Rule:
    """Return the rule of a valid entry."""
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
        below=Isolation(entry.get("below", Isolation.NONE)),
        timeout=float(timeout) if isinstance(timeout, int | float) else None,
        groups=tuple(map(str, groups)) if isinstance(groups := entry.get("groups"), list) else (),
        approvers=_approvers(entry.get("approvers")),
        grants=GrantLimit(entry.get("grants", GrantLimit.NEVER)),
        file=path,
        line=line,
    )


def _approvers(given: JsonValue) -> Approvers | None:
    if not isinstance(given, dict):
        return None
    return approvers_from_json(given)
