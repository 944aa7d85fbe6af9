"""Rules and what they say about a call: the strictest matching rule wins, and no rule means ask."""

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

#: Tools for which the rules that name them are known; more are forgotten, and found again.
_MOST_KNOWN: Final = 1000


class Effect(str, Enum):
    """What a rule makes of a call, from the mildest to the strictest."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"

    @property
    def strictness(self) -> int:
        """0 for the mildest; a higher number wins."""
        return ("allow", "ask", "deny").index(self.value)


class Layer(str, Enum):
    """Whose rule it is."""

    SITE = "site"
    USER = "user"
    PROJECT = "project"
    SESSION = "session"
    THREAD = "thread"
    """No rules are written for it: it is what the approval mode of an agent's thread makes of a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """An effect for all calls that match all that the rule says of them.

    Parameters
    ----------
    server, tool : str
        Case-sensitive patterns of the server's and the tool's whole name, with ``*``, ``?`` and ``[...]``. That an MCP
        server is added is allowed by no rule but one with both full names, ``agentbox`` and ``register_mcp_server``,
        and not for a session.
    effect : Effect
        What becomes of a matching call.
    layer : Layer
        Whose rule it is.
    reason : str
        For people; shown with the evaluation and, for ``deny``, raised in the cell.
    arguments : mapping
        A condition for each of some arguments: see `argument_conditions`. An argument that the call does not have meets
        none. Where it is unknown whether a condition holds, a rule that allows does not match, and others do.
    notebook : str or None
        Pattern of the path of the notebook, below the server's root directory, with ``/``. A call that comes from none
        does not match.
    isolation : Isolation
        Limits the rule to kernels that are kept apart at least as far.
    below : Isolation
        Limits the rule to kernels that are kept apart less far; ``NONE`` for no such limit. No file says so.
    timeout : float or None
        How long a call that this rule asks about waits for a decision, in seconds; ``None`` for as long as others.
    kernel_id : str or None
        Limits the rule to one kernel.
    definition : str or None
        Limits the rule to a tool as its server describes it now: the description's digest.
    groups : tuple of str
        Limits the rule to the members of groups of JupyterHub. Which groups somebody is in is no part of a call:
        `for_groups` returns the rule for one person. As it stands, it is a rule for somebody of whom nothing is known.
    approvers : Approvers or None
        Of a rule that asks: who has to approve; ``None`` for the person whose code calls.
    file : str
        The file that has the rule; empty if none has.
    line : int
        The line in it, from 1.

    Raises
    ------
    ValueError
        If a condition of `arguments` is none.
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
        """Return a rule for the tool of a call, and for no other."""
        return cls(server=literal(call.server), tool=literal(call.tool), effect=effect, layer=layer, reason=reason)

    def matches(self, call: ToolCall, tool: ToolDescription | None = None) -> bool:
        """Whether the rule speaks of this call of a tool that is described so."""
        return self.names(call.server, call.tool) and self.covers(call, tool)

    def names(self, server: str, tool: str) -> bool:
        """Whether the rule can speak of calls of a tool."""
        if self.effect is Effect.ALLOW and (server, tool) == (OWN_SERVER, REGISTER_TOOL):
            return (self.server, self.tool) == (server, tool) and self.layer is not Layer.SESSION
        return matcher_of(self.server)(server) and matcher_of(self.tool)(tool)

    def covers(self, call: ToolCall, tool: ToolDescription | None = None) -> bool:
        """Whether the rule speaks of this call, if it is one of a tool that it names."""
        if not self._is_anywhere and not self._is_where(call, tool):
            return False
        return not self._conditions or self._meets_conditions(call, tool)

    def _is_where(self, call: ToolCall, tool: ToolDescription | None) -> bool:
        origin = call.origin
        if self.groups and self.effect is Effect.ALLOW:  # nobody said who is in them
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
        """Return the rule as it holds for a member of these groups; ``None`` if it does not.

        Parameters
        ----------
        groups : frozenset of str, or None
            All groups of that person; ``None`` if they are not known. Then a rule that allows does not hold, and
            others do.
        person : str
            The name of the person; by default it is who reads the reason.
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
                # What is taken for a missing argument is the server's word: it makes a rule stricter, never milder.
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
        """Return the rule as it stands in a file."""
        optional: JsonObject = {
            "arguments": dict(self.arguments) or None,
            "notebook": self.notebook,
            "isolation": None if self.isolation is Isolation.NONE else self.isolation.value,
            "below": None if self.below is Isolation.NONE else self.below.value,
            "timeout": self.timeout,
            "groups": list(self.groups) or None,
            "approvers": None if self.approvers is None else self.approvers.to_json(),
            "reason": self.reason or None,
        }
        return {
            "effect": self.effect.value,
            "server": self.server,
            "tool": self.tool,
            **{name: value for name, value in optional.items() if value is not None},
        }

    def named(self) -> JsonObject:
        """Return which rule it is, whose, and where it stands, as the REST API says what a rule decided."""
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
    """An effect and the rule or the grant that gave it; neither where none matched.

    Parameters
    ----------
    effect : Effect
        What becomes of the call.
    rule : Rule or None
        The rule that gave the effect.
    model_may_allow : bool
        Of a call that asks: whether a model may allow it in the place of a person.
    grant : GrantUse or None
        The grant that gave the effect.
    voided : VoidGrant or None
        Of a call that asks: a grant that would have allowed it, had nothing changed.
    policy_version : int or None
        The version of the Hub service's policy that held then; ``None`` if there is none.
    """

    effect: Effect
    rule: Rule | None = None
    model_may_allow: bool = False
    grant: GrantUse | None = None
    voided: VoidGrant | None = None
    policy_version: int | None = None

    def at_least(self, floor: Evaluation) -> Evaluation:
        """Return the stricter of the two; of equal ones, that with a rule. A model may allow what both let it."""
        if floor.effect.strictness > self.effect.strictness:
            return floor
        if floor.effect is self.effect is Effect.ASK and self.rule is None and floor.rule is not None:
            # Of this call a rule speaks, then: no grant allows it.
            return replace(self, rule=floor.rule, model_may_allow=self.model_may_allow and floor.model_may_allow)
        if floor.effect is self.effect and self.model_may_allow and not floor.model_may_allow:
            return replace(self, model_may_allow=False)
        return self

    def to_json(self) -> JsonObject:
        """Return the evaluation, and where its rule stands, as the REST API sends it."""
        rule = self.rule
        version: JsonObject = {} if self.policy_version is None else {"policy_version": self.policy_version}
        named = dict.fromkeys(("rule", "layer", "reason", "file", "line")) if rule is None else rule.named()
        return {"effect": self.effect.value, **named, **version}

    def without_asking(self, refusal: Rule) -> Evaluation:
        """Return what becomes of the call where nobody is asked: what would ask is refused, by this rule."""
        return Evaluation(effect=Effect.DENY, rule=refusal) if self.effect is Effect.ASK else self


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of all layers.

    Parameters
    ----------
    rules : tuple of Rule
        In any order: strictness decides, and among equals the first.
    model_may_allow : tuple of str
        Patterns of ``server.tool``, whose first dot divides the two, of the calls that a model may allow in the place
        of a person: in a thread of an agent whose mode is ``auto_review``, and where no rule matches. A rule that asks
        wants a person. A dot in the name of a server is written ``[.]``.

    Attributes
    ----------
    has_groups : bool
        Whether a rule is for the members of some groups.
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

        Parameters
        ----------
        call : ToolCall
            The call.
        tool : ToolDescription or None
            The tool as its server describes it; ``None`` if that is not known, and then no rule matches that is bound
            to a description.
        """
        for rule in self._index.naming(call.server, call.tool):  # the strictest first
            if rule.covers(call, tool):
                return Evaluation(effect=rule.effect, rule=rule)
        may = any(_leaves_to_model(pattern, call) for pattern in self.model_may_allow)
        return Evaluation(effect=Effect.ASK, model_may_allow=may)

    def for_groups(self, groups: frozenset[str] | None, *, person: str = "") -> Policy:
        """Return the policy as it holds for a member of these groups, by `Rule.for_groups`."""
        if not self.has_groups:
            return self
        rules = (rule.for_groups(groups, person=person) for rule in self.rules)
        return replace(self, rules=tuple(rule for rule in rules if rule is not None))

    def with_rules(self, rules: Iterable[Rule]) -> Policy:
        """Return a policy that has these rules as well."""
        return replace(self, rules=(*self.rules, *rules))


