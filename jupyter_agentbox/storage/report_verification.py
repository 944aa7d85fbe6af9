"""Verifies the chains of reported records from their first rows to their last."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

from sqlalchemy import Connection, func, select, tuple_

from jupyter_agentbox.core.audit import GENESIS, Head
from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.reports import Gap, Note, row_hash

from .holds import Hold, find_hold, list_holds
from .json_text import text_key
from .reports import EPOCH, SERVICE, chains, gaps, is_there, notes_of, reports

#: Rows that are read in one transaction.
_STEP: Final = 1000

Reading = Callable[[], AbstractContextManager[Connection]]
#: What the service noted of each hold: as it was set, and as it was released.
_HoldNotes: TypeAlias = dict[str, list[JsonObject]]


@dataclass(slots=True, kw_only=True)
class ReportVerification:
    """The result of verifying all reported records.

    Parameters
    ----------
    tenants : int
        The number of users with records.
    records : int
        The number of rows that are as they were accepted.
    removed : int
        How many of them have lost their record because of its age.
    broken : str
        The first error, in words; empty if there is none.
    noted_at : datetime or None
        When the service last noted the ends of the chains in the audit chain; ``None`` for never.
    gaps : sequence of Gap
        The missing records.
    """

    tenants: int = 0
    records: int = 0
    removed: int = 0
    broken: str = ""
    noted_at: datetime | None = None
    gaps: Sequence[Gap] = ()


@dataclass(slots=True)
class _Chain:
    """How far the verification of a user's chain has got."""

    tenant: str
    number: int = 0
    hash: str = GENESIS
    without: set[int] = field(default_factory=set)
    explained: set[int] = field(default_factory=set)


def verify_reports(reading: Reading, noted: Head) -> ReportVerification:
    """Verify every row of every user, and find missing ones.

    Parameters
    ----------
    reading : callable
        Returns a connection in a read transaction. Called repeatedly, so that the service can write in between.
    noted : Head
        The last row of the service's own chain that the audit chain names; number 0 if it names none.
    """
    found = ReportVerification()
    with reading() as connection:
        if not is_there(connection):
            found.broken = "the table of reports: it was removed" if noted.number else ""
            return found
        held = list_holds(connection)  # before the notes are read: each of these has one
    notes: _HoldNotes = {}
    found.broken = _broken(reading, found, noted, notes)
    with reading() as connection:
        found.broken = found.broken or _miscounted(connection) or _changed_hold(connection, held, notes)
        found.gaps = tuple(gaps(connection))
    return found


def _broken(reading: Reading, found: ReportVerification, noted: Head, notes: _HoldNotes) -> str:
    chain = _Chain(SERVICE)
    while True:
        with reading() as connection:
            place = tuple_(reports.c.tenant, reports.c.number) > tuple_(chain.tenant, chain.number)
            after = select(reports).where(place).order_by(reports.c.tenant, reports.c.number).limit(_STEP)
            rows = connection.execute(after).mappings().all()
            if not rows:
                return _unexplained(chain) or _differing(connection, {SERVICE: noted})
            for row in rows:
                if row["tenant"] != chain.tenant:
                    if problem := _unexplained(chain):
                        return problem
                    chain = _Chain(row["tenant"])
                    found.tenants += 1
                if problem := _problem(chain, dict(row)):
                    return f"row {row['number']} of {_whose(chain.tenant)}: {problem}"
                if problem := _read_note(connection, chain, dict(row), notes):
                    return problem
                if chain.tenant == SERVICE and row["number"] == noted.number:
                    found.noted_at = EPOCH + timedelta(microseconds=row["received_at"])
                found.records += 1
                found.removed += row["record"] is None


