"""Groups of approvers that the Hub does not know, or that have too few members for anybody to approve."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from jupyter_agentbox.background import in_background
from jupyter_agentbox.core.approvers import Approvers
from jupyter_agentbox.core.text import counted, one_line

from .callers import Caller
from .group_members import GroupMembers, GroupsUnreadableError
from .policy_file import PolicyFile
from .policy_in_force import PolicyInForce

log = logging.getLogger(__name__)

#: How many users are remembered.
_MOST_SEEN: Final = 10_000
#: Maximum length of a message, in characters.
_LONGEST: Final = 500
#: Seconds in which the Hub must have told about all groups: less than between two looks, of which the next ends this.
_PATIENCE: Final = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReport:
    """What is known about the groups that a policy names.

    Parameters
    ----------
    problems : tuple of str
        A message for each rule, or list, that names a group in vain, with the file and the line.
    of_own_calls : tuple of str
        A message for each rule by which only the members of its groups cannot get their own calls approved.
    why_unknown : str
        Why the groups could not be read; empty if they could. If not, the problems go by whom the service has seen.
    """

    problems: tuple[str, ...] = ()
    of_own_calls: tuple[str, ...] = ()
    why_unknown: str = ""


async def report_on(policy: PolicyFile, source: GroupMembers, seen: Mapping[str, frozenset[str]]) -> GroupReport:
    """Return what is known about the groups that a policy names.

    Parameters
    ----------
    policy : PolicyFile
        The policy.
    source : GroupMembers
        The Hub.
    seen : mapping
        The groups of users whom the service has seen, by user, for a Hub that does not tell.
    """
    names = sorted({*policy.auditors, *(name for _, approvers in _asking(policy) for name in _named(approvers))})
    try:
        groups = await _members_of_each(names, source)
    except GroupsUnreadableError as error:
        return GroupReport(problems=_cut(_seen_problems(policy, seen)), why_unknown=str(error))
    return GroupReport(
        problems=_cut(_problems(policy, groups)), of_own_calls=_cut(_problems_of_own_calls(policy, groups))
    )


async def _members_of_each(names: Sequence[str], source: GroupMembers) -> Mapping[str, frozenset[str] | None]:
    try:
        async with asyncio.timeout(_PATIENCE):
            return {name: await source.members_of(name) for name in names}
    except TimeoutError:
        many = counted(len(names), "group")
        raise GroupsUnreadableError(f"the Hub did not tell about {many} within {_PATIENCE:g} seconds") from None


async def notes_on_groups(policy: PolicyFile, source: GroupMembers) -> Sequence[str]:
    """Return notes on the groups that a policy names, for a check of the configuration."""
    report = await report_on(policy, source, {})
    if report.why_unknown:
        return [f"the groups of approvers were not checked: {report.why_unknown}"]
    return [*report.problems, *report.of_own_calls]


def _cut(messages: Iterable[str]) -> tuple[str, ...]:
    return tuple(one_line(one, _LONGEST) for one in messages)


def _asking(policy: PolicyFile) -> Iterable[tuple[str, Approvers]]:
    """Yield where each rule stands that asks approvers, of central tools and of users' own, and whom it asks."""
    local = () if policy.local is None else policy.local.rules
    for rule in (*policy.policy.rules, *local):
        if rule.approvers is not None:
            yield f"{rule.file}:{rule.line}", rule.approvers


def _deciding(approvers: Approvers) -> Sequence[str]:
    """Return the groups whose members' approvals count, the asked one first."""
    return [approvers.group, *sorted(approvers.groups_after(math.inf) - {approvers.group})]


def _named(approvers: Approvers) -> Sequence[str]:
    return [*_deciding(approvers), *([approvers.break_glass] if approvers.break_glass else [])]


def _problems(policy: PolicyFile, groups: Mapping[str, frozenset[str] | None]) -> Iterable[str]:
    for where, approvers in _asking(policy):
        unknown = [name for name in dict.fromkeys(_named(approvers)) if groups[name] is None]
        missing = f"the Hub has no group {_listed(unknown, 'or')}" if unknown else ""
        why = ""
        if len(_members(approvers, groups)) < approvers.count:
            needed = counted(approvers.count, "approval")
            why = f"nobody can get the {needed} that this rule requires: {_numbers(approvers, groups)}"
        if text := "; ".join(filter(None, (missing, why))):
            yield f"{where}: {text}"
    for name in sorted(policy.auditors):
        if groups[name] is None:
            yield f"{policy.path}: the Hub has no group `{name}`, which `auditors` names"


