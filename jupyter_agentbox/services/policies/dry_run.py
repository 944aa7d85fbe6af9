"""Dry run of a rule against the calls in the history."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.changes import is_change
from jupyter_agentbox.core.policy import Effect, Policy, Rule
from jupyter_agentbox.core.ports import ApprovalPage, ApprovalQuery

#: Reads a page of requests, newest first.
ReadPage: TypeAlias = Callable[[ApprovalQuery], Awaitable[ApprovalPage]]

#: How many of the most recent calls are evaluated.
MOST: Final = 5000
_PAGE: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """The effect that a rule would have had on past calls, with all other rules as they are now.

    Parameters
    ----------
    looked_at : int
        Number of calls evaluated.
    effects : mapping
        How many of the calls that the rule matches would have been allowed, asked about and denied.
    unknown : int
        Calls whose arguments are no longer stored, so that it is unknown whether the rule matches.
    """

    looked_at: int
    effects: Counter[Effect]
    unknown: int

    def to_json(self) -> JsonObject:
        """Return it as the REST API sends it."""
        return {
            "looked_at": self.looked_at,
            "matched": self.effects.total(),
            **{effect.value: self.effects[effect] for effect in Effect},
            "unknown": self.unknown,
        }


async def dry_run(rule: Rule, policy: Policy, read_page: ReadPage) -> DryRun:
    """Return the effect that a rule would have had on the most recent calls.

    Parameters
    ----------
    rule : Rule
        The rule.
    policy : Policy
        The other rules.
    read_page : callable
        Reads the history.

    Raises
    ------
    StorageError
    """
    with_rule = policy.with_rules([rule])
    total, cursor = DryRun(looked_at=0, effects=Counter(), unknown=0), None
    while total.looked_at < MOST:
        page = await read_page(ApprovalQuery(limit=_PAGE, cursor=cursor))
        # In a thread: evaluating a page of calls would block the loop.
        found = await asyncio.to_thread(_look_at, page.approvals, rule, with_rule)
        total = DryRun(
            looked_at=total.looked_at + found.looked_at,
            effects=total.effects + found.effects,
            unknown=total.unknown + found.unknown,
        )
        cursor = page.next
        if cursor is None:
            break
    return total


def _look_at(requests: Iterable[ApprovalRequest], rule: Rule, policy: Policy) -> DryRun:
    effects: Counter[Effect] = Counter()
    unknown = looked_at = 0
    without_conditions = replace(rule, arguments={})
    for request in requests:
        if is_change(request.call):
            continue
        looked_at += 1
        if request.call.omitted is not None and rule.arguments:
            unknown += without_conditions.matches(request.call, request.tool)
        elif rule.matches(request.call, request.tool):
            effects[policy.evaluate(request.call, request.tool).effect] += 1
    return DryRun(looked_at=looked_at, effects=effects, unknown=unknown)
