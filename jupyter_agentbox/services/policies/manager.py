"""The policy in force: the rules of files and of the program, and grants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import is_
from typing import Final, TypeAlias

from jupyter_agentbox.core.calls import JsonValue, ToolCall
from jupyter_agentbox.core.policy import Effect, Evaluation, Policy, Rule
from jupyter_agentbox.core.ports import RuleSource
from jupyter_agentbox.core.rule_book import RuleBook
from jupyter_agentbox.core.site_policy import Feature, SitePolicy
from jupyter_agentbox.core.tools import ConfigurationProblem, ToolDescription
from jupyter_agentbox.exceptions import StorageError
from jupyter_agentbox.services.grants.manager import GrantManager

#: How many persons' rules are cached.
_MOST_PERSONS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A person whose calls are evaluated.

    Parameters
    ----------
    groups : frozenset of str, or None
        Their JupyterHub groups; ``None`` if unknown.
    name : str
        Their name in reasons; empty if they are the reader.
    """

    groups: frozenset[str] | None = None
    name: str = ""


#: Returns the person whose call it is; for ``None``, the server's user.
PersonOf: TypeAlias = Callable[[ToolCall | None], Person]


def nobody_known(_call: ToolCall | None) -> Person:
    """Return a person about whom nothing is known."""
    return Person()


class PolicyManager:
    """The policy in force.

    Parameters
    ----------
    policy : Policy
        The program's rules, and the calls that models may allow.
    source : RuleSource or None
        The rules of files.
    grants : GrantManager or None
        The grants.
    person_of : callable
        Returns the person whose call it is; for ``None``, the server's user.

    Attributes
    ----------
    on_change : callable
        Called when the rules of files have changed since they were last read.
    """

    def __init__(
        self,
        *,
        policy: Policy | None = None,
        source: RuleSource | None = None,
        grants: GrantManager | None = None,
        person_of: PersonOf = nobody_known,
    ) -> None:
        self._policy = policy or Policy()
        self._source = source
        self._grants = grants
        self._person_of = person_of
        self.on_change: Callable[[], None] = lambda: None
        self._seen: RuleBook | None = None
        self._parts: tuple[object, ...] = (None, None)
        self._of_all = Policy()
        self._of_persons: dict[Person, Policy] = {}

    def evaluate(self, call: ToolCall, tool: ToolDescription | None = None, *, is_current: bool = False) -> Evaluation:
        """Return the evaluation of the call, with the rule or grant that gave it.

        Parameters
        ----------
        call : ToolCall
            The call.
        tool : ToolDescription or None
            The tool as its server describes it; without it, no grant allows the call.
        is_current : bool
            Whether the description is current: then a grant for a different description becomes void.
        """
        book = self.book  # read once, so that one call is evaluated by one set of rules
        evaluation = self._for(self._person_of(call), book).evaluate(call, tool)
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
        """All current rules for the server's user; among equally strict ones, the site's come first."""
        return self._for(self._person_of(None), self.book)

    @property
    def has_groups(self) -> bool:
        """Whether any rule is limited to groups."""
        return self._with_programs(self.book).has_groups

    def _for(self, person: Person, book: RuleBook) -> Policy:
        """Return the rules as they apply to one person."""
        policy = self._with_programs(book)
        if not policy.has_groups:
            return policy
        found = self._of_persons.get(person)
        if found is None:
            if len(self._of_persons) >= _MOST_PERSONS:
                self._of_persons.clear()
            found = self._of_persons[person] = policy.for_groups(person.groups, person=person.name)
        return found

    def _with_programs(self, book: RuleBook) -> Policy:
        """Return the rules of files together with those of the program."""
        parts = (book, self._policy)
        if not all(map(is_, parts, self._parts)):
            rules = (*book.rules, *self._policy.rules)
            self._of_all = Policy(rules, model_may_allow=self._policy.model_may_allow)
            self._of_persons.clear()
            self._parts = parts
        return self._of_all

    def stamped(self, evaluation: Evaluation) -> Evaluation:
        """Return an evaluation with the version of the Hub service's policy in force."""
        version = self.book.policy_version
        return evaluation if version == evaluation.policy_version else replace(evaluation, policy_version=version)

    @property
    def book(self) -> RuleBook:
        """The rules of files."""
        if self._source is None:
            return _NO_BOOK
        book = self._source.load()
        if book is not self._seen:
            self._seen = book
            self.on_change()
        return book

    @property
    def site(self) -> SitePolicy:
        """The site's settings for its users."""
        return self.book.site

    @property
    def is_writable(self) -> bool:
        """Whether the user's rules can be written."""
        return self._source is not None and self._source.is_writable

    def file_and_program_rules(self) -> tuple[Rule, ...]:
        """Return the written rules, without grants."""
        return (*self.book.rules, *self._policy.rules)

    def problems(self) -> Sequence[ConfigurationProblem]:
        """Return the problems in rules files."""
        return self.book.problems

    def write(
        self, entries: Sequence[JsonValue], *, revision: str | None = None, schema: str | None = None
    ) -> RuleBook:
        """Replace the user's rules, and return the rules of all files.

        Raises
        ------
        InvalidRulesError, PolicyConflictError, StorageError
        """
        if self._source is None:
            raise StorageError("there is no file of rules to write")
        self._source.write(entries, revision=revision, schema=schema)
        return self.book


_NO_BOOK = RuleBook()