def _problems_of_own_calls(policy: PolicyFile, groups: Mapping[str, frozenset[str] | None]) -> Iterable[str]:
    for where, approvers in _asking(policy):
        if not approvers.self_counts and len(_members(approvers, groups)) == approvers.count:
            yield (
                f"{where}: members of {_listed(_deciding(approvers), 'and')} can never get the"
                f" {counted(approvers.count, 'approval')} that this rule requires for their own calls, which they may"
                f" not approve themselves: {_numbers(approvers, groups)}"
            )


def _members(approvers: Approvers, groups: Mapping[str, frozenset[str] | None]) -> frozenset[str]:
    """Return all whose approvals count."""
    return frozenset[str]().union(*(groups[name] or frozenset() for name in _deciding(approvers)))


def _numbers(approvers: Approvers, groups: Mapping[str, frozenset[str] | None]) -> str:
    deciding, group = _deciding(approvers), approvers.break_glass
    has = f"{'has' if len(deciding) == 1 else 'have'} {counted(len(_members(approvers, groups)), 'member')}"
    emergency = f". Only members of `{group}` can allow such a call, by breaking the glass" if groups.get(group) else ""
    return f"{_listed(deciding, 'and')} {has}{emergency}"


def _seen_problems(policy: PolicyFile, seen: Mapping[str, frozenset[str]]) -> Iterable[str]:
    """Yield for which rules too few approvers have been here since the start, which may only be too early to say."""
    for where, approvers in _asking(policy):
        deciding = _deciding(approvers)
        members = [user for user, groups in seen.items() if groups.intersection(deciding)]
        if len(members) < approvers.count:
            needed, has = counted(approvers.count, "approval"), counted(len(members), "member")
            text = f"this rule requires {needed}, and {has} of {_listed(deciding, 'and')} used this service so far"
            yield f"{where}: {text}"


def _listed(names: Sequence[str], word: str) -> str:
    *rest, last = (f"`{name}`" for name in names)
    return f"{', '.join(rest)} {word} {last}" if rest else last


class ApproverGroups:
    """Checks whether the groups that the policy in force names can approve, and logs what is wrong with them.

    Parameters
    ----------
    policy : PolicyInForce
        The policy in force.
    on_failure : callable
        Called if the Hub does not tell who is in the groups.
    """

    def __init__(self, policy: PolicyInForce, *, on_failure: Callable[[], None] = lambda: None) -> None:
        self._policy = policy
        self._on_failure = on_failure
        self._source: GroupMembers | None = None
        self._seen: dict[str, frozenset[str]] = {}
        self._report: GroupReport | None = None
        self._logged: tuple[str, set[str]] = "", set()
        self._look: asyncio.Task[None] | None = None
        policy.follow(lambda _before, _now: self.begin())

    @property
    def report(self) -> GroupReport:
        """What the last look found; nothing before the first."""
        return self._report or GroupReport()

    @property
    def problem_count(self) -> int | None:
        """How many rules and lists name a group in vain; ``None`` if the Hub does not tell."""
        return None if self._report is None or self._report.why_unknown else len(self._report.problems)

    def saw(self, caller: Caller) -> None:
        """Remember in which groups a user is."""
        if caller.is_user:
            self._seen.pop(caller.name, None)
            self._seen[caller.name] = caller.groups
            if len(self._seen) > _MOST_SEEN:
                del self._seen[next(iter(self._seen))]

    def begin_asking(self, source: GroupMembers) -> None:
        """Ask the Hub from now on, the first time at once."""
        self._source = source
        self.begin()

    def begin(self) -> None:
        """Do `look` in the background."""
        if self._source is None:
            return
        if self._look is not None:
            self._look.cancel()  # it may be about an earlier policy
        self._look = in_background(self.look(), what="looking for the groups of approvers")

    async def look(self) -> None:
        """Ask the Hub about the groups that the policy in force names, and log what was not logged of this version."""
        if self._source is None:
            return
        self._report = report = await report_on(self._policy.current, self._source, self._seen)
        if self._logged[0] != self._policy.version:
            self._logged = self._policy.version, set()
        if why := report.why_unknown:
            self._on_failure()
            self._tell(logging.WARNING, f"whether the groups of approvers have enough members is not known: {why}")
            return
        for problem in report.problems:
            self._tell(logging.WARNING, problem)
        for problem in report.of_own_calls:
            self._tell(logging.INFO, problem)

    def _tell(self, level: int, text: str) -> None:
        if text not in self._logged[1]:
            self._logged[1].add(text)
            log.log(level, "%s", text)

    async def aclose(self) -> None:
        """End what runs in the background."""
        if self._look is not None:
            self._look.cancel()
            await asyncio.wait([self._look])
