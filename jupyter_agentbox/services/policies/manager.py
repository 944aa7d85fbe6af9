"""Evaluates calls against the policy in force, and keeps the rules that people made with an ``*_always`` answer."""

from __future__ import annotations

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.globs import literal
from jupyter_agentbox.core.policy import Effect, Evaluation, Layer, Policy, Rule
from jupyter_agentbox.core.tools import ToolDescription


class PolicyManager:
    """The policy in force.

    Parameters
    ----------
    policy : Policy
        The rules of the site, user and project layers.
    """

    def __init__(self, *, policy: Policy | None = None) -> None:
        self._policy = policy or Policy()
        self._session_rules: list[Rule] = []

    def evaluate(self, call: ToolCall, tool: ToolDescription | None = None) -> Evaluation:
        """Return what the policy says of the call, and the rule that says it.

        Parameters
        ----------
        call : ToolCall
            The call.
        tool : ToolDescription or None
            The tool as its server describes it now; without it nothing counts that a person allowed for good.
        """
        policy = self._policy.with_rules(self._session_rules) if self._session_rules else self._policy
        return policy.evaluate(call, tool)

    def remember(self, request: ApprovalRequest) -> None:
        """Make a lasting answer a rule for this tool in this kernel, until the kernel ends.

        What was allowed is the tool that the person saw: with another description or schema it asks again. An answer
        to a call of no kernel is for that call only.
        """
        decision, kernel_id = request.decision, request.call.origin.kernel_id
        if decision is None or not decision.answer.is_lasting or kernel_id is None:
            return
        rule = Rule(
            server=literal(request.call.server),
            tool=literal(request.call.tool),
            effect=Effect.ALLOW if decision.answer.allows else Effect.DENY,
            layer=Layer.SESSION,
            reason=decision.reason,
            kernel_id=kernel_id,
            definition=request.tool.digest if decision.answer.allows else None,
        )
        if rule not in self._session_rules:
            self._session_rules.append(rule)

    def forget(self, kernel_id: str) -> None:
        """Drop the rules of a kernel that ended."""
        self._session_rules = [rule for rule in self._session_rules if rule.kernel_id != kernel_id]
