"""Which of the agents' threads are removed from the store, and when: by age and by number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, func, select

from .schema import summaries, threads, turns

_DAY: Final = 86_400_000_000  # microseconds, as times are kept
#: Seconds between two looks at what is kept, while turns begin.
_INTERVAL: Final = 3600.0
#: How many threads are removed in one transaction: each may have megabytes.
_STEP: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadLimits:
    """How many threads are kept, and for how long; ``None`` means no limit. A thread with a turn in progress is kept.

    Parameters
    ----------
    days : float or None
        How long a thread is kept after its last change.
    count : int or None
        How many are kept: the most recently changed ones.
    """

    days: float | None = None
    count: int | None = None


class ThreadRetention:
    """Removes threads beyond the limits.

    Parameters
    ----------
    limits : ThreadLimits
        The limits.
    """

    def __init__(self, limits: ThreadLimits) -> None:
        self._limits = limits
        self._looked_at: float | None = None

    def is_due(self, now: float) -> bool:
        """Return whether `sweep` is due, at `now` in seconds; if so, it is next due in an hour."""
        if self._limits == ThreadLimits():
            return False
        is_due = self._looked_at is None or now - self._looked_at >= _INTERVAL
        if is_due:
            self._looked_at = now
        return is_due

    def sweep(self, connection: Connection, now: int, *, is_gone: Callable[[str], bool]) -> bool:
        """Remove some of what is beyond the limits; return whether there may be more.

        Parameters
        ----------
        connection : Connection
            A connection to the database.
        now : int
            The time, in microseconds.
        is_gone : callable
            Returns whether the process with this id, which was working on turns, is gone.
        """
        owners = connection.scalars(select(turns.c.owner).where(turns.c.owner.is_not(None)).distinct()).all()
        in_progress = select(turns.c.thread_id).where(turns.c.owner.in_([one for one in owners if not is_gone(one)]))
        oldest = select(threads.c.id).where(threads.c.id.not_in(in_progress)).order_by(threads.c.updated_at)
        # A turn that begins meanwhile has locked its thread.
        oldest = oldest.with_for_update(skip_locked=True)
        ids: Sequence[str] = ()
        if self._limits.days is not None:
            is_old = threads.c.updated_at < now - int(self._limits.days * _DAY)
            ids = connection.scalars(oldest.where(is_old).limit(_STEP)).all()
        if not ids and (excess := self._excess(connection)) > 0:
            ids = connection.scalars(oldest.limit(min(_STEP, excess))).all()
        remove(connection, ids)
        return bool(ids)

    def _excess(self, connection: Connection) -> int:
        if self._limits.count is None:
            return 0
        return (connection.scalar(select(func.count()).select_from(threads)) or 0) - self._limits.count


def remove(connection: Connection, ids: Sequence[str]) -> None:
    """Remove threads, by their keys, with everything stored about their turns."""
    own = turns.c.thread_id.in_(ids)
    connection.execute(summaries.delete().where(summaries.c.id.in_(select(turns.c.id).where(own))))
    connection.execute(turns.delete().where(own))
    connection.execute(threads.delete().where(threads.c.id.in_(ids)))
