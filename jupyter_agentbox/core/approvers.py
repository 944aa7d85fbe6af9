"""Who has to approve what a rule asks about, where that is not the person whose code called."""

from __future__ import annotations

from dataclasses import dataclass

from .calls import JsonObject


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
    """

    group: str
    count: int = 1
    self_counts: bool = False

    def to_json(self) -> JsonObject:
        """Return it as it stands in a file of rules."""
        return {"group": self.group, "count": self.count, "self": self.self_counts}