def _problem(chain: _Chain, row: dict[str, Any]) -> str:
    """Return the error in a row; empty if it follows from the previous one."""
    if row["number"] != chain.number + 1:
        return f"it does not follow from row {chain.number}: rows between them were removed"
    if row["previous"] != chain.hash:
        return "it does not follow from the row before it: one of the two was replaced or moved"
    record, sealed = row.pop("record"), row.pop("hash")
    try:
        is_sound = row_hash(**row) == sealed
    except (TypeError, ValueError):
        is_sound = False
    if not is_sound:
        return "it was changed"
    chain.number, chain.hash = row["number"], sealed
    if record is None:
        chain.without.add(row["number"])
        return ""
    if hashlib.sha256(record).hexdigest() != row["digest"]:
        return "its record was changed"
    return ""


def _read_note(connection: Connection, chain: _Chain, row: Mapping[str, Any], notes: _HoldNotes) -> str:
    """Read a note of the service; return the error in it, or in what it says of other chains, if any."""
    if row["chain"] != notes_of(chain.tenant) or row["record"] is None:
        return ""
    try:
        note = json.loads(row["record"])
        if note["event"] == Note.REMOVED.value:
            for first, last in note["rows"]:
                chain.explained.update(range(first, last + 1))
        if note["event"] in (Note.HOLD_SET.value, Note.HOLD_RELEASED.value):
            notes.setdefault(str(note["hold"]["id"]), []).append(_as_stored(note["hold"]))
        if note["event"] == Note.HEADS.value:
            heads = {str(user): Head(int(number), str(last)) for user, (number, last) in note["heads"].items()}
            return _differing(connection, heads)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return f"row {row['number']} of {_whose(chain.tenant)}: it is no note of the service"
    return ""


def _differing(connection: Connection, heads: Mapping[str, Head]) -> str:
    """Return the first row that was once the last of its chain, and is not there any more."""
    columns = reports.c
    ends = [(user, head.number) for user, head in heads.items()]
    rows = select(columns.tenant, columns.number, columns.hash).where(tuple_(columns.tenant, columns.number).in_(ends))
    present = {row.tenant: row.hash for row in connection.execute(rows)}
    for user, head in heads.items():
        if head.number and present.get(user) != head.hash:
            what = "it is another one than the service noted" if user in present else "it was removed"
            return f"row {head.number} of {_whose(user)}: {what}"
    return ""


def _changed_hold(connection: Connection, held: Sequence[Hold], notes: _HoldNotes) -> str:
    """Return the first hold that is not as it was noted, if any."""
    for hold in held:
        if hold.to_json() not in notes.get(hold.id, ()):
            of = _whose(hold.tenant) if hold.tenant else "all users"
            return f"the hold {hold.id} on records of {of}: it was changed or added, because no note says this of it"
    for id in notes:
        if find_hold(connection, id) is None:
            return f"the hold {id}: it was removed"
    return ""


def _as_stored(hold: Mapping[str, Any]) -> JsonObject:
    """Return a noted hold with its texts as the database has them."""
    return {name: text_key(value) if isinstance(value, str) else value for name, value in hold.items()}


def _unexplained(chain: _Chain) -> str:
    lost = chain.without - chain.explained
    if not lost:
        return ""
    return f"row {min(lost)} of {_whose(chain.tenant)}: its record was removed, and no row says that age was the reason"


def _whose(tenant: str) -> str:
    return f"`{tenant}`" if tenant else "the service itself"


def _miscounted(connection: Connection) -> str:
    """Return the chain of a server that has lost rows at its end; empty if none has."""
    counted = (
        select(reports.c.chain, func.count().label("records"), func.max(reports.c.sequence).label("last"))
        .where(reports.c.chain.in_(select(chains.c.chain)))
        .group_by(reports.c.chain)
        .subquery()
    )
    differs = (
        select(chains)
        .outerjoin(counted, counted.c.chain == chains.c.chain)
        .where(
            (func.coalesce(counted.c.records, 0) != chains.c.records)
            | (func.coalesce(counted.c.last, 0) != chains.c.last)
        )
    )
    row = connection.execute(differs.limit(1)).mappings().one_or_none()
    if row is None:
        return ""
    came = f"{row['records']} records came, up to number {row['last']}"
    return f"chain {row['chain']} of `{row['tenant']}`: {came}, and there are others now"
