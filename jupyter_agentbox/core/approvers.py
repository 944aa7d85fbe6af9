"""Who has to approve what a rule asks about, where that is not the person whose code called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .calls import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Escalation:
    """Who may answer as well when a request has waited for some time.

    Parameters
    ----------
    group : str
        The group's name.
    after : float
        Seconds.
    """

    group: str
    after: float

    def to_json(self) -> JsonObject:
        """Return it as it stands in a file of rules."""
        return {"group": self.group, "after": self.after}


@dataclass(frozen=True, slots=True, kw_only=True)
class Approvers:
    """The members of a group of JupyterHub, of whom some have to approve a call.

    Parameters
    ----------
    group : str
        The group's name.
    count : int
        How many of its members have to approve. One who rejects is enough.
    self_counts : bool
        Whether the answer of the person whose code called counts, if they are a member.
    delegates : tuple of str
        Groups whose members may answer in their place.
    escalation : Escalation or None
        Who may answer as well when a request has waited for some time.
    """

    group: str
    count: int = 1
    self_counts: bool = False
    delegates: tuple[str, ...] = ()
    escalation: Escalation | None = None

    def groups_after(self, waited: float) -> frozenset[str]:
        """Return the groups whose members may answer a request that has waited so many seconds."""
        later = () if self.escalation is None or waited < self.escalation.after else (self.escalation.group,)
        return frozenset((self.group, *self.delegates, *later))

    def to_json(self) -> JsonObject:
        """Return it as it stands in a file of rules."""
        return {
            "group": self.group,
            "count": self.count,
            "self": self.self_counts,
            **({"delegates": list(self.delegates)} if self.delegates else {}),
            **({} if self.escalation is None else {"escalation": self.escalation.to_json()}),
        }


def approvers_from_json(value: Mapping[str, Any]) -> Approvers:
    """Read approvers that were checked, from a file of rules or a record."""
    escalation = value.get("escalation")
    return Approvers(
        group=value["group"],
        count=value.get("count", 1),
        self_counts=value.get("self", False),
        delegates=tuple(value.get("delegates", ())),
        escalation=None if escalation is None else Escalation(group=escalation["group"], after=escalation["after"]),
    )
