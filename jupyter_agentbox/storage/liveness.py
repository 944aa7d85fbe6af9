"""What a process knows of others from their heartbeats, so that it can tell one that has ended from one that is quiet.

After a new connection to a remote database nobody counts as gone for a while. An idle process closes its connection, so
it would never find out. Therefore it stays connected while it *watches* a process: one that somebody asked about, that
owns something, and that has written no new heartbeat since. What it finds out is valid until there is a new heartbeat.
"""

from __future__ import annotations

#: Stands for the last sign of life of a process that gave none, or whose row was removed.
SeenAt = int | None


class Liveness:
    """Which other processes have written heartbeats, and which are gone."""

    def __init__(self) -> None:
        self._last: dict[str, SeenAt] = {}
        self._gone: dict[str, SeenAt] = {}
        self._watched: set[str] = set()

    @property
    def watched(self) -> frozenset[str]:
        """The processes that may be gone."""
        return frozenset(self._watched)

    def see(self, owner: str, seen_at: SeenAt) -> None:
        """Note the last heartbeat of a process, and watch the process unless the heartbeat is new."""
        if self._last.get(owner, seen_at) == seen_at:
            self._watched.add(owner)
        else:
            self._watched.discard(owner)
        self._last[owner] = seen_at

    def find_gone(self, owner: str, seen_at: SeenAt) -> None:
        """Consider a process gone until its next heartbeat, and stop watching it."""
        self._gone[owner] = seen_at
        self._watched.discard(owner)

    def is_found_gone(self, owner: str, seen_at: SeenAt) -> bool:
        """Whether a process was found to be gone, and this is still its last heartbeat."""
        return owner in self._gone and self._gone[owner] == seen_at

    def forget(self, owner: str) -> None:
        """Stop watching a process."""
        self._watched.discard(owner)
