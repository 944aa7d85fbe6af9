"""The policy in force: the rules of files, those of the program, and what people answered for good."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.calls import JsonValue, ToolCall
from jupyter_agentbox.core.globs import literal
from jupyter_agentbox.core.policy import Effect, Evaluation, Layer, Policy, Rule
from jupyter_agentbox.core.ports import RuleSource
from jupyter_agentbox.core.rule_files import RuleBook
from jupyter_agentbox.core.tools import ConfigurationProblem, ToolDescription
from jupyter_agentbox.exceptions import StorageError


class PolicyManager:
    """The policy in force.

    Parameters
    ----------
    policy : Policy
        The rules that the program was given, and what is left to models.
    source : RuleSource or None
        Has the rules of files.
    """

    def __init__(self, *, policy: Policy | None = None, source: RuleSource | None = None) -> None:
        self._policy = policy or Policy()
        self._source = source
        self._session_rules: tuple[Rule, ...] = ()
        self._parts: tuple[object, ...] = (None, None, None)
        self._in_force = Policy()

    def evaluate(self, call: ToolCall, tool: ToolDescription | None = None) -> Evaluation:
        """Return what the policy says of the call, and the rule that says it.

        Parameters
        ----------
        call : ToolCall
            The call.
        tool : ToolDescription or None
            The tool as its server describes it now; without it nothing counts that a person allowed for good.
        """
        return self.in_force.evaluate(call, tool)

    @property
    def in_force(self) -> Policy:
        """All rules as they are now; of equally strict ones, the site's come first."""
        book = self.book
        parts = (book, self._policy, self._session_rules)
        if not all(map(is_, parts, self._parts)):
            rules = (*book.rules, *self._policy.rules, *self._session_rules)
            self._in_force = Policy(rules, model_may_allow=self._policy.model_may_allow)
            self._parts = parts
        return self._in_force

    @property
    def book(self) -> RuleBook:
        """The rules of files."""
        return self._source.load() if self._source is not None else _NO_BOOK

    @property
    def is_writable(self) -> bool:
        """Whether the user's rules can be written."""
        return self._source is not None and self._source.is_writable

    def file_and_program_rules(self) -> tuple[Rule, ...]:
        """Return the rules that somebody wrote: all but lasting answers."""
        return (*self.book.rules, *self._policy.rules)

    def problems(self) -> Sequence[ConfigurationProblem]:
        """Return what is wrong in files of rules."""
        return self.book.problems

    def write(
        self, entries: Sequence[JsonValue], *, revision: str | None = None, schema: str | None = None
    ) -> RuleBook:
        """Replace the user's rules, and return all rules of files.

        Raises
        ------
        InvalidRulesError, PolicyConflictError, StorageError
        """
        if self._source is None:
            raise StorageError("there is no file of rules to write")
        self._source.write(entries, revision=revision, schema=schema)
        return self.book

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
            self._session_rules = (*self._session_rules, rule)

    def forget(self, kernel_id: str) -> None:
        """Drop the rules of a kernel that ended."""
        self._session_rules = tuple(rule for rule in self._session_rules if rule.kernel_id != kernel_id)


_NO_BOOK = RuleBook()