class _RuleIndex:
    """Finds the rules that name a tool, without a look at all others: most rules are about one server.

    Parameters
    ----------
    rules : tuple of Rule
        In the order in which equally strict ones count.
    """

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        by_strictness = sorted(rules, key=lambda rule: -rule.effect.strictness)
        self._of_server: dict[str, list[tuple[int, Rule]]] = {}
        self._of_any: list[tuple[int, Rule]] = []
        for place in enumerate(by_strictness):
            server = place[1].server
            (self._of_server.setdefault(server, []) if is_literal(server) else self._of_any).append(place)
        self._found: dict[tuple[str, str], tuple[Rule, ...]] = {}

    def naming(self, server: str, tool: str) -> tuple[Rule, ...]:
        """Return the rules that can speak of calls of a tool, the strictest first."""
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
    """Whether a pattern leaves a call to a model. One without a dot is for the whole name."""
    if (call.server, call.tool) == (OWN_SERVER, REGISTER_TOOL):
        return pattern == REGISTRATION
    masked = re.sub(r"\[!?\]?[^]]*\]", lambda found: "x" * len(found[0]), pattern)  # a dot in brackets divides nothing
    place = masked.find(".")
    if place < 0:
        return matcher_of(pattern)(call.qualified_name)
    return matcher_of(pattern[:place])(call.server) and matcher_of(pattern[place + 1 :])(call.tool)
