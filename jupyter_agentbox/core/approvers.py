"""Approvers: who must approve calls that a rule asks about, if not the person whose code made the call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .calls import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Escalation:
    """A group whose members may also decide a request that has waited for some time.

    Parameters
    ----------
    group : str
        The group's name.
    after : float
        Waiting time in seconds.
    """

    group: str
    after: float

    def to_json(self) -> JsonObject:
        """Return it as in a rules file."""
        return {"group": self.group, "after": self.after}


@dataclass(frozen=True, slots=True, kw_only=True)
class Approvers:
    """A JupyterHub group of which some members must approve a call.

    Parameters
    ----------
    group : str
        The group's name.
    count : int
        How many members must approve. One rejection is enough.
    self_counts : bool
        Whether an answer of the person whose code made the call counts, if they are a member.
    delegates : tuple of str
        Groups whose members may decide instead.
    escalation : Escalation or None
        A group whose members may also decide after some time.
    break_glass : str
        A group whose members may approve alone and at once in an emergency, with a reason; empty if nobody may.
    needs_reason : bool
        Whether each answer needs a reason.
    """

    group: str
    count: int = 1
    self_counts: bool = False
    delegates: tuple[str, ...] = ()
    escalation: Escalation | None = None
    break_glass: str = ""
    needs_reason: bool = False

    def groups_after(self, waited: float) -> frozenset[str]:
        """Return the groups whose members may decide a request that has waited for this many seconds."""
        later = () if self.escalation is None or waited < self.escalation.after else (self.escalation.group,)
        return frozenset((self.group, *self.delegates, *later))

    def stricter(self, other: Approvers) -> Approvers:
        """Return what both require of the same group: whatever one of them does not permit is not permitted."""
        return Approvers(
            group=self.group,
            count=max(self.count, other.count),
            self_counts=self.self_counts and other.self_counts,
            delegates=tuple(one for one in self.delegates if one in other.delegates),
            escalation=_later(self.escalation, other.escalation),
            break_glass=self.break_glass if self.break_glass == other.break_glass else "",
            needs_reason=self.needs_reason or other.needs_reason,
        )

    def to_json(self) -> JsonObject:
        """Return it as in a rules file."""
        return {
            "group": self.group,
            "count": self.count,
            "self": self.self_counts,
            **({"delegates": list(self.delegates)} if self.delegates else {}),
            **({} if self.escalation is None else {"escalation": self.escalation.to_json()}),
            **({"break_glass": self.break_glass} if self.break_glass else {}),
            **({"reason": "required"} if self.needs_reason else {}),
        }


def _later(one: Escalation | None, other: Escalation | None) -> Escalation | None:
    """Return the later of two escalations to the same group; ``None`` if they are to different ones."""
    if one is None or other is None or one.group != other.group:
        return None
    return max(one, other, key=lambda escalation: escalation.after)


def approvers_from_json(value: Mapping[str, Any]) -> Approvers:
    """Read validated approvers from a rules file or a record."""
    escalation = value.get("escalation")
    return Approvers(
        group=value["group"],
        count=value.get("count", 1),
        self_counts=value.get("self", False),
        delegates=tuple(value.get("delegates", ())),
        escalation=None if escalation is None else Escalation(group=escalation["group"], after=escalation["after"]),
        break_glass=value.get("break_glass", ""),
        needs_reason=value.get("reason") == "required",
    )
