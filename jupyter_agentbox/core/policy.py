"""Rules and what they say about a call: the strictest matching rule wins, and no rule means ask."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from fnmatch import fnmatchcase

from .calls import ToolCall
from .registration import OWN_SERVER, REGISTER_TOOL, REGISTRATION


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


def exactly(call: ToolCall) -> str:
    """Return the pattern that fits the tool of a call, and no other."""
    server, tool = (re.sub(r"([*?\[])", r"[\1]", name) for name in (call.server, call.tool))
    return f"{server.replace('.', '[.]')}.{tool}"


def _divided(pattern: str) -> tuple[str, str, str]:
    """Return the patterns of the server and the tool, and the dot between them; none if one stands in brackets only."""
    masked = re.sub(r"\[!?\]?[^]]*\]", lambda found: "x" * len(found[0]), pattern)
    place = masked.find(".")
    return (pattern, "", "") if place < 0 else (pattern[:place], ".", pattern[place + 1 :])


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """An effect for all calls that match.

    Parameters
    ----------
    tool : str
        Case-sensitive pattern of ``server.tool`` with ``*``, ``?`` and ``[...]``. Its first dot divides the two; a dot
        in the name of a server is written ``[.]``. One without a dot is for the whole name. That an MCP server is added
        is allowed by no pattern but its full name, ``agentbox.register_mcp_server``, and not for a session.
    effect : Effect
        What becomes of a matching call.
    layer : Layer
        Whose rule it is.
    reason : str
        For people; shown with the evaluation and, for ``deny``, raised in the cell.
    kernel_id : str or None
        Limits the rule to one kernel.
    definition : str or None
        Limits the rule to a tool as its server describes it now: the description's digest.
    """

    tool: str
    effect: Effect
    layer: Layer = Layer.USER
    reason: str = ""
    kernel_id: str | None = None
    definition: str | None = None

    def matches(self, call: ToolCall, definition: str | None = None) -> bool:
        """Whether the rule speaks of this call of a tool with this description."""
        if self.kernel_id is not None and self.kernel_id != call.origin.kernel_id:
            return False
        if self.definition is not None and self.definition != definition:
            return False
        return self._matches_name(call)

    def _matches_name(self, call: ToolCall) -> bool:
        if self.effect is Effect.ALLOW and (call.server, call.tool) == (OWN_SERVER, REGISTER_TOOL):
            return self.tool == REGISTRATION and self.layer is not Layer.SESSION
        server, dot, tool = _divided(self.tool)
        if dot and fnmatchcase(call.server, server) and fnmatchcase(call.tool, tool):
            return True
        # `shop.*` allows nothing of a server `shop.evil`. What asks or refuses may reach further than was meant.
        return (not dot or self.effect is not Effect.ALLOW) and fnmatchcase(call.qualified_name, self.tool)

    def __str__(self) -> str:
        return f"{self.layer.value}: {self.effect.value} {self.tool}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """An effect and the rule that gave it; no rule where none matched.

    Parameters
    ----------
    effect : Effect
        What becomes of the call.
    rule : Rule or None
        The rule that gave the effect.
    model_may_allow : bool
        Of a call that asks: whether a model may allow it in the place of a person.
    """

    effect: Effect
    rule: Rule | None = None
    model_may_allow: bool = False

    def at_least(self, floor: Evaluation) -> Evaluation:
        """Return the stricter of the two; this one if they are equal. A model may allow what both let it."""
        if floor.effect.strictness > self.effect.strictness:
            return floor
        if floor.effect is self.effect and self.model_may_allow and not floor.model_may_allow:
            return replace(self, model_may_allow=False)
        return self

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
        Patterns, like those of rules that allow, of the calls that a model may allow in the place of a person: in a
        thread of an agent whose mode is ``auto_review``, and where no rule matches. A rule that asks wants a person.
    """

    rules: tuple[Rule, ...] = ()
    model_may_allow: tuple[str, ...] = ()

    def evaluate(self, call: ToolCall, definition: str | None = None) -> Evaluation:
        """Return the strictest matching rule and its effect; ``ask`` if no rule matches.

        Parameters
        ----------
        call : ToolCall
            The call.
        definition : str or None
            The digest of what the server says of the tool; ``None`` if that is not known, and then no rule matches
            that is bound to one.
        """
        matching = [rule for rule in self.rules if rule.matches(call, definition)]
        if not matching:
            may = any(Rule(tool=one, effect=Effect.ALLOW).matches(call) for one in self.model_may_allow)
            return Evaluation(effect=Effect.ASK, model_may_allow=may)
        rule = max(matching, key=lambda found: found.effect.strictness)
        return Evaluation(effect=rule.effect, rule=rule)

    def with_rules(self, rules: Iterable[Rule]) -> Policy:
        """Return a policy that has these rules as well."""
        return replace(self, rules=(*self.rules, *rules))
