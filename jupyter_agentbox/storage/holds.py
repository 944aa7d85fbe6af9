"""Legal holds: which records of a Hub service no retention removes, who set the hold, and why."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    MetaData,
    Table,
    Text,
    and_,
    inspect,
    not_,
    or_,
    select,
    true,
)

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.pagination import from_microseconds, microseconds
from jupyter_agentbox.core.times import json_time

from .json_text import text_key
from .schema import approvals

metadata: Final = MetaData()

#: Of whom records are held (empty for all), and of when; `until` and `released_at` are NULL where there is none.
holds: Final = Table(
    "agentbox_holds",
    metadata,
    Column("id", Text, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("since", BigInteger, nullable=False),
    Column("until", BigInteger),
    Column("reason", Text, nullable=False),
    Column("set_by", Text, nullable=False),
    Column("set_at", BigInteger, nullable=False),
    Column("released_by", Text),
    Column("released_at", BigInteger),
    Column("release_reason", Text),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A hold on records, which are not removed while it lasts.

    Parameters
    ----------
    id : str
        Its id.
    tenant : str
        The user whose records are held; empty for all users.
    since, until : datetime or None
        The period in which they were made or received, without `until` itself; ``None`` for no limit.
    reason : str
        Why they are held.
    set_by, set_at
        Who set the hold, and when.
    released_by, released_at, release_reason
        Who ended it, when and why; ``None`` and empty while it is in force.
    """

    id: str
    tenant: str
    since: datetime | None
    until: datetime | None
    reason: str
    set_by: str
    set_at: datetime
    released_by: str | None = None
    released_at: datetime | None = None
    release_reason: str = ""

    def to_json(self) -> JsonObject:
        """Return the hold as the REST API sends it."""
        return {
            "id": self.id,
            "user": self.tenant or None,
            "since": json_time(self.since),
            "until": json_time(self.until),
            "reason": self.reason,
            "set_by": self.set_by,
            "set_at": json_time(self.set_at),
            "released_by": self.released_by,
            "released_at": json_time(self.released_at),
            "release_reason": self.release_reason or None,
        }


def add_hold(connection: Connection, hold: Hold) -> None:
    """Store a new hold."""
    connection.execute(
        holds.insert().values(
            id=hold.id,
            tenant=text_key(hold.tenant),
            since=0 if hold.since is None else microseconds(hold.since),
            until=None if hold.until is None else microseconds(hold.until),
            reason=text_key(hold.reason),
            set_by=text_key(hold.set_by),
            set_at=microseconds(hold.set_at),
        )
    )


def release_hold(connection: Connection, hold_id: str, *, by: str, at: int, reason: str) -> bool:
    """End a hold; return whether it was in force."""
    is_it = and_(holds.c.id == hold_id, holds.c.released_at.is_(None))
    values = {"released_by": text_key(by), "released_at": at, "release_reason": text_key(reason)}
    return connection.execute(holds.update().where(is_it).values(**values)).rowcount == 1


def find_hold(connection: Connection, hold_id: str) -> Hold | None:
    """Return a hold; ``None`` if none has that id."""
    row = connection.execute(select(holds).where(holds.c.id == hold_id)).mappings().one_or_none()
    return None if row is None else _hold(dict(row))


def list_holds(connection: Connection) -> list[Hold]:
    """Return all holds, including released ones, newest first."""
    rows = connection.execute(select(holds).order_by(holds.c.set_at.desc(), holds.c.id)).mappings().all()
    return [_hold(dict(row)) for row in rows]


def may_go(connection: Connection, tenant: ColumnElement[Any], *times: ColumnElement[int]) -> ColumnElement[bool]:
    """Return the condition that no hold applies to a row.

    Parameters
    ----------
    connection : Connection
        A connection to the database, which may have no table of holds.
    tenant : column
        The user whose row it is.
    *times : column
        When it was made and received, in microseconds since 1970: either may be in a hold's period.
    """
    if not inspect(connection).has_table(holds.name):
        return true()
    columns = holds.c
    is_in_time = or_(
        *(and_(time >= columns.since, or_(columns.until.is_(None), time < columns.until)) for time in times)
    )
    is_its = or_(columns.tenant == "", columns.tenant == tenant)
    return not_(select(columns.id).where(columns.released_at.is_(None), is_its, is_in_time).exists())


def request_may_go(connection: Connection) -> ColumnElement[bool]:
    """Return the condition that no hold applies to a request for a central tool; its user is in the kernel's column."""
    return may_go(connection, approvals.c.kernel_id, approvals.c.created_at)


def _hold(row: dict[str, Any]) -> Hold:
    return Hold(
        id=row["id"],
        tenant=row["tenant"],
        since=from_microseconds(row["since"]) if row["since"] else None,
        until=from_microseconds(row["until"]) if row["until"] is not None else None,
        reason=row["reason"],
        set_by=row["set_by"],
        set_at=from_microseconds(row["set_at"]),
        released_by=row["released_by"],
        released_at=from_microseconds(row["released_at"]) if row["released_at"] is not None else None,
        release_reason=row["release_reason"] or "",
    )
