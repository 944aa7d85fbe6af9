"""Rules and their evaluation: the strictest matching rule wins, and a call that no rule matches asks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from .approvers import Approvers
from .argument_conditions import Conditions, conditions_of
from .calls import JsonObject, JsonValue, ToolCall
from .globs import Matcher, careful_matcher_of, is_literal, literal, matcher_of
from .grant_uses import GrantUse, VoidGrant
from .isolation import Isolation
from .registration import OWN_SERVER, REGISTER_TOOL, REGISTRATION
from .tools import ToolDescription

#: How many tools' rules are cached.
_MOST_KNOWN: Final = 1000


class Effect(str, Enum):
    """The effect of a rule, from mildest to strictest."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"

    @property
    def strictness(self) -> int:
        """The effect's rank: 0 is the mildest; a higher number wins."""
        return ("allow", "ask", "deny").index(self.value)


class Layer(str, Enum):
    """The origin of a rule."""

    SITE = "site"
    USER = "user"
    PROJECT = "project"
    SESSION = "session"
    THREAD = "thread"
    """Has no written rules: it represents the approval mode of an agent's thread."""


class GrantLimit(str, Enum):
    """Which grants can allow a call that a rule asks about, from strictest to mildest."""

    NEVER = "never"
    KERNEL = "kernel"
    """Those for one kernel."""

    ANY = "any"

    @property
    def mildness(self) -> int:
        """The limit's rank: 0 is the strictest."""
        return ("never", "kernel", "any").index(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """An effect for all calls that meet all of the rule's conditions.

    Parameters
    ----------
    server, tool : str
        Case-sensitive patterns for the whole server and tool name, with ``*``, ``?`` and ``[...]``. Adding an MCP
        server is allowed only by a rule with both full names, ``agentbox`` and ``register_mcp_server``, and never for a
        session.
    effect : Effect
        The effect on a matching call.
    layer : Layer
        The origin of the rule.
    reason : str
        Explanation for people; shown with the evaluation and, for ``deny``, raised in the cell.
    arguments : mapping
        Conditions by argument name: see `argument_conditions`. A missing argument meets none. If it is unknown whether
        a condition holds, an allow rule does not match, and others do.
    notebook : str or None
        Pattern for the notebook's path below the server's root directory, with ``/``. Calls from outside a notebook do
        not match.
    isolation : Isolation
        Limits the rule to kernels with at least this level of isolation.
    below : Isolation
        Limits the rule to kernels with a lower level of isolation; ``NONE`` for no limit. In files, only in a site's.
    timeout : float or None
        How long a call that this rule asks about waits for a decision, in seconds; ``None`` for the general setting.
    kernel_id : str or None
        Limits the rule to one kernel.
    definition : str or None
        Limits the rule to the tool's present description, given by its digest.
    groups : tuple of str
        Limits the rule to members of JupyterHub groups. Membership is not part of a call: `for_groups` returns the rule
        for one person. Without that, the rule applies as if membership were unknown.
    approvers : Approvers or None
        For an ask rule: who must approve; ``None`` for the person whose code made the call.
    grants : GrantLimit
        For an ask rule: which grants can allow the call. In files, only in a site's.
    file : str
        The file with the rule; empty if there is none.
    line : int
        The line in that file, from 1.

    Raises
    ------
    ValueError
        If a condition of `arguments` is invalid.
    """

    server: str
    tool: str
    effect: Effect
    layer: Layer = Layer.USER
    reason: str = ""
    arguments: Mapping[str, JsonValue] = field(default_factory=dict)
    notebook: str | None = None
    isolation: Isolation = Isolation.NONE
    below: Isolation = Isolation.NONE
    timeout: float | None = None
    kernel_id: str | None = None
    definition: str | None = None
    groups: tuple[str, ...] = ()
    approvers: Approvers | None = None
    grants: GrantLimit = GrantLimit.NEVER
    file: str = ""
    line: int = 0
    _conditions: Conditions = field(init=False, repr=False, compare=False)
    _notebook: Matcher | None = field(init=False, repr=False, compare=False)
    _is_anywhere: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        allows = self.effect is Effect.ALLOW
        matcher = careful_matcher_of if allows else matcher_of
        object.__setattr__(self, "_conditions", conditions_of(self.arguments, careful=allows))
        object.__setattr__(self, "_notebook", None if self.notebook is None else matcher(self.notebook))
        is_bound = bool(self.groups) or any(
            limit is not None for limit in (self.kernel_id, self.notebook, self.definition)
        )
        levels = (self.isolation, self.below)
        object.__setattr__(self, "_is_anywhere", not is_bound and all(level is Isolation.NONE for level in levels))

    @classmethod
    def of_tool(cls, call: ToolCall, effect: Effect, *, layer: Layer, reason: str = "") -> Rule:
        """Return a rule for exactly the tool of a call."""
        return cls(server=literal(call.server), tool=literal(call.tool), effect=effect, layer=layer, reason=reason)

    def matches(self, call: ToolCall, tool: ToolDescription | None = None) -> bool:
        """Whether the rule matches this call of a tool with this description."""
        return self.names(call.server, call.tool) and self.covers(call, tool)

    def names(self, server: str, tool: str) -> bool:
        """Whether the rule can match calls of a tool."""
        if self.effect is Effect.ALLOW and (server, tool) == (OWN_SERVER, REGISTER_TOOL):
            return (self.server, self.tool) == (server, tool) and self.layer is not Layer.SESSION
        return matcher_of(self.server)(server) and matcher_of(self.tool)(tool)

    def covers(self, call: ToolCall, tool: ToolDescription | None = None) -> bool:
        """Whether the rule matches this call, given that it names the tool."""
        if not self._is_anywhere and not self._is_where(call, tool):
            return False
        return not self._conditions or self._meets_conditions(call, tool)

    def _is_where(self, call: ToolCall, tool: ToolDescription | None) -> bool:
        origin = call.origin
        if self.groups and self.effect is Effect.ALLOW:  # membership is unknown
            return False
        if self.kernel_id is not None and self.kernel_id != origin.kernel_id:
            return False
        if self.isolation is not Isolation.NONE and not origin.isolation.at_least(self.isolation):
            return False
        if self.below is not Isolation.NONE and origin.isolation.at_least(self.below):
            return False
        if self._notebook is not None and (origin.notebook_path is None or not self._notebook(origin.notebook_path)):
            return False
        return self.definition is None or (tool is not None and tool.digest == self.definition)

    def for_groups(self, groups: frozenset[str] | None, *, person: str = "") -> Rule | None:
        """Return the rule as it applies to a member of these groups; ``None`` if it does not.

        Parameters
        ----------
        groups : frozenset of str, or None
            All groups of the person; ``None`` if unknown. Then an allow rule does not apply, and others do.
        person : str
            The person's name; by default, the reader of the reason.
        """
        if not self.groups:
            return self
        if groups is None:
            if self.effect is Effect.ALLOW:
                return None
            because = f"it is not known in which groups of JupyterHub {f'{person} is' if person else 'you are'}"
        else:
            common = [group for group in self.groups if group in groups]
            if not common:
                return None
            because = f"{f'{person} is' if person else 'you are'} in the group `{common[0]}`"
        reason = f"{self.reason} (because {because})" if self.reason else f"because {because}"
        return replace(self, groups=(), reason=reason)

    def _meets_conditions(self, call: ToolCall, tool: ToolDescription | None) -> bool:
        given = call.arguments
        allows = self.effect is Effect.ALLOW
        for name, holds in self._conditions:
            if name not in given:
                # The default of a missing argument is the server's claim: it can make a rule stricter, never milder.
                if allows or tool is None or name not in tool.defaults:
                    return False
                value = tool.defaults[name]
            else:
                value = given[name]
            met = holds(value)
            if met is False or (met is None and allows):
                return False
        return True

    def to_json(self) -> JsonObject:
        """Return the rule as in a rules file."""
        optional: JsonObject = {
            "arguments": dict(self.arguments) or None,
            "notebook": self.notebook,
            "isolation": None if self.isolation is Isolation.NONE else self.isolation.value,
            "below": None if self.below is Isolation.NONE else self.below.value,
            "timeout": self.timeout,
            "groups": list(self.groups) or None,
            "approvers": None if self.approvers is None else self.approvers.to_json(),
            "grants": None if self.grants is GrantLimit.NEVER else self.grants.value,
            "reason": self.reason or None,
        }
        return {
            "effect": self.effect.value,
            "server": self.server,
            "tool": self.tool,
            **{name: value for name, value in optional.items() if value is not None},
        }

    def named(self) -> JsonObject:
        """Return the rule's origin and place, as the REST API describes the rule that decided."""
        return {
            "rule": str(self),
            "layer": self.layer.value,
            "reason": self.reason,
            "file": self.file or None,
            "line": self.line or None,
        }

    def __str__(self) -> str:
        return f"{self.layer.value}: {self.effect.value} {self.server}.{self.tool}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The effect on a call and the rule or grant that gave it, if any.

    Parameters
    ----------
    effect : Effect
        The effect on the call.
    rule : Rule or None
        The rule that gave the effect.
    model_may_allow : bool
        For a call that asks: whether a model may allow it instead of a person.
    grant : GrantUse or None
        The grant that gave the effect.
    voided : VoidGrant or None
        For a call that asks: a grant that would have allowed it if nothing had changed.
    policy_version : int or str or None
        Version of the Hub service's policy in force: on a user's server its number, in the service itself the
        beginning of its file's SHA-256; ``None`` if there is none.
    """

    effect: Effect
    rule: Rule | None = None
    model_may_allow: bool = False
    grant: GrantUse | None = None
    voided: VoidGrant | None = None
    policy_version: int | str | None = None

    def at_least(self, floor: Evaluation) -> Evaluation:
        """Return the stricter of the two; if both ask, this one, allowed only by the grants that both permit.

        A model may allow only what both permit.
        """
        if floor.effect.strictness > self.effect.strictness:
            return floor
        if floor.effect is self.effect is Effect.ASK and floor.grants.mildness < self.grants.mildness:
            # Its timeout and reason stay, but another rule applies, too, so fewer grants allow the call, or none.
            rule = floor.rule if self.rule is None else replace(self.rule, grants=floor.grants)
            return replace(self, rule=rule, model_may_allow=self.model_may_allow and floor.model_may_allow)
        if floor.effect is self.effect and self.model_may_allow and not floor.model_may_allow:
            return replace(self, model_may_allow=False)
        return self

    @property
    def grants(self) -> GrantLimit:
        """Which grants can allow a call that asks: any if no rule asked."""
        return GrantLimit.ANY if self.rule is None else self.rule.grants

    def to_json(self) -> JsonObject:
        """Return the evaluation, and where its rule stands, as the REST API sends it."""
        rule = self.rule
        version: JsonObject = {} if self.policy_version is None else {"policy_version": self.policy_version}
        group: JsonObject = {} if rule is None or rule.approvers is None else {"asks_group": rule.approvers.group}
        limit: JsonObject = {} if rule is None or rule.grants is GrantLimit.NEVER else {"grants": rule.grants.value}
        named = dict.fromkeys(("rule", "layer", "reason", "file", "line")) if rule is None else rule.named()
        return {"effect": self.effect.value, **named, **version, **group, **limit}

    def without_asking(self, refusal: Rule) -> Evaluation:
        """Return the evaluation if nobody can be asked: an effect of ``ask`` becomes this rule's refusal."""
        return Evaluation(effect=Effect.DENY, rule=refusal) if self.effect is Effect.ASK else self


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of all layers.

    Parameters
    ----------
    rules : tuple of Rule
        In any order: strictness decides, then position. Of rules that ask, one that requires more people is stricter,
        then one that lets fewer grants allow the call.
    model_may_allow : tuple of str
        ``server.tool`` patterns, split at the first dot, of calls that a model may allow instead of a person: in an
        agent's thread with the mode ``auto_review``, and if no rule matches. An ask rule requires a person. A dot in a
        server's name is written ``[.]``.

    Attributes
    ----------
    has_groups : bool
        Whether any rule is limited to groups.
    """

    rules: tuple[Rule, ...] = ()
    model_may_allow: tuple[str, ...] = ()
    has_groups: bool = field(init=False, repr=False, compare=False)
    _index: _RuleIndex = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "has_groups", any(rule.groups for rule in self.rules))
        object.__setattr__(self, "_index", _RuleIndex(self.rules))

    def evaluate(self, call: ToolCall, tool: ToolDescription | None = None) -> Evaluation:
        """Return the strictest matching rule and its effect; ``ask`` if no rule matches.

        If its approvers are a group that other matching rules ask, too, it requires what all of these require.

        Parameters
        ----------
        call : ToolCall
            The call.
        tool : ToolDescription or None
            The tool as its server describes it; ``None`` if unknown, and then no rule matches that is bound to a
            description.
        """
        matching = (rule for rule in self._index.naming(call.server, call.tool) if rule.covers(call, tool))
        strictest = next(matching, None)
        if strictest is None:
            may = any(_leaves_to_model(pattern, call) for pattern in self.model_may_allow)
            return Evaluation(effect=Effect.ASK, model_may_allow=may)
        if strictest.approvers is not None:
            strictest = replace(strictest, approvers=_all_of(strictest.approvers, matching))
        return Evaluation(effect=strictest.effect, rule=strictest)

    def for_groups(self, groups: frozenset[str] | None, *, person: str = "") -> Policy:
        """Return the policy as it applies to a member of these groups; see `Rule.for_groups`."""
        if not self.has_groups:
            return self
        rules = (rule.for_groups(groups, person=person) for rule in self.rules)
        return replace(self, rules=tuple(rule for rule in rules if rule is not None))

    def with_rules(self, rules: Iterable[Rule]) -> Policy:
        """Return the policy with additional rules."""
        return replace(self, rules=(*self.rules, *rules))


def _all_of(approvers: Approvers, rules: Iterable[Rule]) -> Approvers:
    """Return what these approvers, and all that rules ask of the same group, require together."""
    for rule in rules:
        if rule.approvers is not None and rule.approvers.group == approvers.group:
            approvers = approvers.stricter(rule.approvers)
    return approvers


def _strictness(rule: Rule) -> tuple[int, int, int]:
    """Return the sort key of a rule: of those that ask, one that requires more people is stricter, then by grants."""
    return rule.effect.strictness, 0 if rule.approvers is None else rule.approvers.count, -rule.grants.mildness


class _RuleIndex:
    """Index of rules by tool: most rules are about one server.

    Parameters
    ----------
    rules : tuple of Rule
        In the order that breaks ties between equally strict rules.
    """

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        by_strictness = sorted(rules, key=_strictness, reverse=True)
        self._of_server: dict[str, list[tuple[int, Rule]]] = {}
        self._of_any: list[tuple[int, Rule]] = []
        for place in enumerate(by_strictness):
            server = place[1].server
            (self._of_server.setdefault(server, []) if is_literal(server) else self._of_any).append(place)
        self._found: dict[tuple[str, str], tuple[Rule, ...]] = {}

    def naming(self, server: str, tool: str) -> tuple[Rule, ...]:
        """Return the rules that can match calls of a tool, strictest first."""
        found = self._found.get((server, tool))
        if found is None:
            found = self._find(server, tool)
            if len(self._found) >= _MOST_KNOWN:
                self._found.clear()
            self._found[server, tool] = found
        return found

    def _find(self, server: str, tool: str) -> tuple[Rule, ...]:
        places = [*self._of_server.get(server, ()), *self._of_any]
        return tuple(rule for _, rule in sorted(places, key=lambda place: place[0]) if rule.names(server, tool))


def _leaves_to_model(pattern: str, call: ToolCall) -> bool:
    """Whether a pattern lets a model decide a call. A pattern without a dot is for the whole name."""
    if (call.server, call.tool) == (OWN_SERVER, REGISTER_TOOL):
        return pattern == REGISTRATION
    masked = re.sub(r"\[!?\]?[^]]*\]", lambda found: "x" * len(found[0]), pattern)  # not a dot in brackets
    place = masked.find(".")
    if place < 0:
        return matcher_of(pattern)(call.qualified_name)
    return matcher_of(pattern[:place])(call.server) and matcher_of(pattern[place + 1 :])(call.tool)
