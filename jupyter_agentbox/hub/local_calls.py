"""Whom the service asks about calls of users' own tools, which run on the users' servers once they are approved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from jupyter_agentbox.core.calls import JsonValue, ToolCall
from jupyter_agentbox.core.local_calls import APPROVE_TOOL, as_on_users_server, is_local, needs_approvers
from jupyter_agentbox.core.policy import Effect, Evaluation, Layer, Rule
from jupyter_agentbox.core.ports import CallListener
from jupyter_agentbox.core.rule_book import RuleBook
from jupyter_agentbox.core.tools import ToolDescription, ToolResult
from jupyter_agentbox.services.policies.manager import PersonOf, PolicyManager

from .policy_in_force import PolicyInForce

_NOBODY_IS_ASKED = (
    "the Hub's policy asks nobody about this call; if it has changed a moment ago, run the code again in a minute"
)

#: The only tool of the endpoint for local calls.
APPROVAL = ToolDescription(
    name=APPROVE_TOOL,
    title="Approve a call",
    description="Asks the approvers of a user's own tool, and returns when they have approved the call.",
)


class LocalRules:
    """The rules for users' own tools, as `PolicyManager` reads them.

    Parameters
    ----------
    policy : PolicyInForce
        The policy in force.
    """

    is_writable = False

    def __init__(self, policy: PolicyInForce) -> None:
        self._policy = policy

    def load(self) -> RuleBook:
        """Return the rules in force."""
        return self._policy.load_local()

    def write(
        self, entries: Sequence[JsonValue], *, revision: str | None = None, schema: str | None = None
    ) -> NoReturn:
        """Refuse to write."""
        self._policy.write(entries, revision=revision, schema=schema)


class HubPolicyManager(PolicyManager):
    """Evaluates calls of central tools by the service's rules, and those of users' own tools by the rules for these.

    Parameters
    ----------
    policy : PolicyInForce
        The policy in force.
    person_of : callable
        Returns the person whose call it is.
    """

    def __init__(self, policy: PolicyInForce, *, person_of: PersonOf) -> None:
        super().__init__(source=policy, person_of=person_of)
        self._local = PolicyManager(source=LocalRules(policy), person_of=person_of)

    def evaluate(self, call: ToolCall, tool: ToolDescription | None = None, *, is_current: bool = False) -> Evaluation:
        """Return the evaluation of the call. A call of a user's own tool is denied unless a rule names approvers."""
        if not is_local(call):
            return super().evaluate(call, tool, is_current=is_current)
        evaluation = self._local.evaluate(as_on_users_server(call), tool)
        if evaluation.effect is Effect.DENY or needs_approvers(evaluation):
            return evaluation
        return Evaluation(
            effect=Effect.DENY, rule=Rule.of_tool(call, Effect.DENY, layer=Layer.SITE, reason=_NOBODY_IS_ASKED)
        )


class LocalTool:
    """A user's own tool, as a `ToolCaller`: it runs on the user's server, which is told that it may.

    Parameters
    ----------
    tool : ToolDescription
        The tool as the user's server describes it. That server looks whether it is unchanged before it runs the call.
    """

    def __init__(self, tool: ToolDescription) -> None:
        self._tool = tool

    async def describe(self, server: str, tool: str) -> ToolDescription:  # noqa: ARG002  # there is but one
        """Return the tool."""
        return self._tool

    async def call_tool(self, call: ToolCall, *, listener: CallListener | None = None) -> ToolResult:
        """Return that the call was approved."""
        del listener
        name = as_on_users_server(call).qualified_name
        return ToolResult(content=({"type": "text", "text": f"`{name}` was approved"},))
