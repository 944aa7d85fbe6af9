"""What a process has seen of others by their signs of life, so that one that ended is told from one that is only quiet.

After a new connection to a remote database nobody counts as gone for a while. A process that has nothing to do closes
its connection, so that it would never know. Therefore it stays while it *watches*: whoever was asked about, owns
something, and gave no new sign since it was seen before. What a watch finds holds until there is a new sign.
"""

from __future__ import annotations

#: Stands for the last sign of life of a process that gave none, or whose row was removed.
SeenAt = int | None


class Liveness:
    """Which other processes gave signs of life, and which are gone."""

    def __init__(self) -> None:
        self._last: dict[str, SeenAt] = {}
        self._gone: dict[str, SeenAt] = {}
        self._watched: set[str] = set()

    @property
    def watched(self) -> frozenset[str]:
        """Who may be gone."""
        return frozenset(self._watched)

    def see(self, owner: str, seen_at: SeenAt) -> None:
        """Take the last sign of life of a process, and watch it unless it has given a new one."""
        if self._last.get(owner, seen_at) == seen_at:
            self._watched.add(owner)
        else:
            self._watched.discard(owner)
        self._last[owner] = seen_at

    def find_gone(self, owner: str, seen_at: SeenAt) -> None:
        """Take it that a process is gone, until it gives a new sign of life, and watch it no more."""
        self._gone[owner] = seen_at
        self._watched.discard(owner)

    def is_found_gone(self, owner: str, seen_at: SeenAt) -> bool:
        """Whether a process was found to be gone, and this is still its last sign of life."""
        return owner in self._gone and self._gone[owner] == seen_at

    def forget(self, owner: str) -> None:
        """Watch a process no more."""
        self._watched.discard(owner)
