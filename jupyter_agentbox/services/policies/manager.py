"""The policy in force: the rules of files, those of the program, and what people answered for good."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_

from jupyter_agentbox.core.calls import JsonValue, ToolCall
from jupyter_agentbox.core.policy import Effect, Evaluation, Policy, Rule
from jupyter_agentbox.core.ports import RuleSource
from jupyter_agentbox.core.rule_files import RuleBook
from jupyter_agentbox.core.site_policy import Feature, SitePolicy
from jupyter_agentbox.core.tools import ConfigurationProblem, ToolDescription
from jupyter_agentbox.exceptions import StorageError
from jupyter_agentbox.services.grants.manager import GrantManager


class PolicyManager:
    """The policy in force.

    Parameters
    ----------
    policy : Policy
        The rules that the program was given, and what is left to models.
    source : RuleSource or None
        Has the rules of files.
    grants : GrantManager or None
        What people answered for good.
    """

    def __init__(
        self,
        *,
        policy: Policy | None = None,
        source: RuleSource | None = None,
        grants: GrantManager | None = None,
    ) -> None:
        self._policy = policy or Policy()
        self._source = source
        self._grants = grants
        self._parts: tuple[object, ...] = (None, None)
        self._in_force = Policy()

    def evaluate(self, call: ToolCall, tool: ToolDescription | None = None, *, is_current: bool = False) -> Evaluation:
        """Return what the policy says of the call, and the rule or the grant that says it.

        Parameters
        ----------
        call : ToolCall
            The call.
        tool : ToolDescription or None
            The tool as its server describes it; without it nothing counts that a person allowed for good.
        is_current : bool
            Whether the server describes it so now: then a grant for a tool that it described otherwise is void.
        """
        book = self.book  # looked at once: what is said of one call comes from the same rules
        evaluation = self._with_programs(book).evaluate(call, tool)
        if self._grants is None:
            return evaluation
        found = self._grants.apply(call, tool, evaluation)
        if found.effect is not Effect.ALLOW or not book.site.is_off(Feature.GRANTS):
            evaluation = found
        if is_current and tool is not None:
            self._grants.void_changed(call, tool)
        return evaluation

    @property
    def in_force(self) -> Policy:
        """All rules as they are now; of equally strict ones, the site's come first."""
        return self._with_programs(self.book)

    def _with_programs(self, book: RuleBook) -> Policy:
        """Return the rules of files with those of the program."""
        parts = (book, self._policy)
        if not all(map(is_, parts, self._parts)):
            rules = (*book.rules, *self._policy.rules)
            self._in_force = Policy(rules, model_may_allow=self._policy.model_may_allow)
            self._parts = parts
        return self._in_force

    @property
    def book(self) -> RuleBook:
        """The rules of files."""
        return self._source.load() if self._source is not None else _NO_BOOK

    @property
    def site(self) -> SitePolicy:
        """What the site lets its users do."""
        return self.book.site

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


_NO_BOOK = RuleBook()
