"""What is removed from the store, and when: by age and by size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, func, not_, select, true

from jupyter_agentbox.core.approvals import Status
from jupyter_agentbox.core.audit import Part

from . import audit_chain
from .holds import request_may_go
from .rows import DECIDED
from .schema import approvals, arguments

_DAY: Final = 86_400_000_000  # microseconds, as times are kept
#: Seconds between two looks at what is kept, while requests come.
_INTERVAL: Final = 3600.0
#: Seconds from the first request to the first look.
_FIRST: Final = 60.0
#: A look is due after this part of the smallest limit was written.
_PART: Final = 0.05
#: How many requests are removed in one transaction.
_STEP: Final = 1000
#: Pages that SQLite gives back to the file system in one transaction.
_PAGES: Final = 5_000
#: What ended before anybody or anything decided.
_UNDECIDED: Final = (Status.CANCELLED.value, Status.EXPIRED.value, Status.ORPHANED.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionLimits:
    """How many ended requests are kept, and for how long; ``None`` means no limit.

    Parameters
    ----------
    days : float or None
        Their maximum age.
    bytes : int or None
        Their approximate maximum size in the database. What code can create without limit is removed first, so that it
        displaces no person's decision: requests that it withdrew, then those that a rule denied, then those that a rule
        allowed; the oldest first.
    long_arguments : int or None
        The maximum size of long arguments, in bytes. Of removed ones, the digest and the beginning stay. Those of calls
        that a rule allowed are removed first.
    """

    days: float | None = None
    bytes: int | None = 1_000_000_000
    long_arguments: int | None = 100_000_000


class Retention:
    """Removes requests beyond the limits.

    Parameters
    ----------
    limits : RetentionLimits
        The limits.
    """

    def __init__(self, limits: RetentionLimits) -> None:
        self._limits = limits
        self._written = 0
        self._looked_at: float | None = None
        sizes = [size for size in (limits.bytes, limits.long_arguments) if size is not None]
        self._step = _PART * min(sizes, default=0)

    def is_due(self, size: int, now: float) -> bool:
        """Note that so many bytes were written, at `now` in seconds; return whether `sweep` is due."""
        self._written += size
        if self._looked_at is None:
            self._looked_at = now - _INTERVAL + _FIRST
        is_due = now - self._looked_at >= _INTERVAL or (self._step > 0 and self._written >= self._step)
        if is_due:
            self._written, self._looked_at = 0, now
        return is_due

    def sweep(self, connection: Connection, now: int) -> bool:
        """Remove some of what is beyond the limits, at `now` in microseconds; return whether there is more."""
        audit_chain.lock(connection)
        removed = (
            self._remove_arguments(connection)
            or self._remove_old(connection, now)
            or self._remove_most(connection)
            or audit_chain.trim(connection)
        )
        return _give_back(connection) or removed

    def _remove_arguments(self, connection: Connection) -> bool:
        if self._limits.long_arguments is None:
            return False
        columns = arguments.c
        kept = connection.scalar(select(func.sum(columns.size)).where(columns.closed_at.is_not(None))) or 0
        excess = int(kept) - self._limits.long_arguments
        if excess <= 0:
            return False
        closed = select(columns.id, columns.size).where(columns.closed_at.is_not(None), _is_no_held_one(connection))
        oldest = closed.order_by(columns.closed_at).limit(_STEP)
        undecided = oldest.join(approvals, approvals.c.id == columns.id).where(not_(_is_decided(connection)))
        rows = connection.execute(undecided).all() or connection.execute(oldest).all()
        chosen = _chosen(rows, excess)
        connection.execute(arguments.delete().where(columns.id.in_(chosen)))
        audit_chain.append_all(connection, [(Part.SHORTENED, id, "") for id in chosen])
        return True

    def _remove_old(self, connection: Connection, now: int) -> bool:
        if self._limits.days is None:
            return False
        columns = approvals.c
        limit = now - int(self._limits.days * _DAY)
        is_old = (columns.created_at < limit) & request_may_go(connection)
        old = select(columns.id).where(columns.owner.is_(None), is_old).limit(_STEP)
        return self._remove(connection, connection.scalars(old).all())

    def _remove_most(self, connection: Connection) -> bool:
        if self._limits.bytes is None:
            return False
        columns = approvals.c
        size = func.length(columns.request) + func.length(columns.progress)
        excess = int(connection.scalar(select(func.sum(size))) or 0) - self._limits.bytes
        if excess <= 0:
            return False
        closed = select(columns.id, size).where(columns.owner.is_(None), request_may_go(connection))
        oldest = closed.order_by(columns.created_at).limit(_STEP)
        found = (connection.execute(oldest.where(kind)).all() for kind in _first_to_go(connection))
        return self._remove(connection, _chosen(next(filter(None, found), []), excess))

    @staticmethod
    def _remove(connection: Connection, ids: Sequence[str]) -> bool:
        if ids:
            connection.execute(arguments.delete().where(arguments.c.id.in_(ids)))
            connection.execute(approvals.delete().where(approvals.c.id.in_(ids)))
            audit_chain.append_all(connection, [(Part.REMOVED, id, "") for id in ids])
        return bool(ids)


def _is_no_held_one(connection: Connection) -> ColumnElement[bool]:
    """Return the condition that long arguments belong to no request under a hold."""
    is_held = (approvals.c.id == arguments.c.id) & not_(request_may_go(connection))
    return not_(select(approvals.c.id).where(is_held).exists())


def _first_to_go(connection: Connection) -> Iterator[ColumnElement[bool]]:
    """Yield the kinds of requests in the order in which they are removed."""
    is_undecided = not_(_is_decided(connection))
    yield approvals.c.status.in_(_UNDECIDED)
    yield (approvals.c.status == Status.REJECTED.value) & is_undecided
    yield is_undecided
    yield true()


def _is_decided(connection: Connection) -> ColumnElement[bool]:
    """Return the condition that a request was answered, and not only by a rule."""
    find = func.instr if connection.dialect.name == "sqlite" else func.pg_catalog.position
    found: ColumnElement[bool] = find(approvals.c.progress, DECIDED) > 0
    return found


def _chosen(rows: Sequence[Any], excess: int) -> list[str]:
    """Return the ids of the first rows, given as `(id, size)`, that together reach a size."""
    chosen: list[str] = []
    for id, size in rows:
        if excess <= 0:
            break
        chosen.append(id)
        excess -= size
    return chosen


def _give_back(connection: Connection) -> bool:
    """Return some of SQLite's empty pages to the file system; return whether there are more."""
    if connection.dialect.name != "sqlite":
        return False
    driver: Any = connection.connection.driver_connection
    (free,) = driver.execute("PRAGMA freelist_count").fetchone()
    for _ in range(min(free, _PAGES)):
        driver.execute("PRAGMA incremental_vacuum(1)")  # Python's driver runs such a statement for one page only
    (left,) = driver.execute("PRAGMA freelist_count").fetchone()
    return bool(0 < left < free)  # a database of before keeps its pages, and uses them again
