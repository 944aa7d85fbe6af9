"""The records that users' servers report to the Hub service: append-only tables with a chain for each user.

When retention removes a record, its row keeps the digest, so that the chain can still be verified. The tables are the
service's: they are created when it opens the database, and are not part of `MIGRATIONS`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, Final, TypeVar

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    RowMapping,
    Table,
    Text,
    func,
    inspect,
    select,
    text,
    tuple_,
)

from jupyter_agentbox.core.audit import GENESIS, Part
from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.pagination import microseconds
from jupyter_agentbox.core.ports import Clock
from jupyter_agentbox.core.reports import Gap, Note, Report, check_distance, news_of, ranges, row_hash
from jupyter_agentbox.exceptions import ReportRefusedError

from . import audit_chain
from .database import Database
from .group_commit import GroupCommitter, Timer, untimed
from .holds import Hold, add_hold, find_hold, holds, list_holds, may_go, release_hold
from .holds import metadata as holds_metadata
from .json_text import dump_json, text_key
from .outbox import Outbox, Outgoing, add_records, make_outbox_tables
from .service_claim import ServiceClaim

T = TypeVar("T")

_LOCK: Final = text("SELECT pg_advisory_xact_lock(72057594037929)")
#: Begins the name of the chain of what the service notes; no server's chain has a slash.
_NOTES: Final = "service/"
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY: Final = 86_400_000_000  # microseconds, as times are kept
#: The user of the service's own chain: its notes about holds on all users, and about the ends of users' chains.
SERVICE: Final = ""
#: The names of a note's fields in a record of the service, which is in another chain.
_IN_RECORDS: Final = {"chain": "reported_chain", "hub_server": "reported_server"}
#: Rows that are read, or lose their record, at once.
_STEP: Final = 500

_metadata: Final = MetaData()

#: One row for each record, and for each note of the service. `record` is NULL once retention has removed it.
reports: Final = Table(
    "agentbox_reports",
    _metadata,
    Column("tenant", Text, primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("chain", Text, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("received_at", BigInteger, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("digest", Text, nullable=False),
    Column("previous", Text, nullable=False),
    Column("hash", Text, nullable=False),
    Column("record", LargeBinary),
)
Index("agentbox_reports_chain", reports.c.chain, reports.c.sequence, unique=True)
Index("agentbox_reports_received", reports.c.received_at)

#: The chains of users' servers: whose they are, and how far they came.
chains: Final = Table(
    "agentbox_report_chains",
    _metadata,
    Column("chain", Text, primary_key=True),
    Column("tenant", Text, nullable=False),
    Column("hub_server", Text, nullable=False),
    Column("began_at", BigInteger, nullable=False),
    Column("last", BigInteger, nullable=False),
    Column("records", BigInteger, nullable=False),
    Column("has_ended", Integer, nullable=False),
)
Index("agentbox_report_chains_server", chains.c.tenant, chains.c.hub_server, chains.c.began_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What happened to reported records.

    Parameters
    ----------
    accepted : int
        How many were new.
    duplicates : int
        How many were already stored with the same content.
    """

    accepted: int = 0
    duplicates: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRow:
    """A row of a user's chain.

    Parameters
    ----------
    tenant, number
        The user whose chain it is in, and its number there.
    received_at : datetime
        When it was received.
    record : bytes or None
        The record that was reported, without its secrets, or the service's own note; ``None`` if it was removed.
    digest, hash : str
        SHA-256 of the record, and the hash of the row.
    is_note : bool
        Whether it is the service's own note.
    """

    tenant: str
    number: int
    received_at: datetime
    record: bytes | None
    digest: str
    hash: str
    is_note: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportQuery:
    """Which rows to read.

    Parameters
    ----------
    tenant : str
        The user; empty for all users.
    since, until : datetime or None
        The period in which the records were made, without `until` itself.
    after : tuple of str and int
        The user and the number of the last row of the previous page.
    """

    tenant: str = ""
    since: datetime | None = None
    until: datetime | None = None
    after: tuple[str, int] = ("", 0)


class SqlReportLog:
    """Stores the records that users' servers report.

    Parameters
    ----------
    url : str
        The SQLAlchemy URL of the service's database.
    clock : Clock
        The time at which records are received.
    busy_timeout : float
        How long to wait for another process's lock, in seconds.
    service_claim : ServiceClaim or None
        The claim on the database; without it nothing is written.
    outbox : Outbox or None
        Gets each record and each note, for audit sinks.
    timer : function, optional
        As for `GroupCommitter`.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock,
        busy_timeout: float = 10.0,
        service_claim: ServiceClaim | None = None,
        outbox: Outbox | None = None,
        timer: Timer = untimed,
    ) -> None:
        self._clock = clock
        self._outbox = outbox
        database = Database(
            url, journal_mode=None, busy_timeout=busy_timeout, on_connect=self._make_tables, guard=service_claim
        )
        self._committer = GroupCommitter(database, timer=timer)
        #: The users whose chains have grown since their ends were noted; ``None`` if that is not known.
        self._grown: set[str] | None = None

    async def append(self, tenant: str, reported: Sequence[Report]) -> Taken:
        """Add all or none of a user's records; on return, they are on disk.

        Raises
        ------
        ReportRefusedError
            One is in another user's chain, or has the number of another record.
        StorageError
        """
        now = microseconds(self._clock.now())
        taken = await self._write(lambda connection: _append(connection, tenant, reported, now, self._outbox))
        if taken.accepted:
            self._has_grown([text_key(tenant)])
        return taken

    async def note_heads(self) -> None:
        """Note the ends of the chains that have grown since the last time, so that the audit chain covers them.

        A head of the audit chain that somebody keeps then proves those rows, too.

        Raises
        ------
        StorageError
        """
        before, self._grown = self._grown, set()
        now = microseconds(self._clock.now())
        try:
            grown = await self._committer.run(_all_tenants, write=False) if before is None else before
            if grown:
                await self._write(lambda connection: _note_heads(connection, grown, now, self._outbox))
        except BaseException:
            self._grown = None if before is None else self._grown | before
            raise

    async def page(self, query: ReportQuery) -> Sequence[ReportRow]:
        """Return the next rows, by user and number; none after the last one."""
        return await self._committer.run(lambda connection: _page(connection, query), write=False)

    async def gaps(self) -> Sequence[Gap]:
        """Return the missing records."""
        return await self._committer.run(lambda connection: list(gaps(connection)), write=False)

    async def remove_old(self, days: float) -> bool:
        """Remove some of the records that are so many days old and under no hold; return whether there may be more.

        Their rows stay, and the service notes in their chain what was removed.
        """
        now = microseconds(self._clock.now())
        removed = await self._write(lambda connection: _remove_old(connection, now, days, self._outbox))
        self._has_grown(removed.tenants)
        return removed.may_be_more

    async def set_hold(self, hold: Hold) -> None:
        """Store a hold, and note it in the user's chain; a hold on all users is noted in the service's own."""

        def job(connection: Connection) -> None:
            add_hold(connection, hold)
            by, at = hold.set_by, microseconds(hold.set_at)
            _note_hold(connection, Note.HOLD_SET, hold, by=by, at=at, outbox=self._outbox)

        await self._write(job)
        self._has_grown([text_key(hold.tenant)])

    async def release_hold(self, hold_id: str, *, by: str, reason: str) -> Hold | None:
        """End a hold and note that; return the hold, or ``None`` if none is in force."""
        now = microseconds(self._clock.now())

        def job(connection: Connection) -> Hold | None:
            if not release_hold(connection, hold_id, by=by, at=now, reason=reason):
                return None
            hold = find_hold(connection, hold_id)
            if hold is not None:
                _note_hold(connection, Note.HOLD_RELEASED, hold, by=by, at=now, outbox=self._outbox)
            return hold

        hold = await self._write(job)
        if hold is not None:
            self._has_grown([text_key(hold.tenant)])
        return hold

    async def holds(self) -> Sequence[Hold]:
        """Return all holds, also those that were released, the newest first."""
        return await self._committer.run(list_holds, write=False)

    async def missing(self) -> int:
        """Return how many records are missing between others."""
        found = select(func.coalesce(func.sum(chains.c.last - chains.c.records), 0))
        return int(await self._committer.run(lambda connection: connection.scalar(found) or 0, write=False))

    async def aclose(self) -> None:
        """Close the database."""
        await self._committer.aclose()

    async def _write(self, job: Callable[[Connection], T]) -> T:
        done = await self._committer.run(job, write=True)
        if self._outbox is not None:
            self._outbox.added()
        return done

    def _make_tables(self, connection: Connection) -> None:
        make_tables(connection)
        if self._outbox is not None:
            make_outbox_tables(connection)

    def _has_grown(self, tenants: Iterable[str]) -> None:
        if self._grown is not None:
            self._grown.update(tenants)


def make_tables(connection: Connection) -> None:
    """Create missing tables, in the caller's transaction."""
    if is_there(connection) and inspect(connection).has_table(holds.name):
        return
    _lock(connection)  # two services may start at once
    for tables in (_metadata, holds_metadata):
        tables.create_all(connection, checkfirst=True)


def is_there(connection: Connection) -> bool:
    """Whether the database is a Hub service's."""
    return inspect(connection).has_table(reports.name)


def notes_of(tenant: str) -> str:
    """Return the name of the chain with the service's notes about a user's records."""
    return f"{_NOTES}{tenant}"


def _lock(connection: Connection) -> None:
    """Keep others from writing here until the transaction ends. SQLite has one writer at a time anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(_LOCK)


def _note_hold(connection: Connection, note: Note, hold: Hold, *, by: str, at: int, outbox: Outbox | None) -> None:
    _lock(connection)
    tip = _Tip.of(connection, text_key(hold.tenant), at)
    tip.note(note, {"by": by, "hold": hold.to_json()})
    tip.write(connection, outbox)


def _all_tenants(connection: Connection) -> set[str]:
    return set(connection.scalars(select(reports.c.tenant).distinct()))


def _note_heads(connection: Connection, grown: set[str], now: int, outbox: Outbox | None) -> None:
    """Note the ends of these chains in the service's own, and then the end of that in the audit chain.

    The audit chain is locked last, and only for its entry: all decisions wait for that lock.
    """
    _lock(connection)
    users = sorted(grown - {SERVICE})
    own = _Tip.of(connection, SERVICE, now)
    for start in range(0, len(users), _STEP):
        heads: JsonObject = {user: [*_Tip.of(connection, user, now).at] for user in users[start : start + _STEP]}
        own.note(Note.HEADS, {"heads": heads})
    own.write(connection, outbox)
    number, last = own.at
    audit_chain.append(connection, Part.REPORTS, str(number), last)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Removed:
    """Whose records were removed, and whether there may be more."""

    tenants: Sequence[str]
    may_be_more: bool


def _remove_old(connection: Connection, now: int, days: float, outbox: Outbox | None) -> _Removed:
    _lock(connection)
    columns = reports.c
    is_old = columns.received_at < now - int(days * _DAY)
    is_record = columns.chain.in_(select(chains.c.chain))
    old = select(columns.tenant, columns.number).where(
        is_old,
        is_record,
        columns.record.is_not(None),
        may_go(connection, columns.tenant, columns.at, columns.received_at),
    )
    rows = connection.execute(old.order_by(columns.tenant, columns.number).limit(_STEP)).all()
    tenants = []
    for tenant, of_tenant in groupby(rows, key=lambda row: row.tenant):
        tenants.append(tenant)
        numbers = [row.number for row in of_tenant]
        is_one = (columns.tenant == tenant) & columns.number.in_(numbers)
        connection.execute(reports.update().where(is_one).values(record=None))
        tip = _Tip.of(connection, tenant, now)
        tip.note(Note.REMOVED, {"rows": [list(run) for run in ranges(numbers)]})
        tip.write(connection, outbox)
    return _Removed(tenants=tenants, may_be_more=len(rows) == _STEP)


def _append(connection: Connection, tenant: str, reported: Sequence[Report], now: int, outbox: Outbox | None) -> Taken:
    _lock(connection)
    taken = Taken()
    tip = _Tip.of(connection, text_key(tenant), now)
    in_order = sorted(reported, key=lambda report: (report.chain, report.sequence))
    for chain, of_chain in groupby(in_order, key=lambda report: report.chain):
        ones = list(of_chain)
        fresh = _fresh(connection, tip.tenant, chain, ones)
        taken = replace(
            taken,
            accepted=taken.accepted + len(fresh),
            duplicates=taken.duplicates + len(ones) - len(fresh),
        )
        if fresh:
            _add_to_chain(connection, tip, chain, fresh)
    tip.write(connection, outbox)
    return taken


def _fresh(connection: Connection, tenant: str, chain: str, reported: Sequence[Report]) -> Sequence[Report]:
    """Return the records that the chain does not contain."""
    owner = connection.scalar(select(chains.c.tenant).where(chains.c.chain == chain))
    if owner not in (None, tenant):
        raise ReportRefusedError("a record is of a chain of another user")
    numbers = [report.sequence for report in reported]
    has = select(reports.c.sequence, reports.c.digest).where(reports.c.chain == chain, reports.c.sequence.in_(numbers))
    known: dict[int, str] = {row.sequence: row.digest for row in connection.execute(has)}
    fresh = []
    for report in reported:
        if report.sequence not in known:
            known[report.sequence] = report.digest
            fresh.append(report)
        elif known[report.sequence] != report.digest and not _is_stored(connection, report):
            raise ReportRefusedError(f"another record {report.sequence} of its chain came before")
    return fresh


def _is_stored(connection: Connection, report: Report) -> bool:
    """Whether this record is stored already, redacted by other `secret_names`."""
    columns = reports.c
    is_its = (columns.chain == report.chain) & (columns.sequence == report.sequence)
    line = connection.scalar(select(columns.record).where(is_its))
    return line is not None and json.loads(line).get("hash") == report.seal


def _add_to_chain(connection: Connection, tip: _Tip, chain: str, fresh: Sequence[Report]) -> None:
    row = connection.execute(select(chains.c.last, chains.c.records).where(chains.c.chain == chain)).one_or_none()
    last, count = (0, 0) if row is None else (row.last, row.records)
    check_distance(fresh[-1], last)
    hub_server = fresh[0].hub_server
    for report in fresh:
        tip.add(chain, report.sequence, report.line, microseconds(report.at))
    for note, first, end in news_of(last, [report.sequence for report in fresh]):
        tip.note(note, {"chain": chain, "hub_server": hub_server, "first": first, "last": end})
    values: dict[str, Any] = {"last": max(last, fresh[-1].sequence), "records": count + len(fresh)}
    if any(report.is_last for report in fresh):
        values["has_ended"] = 1
    if row is not None:
        connection.execute(chains.update().where(chains.c.chain == chain).values(**values))
    else:
        began = {"began_at": microseconds(fresh[0].at), "tenant": tip.tenant, "hub_server": text_key(hub_server)}
        connection.execute(chains.insert().values(**{"chain": chain, "has_ended": 0, **began, **values}))


class _Tip:
    """The end of a user's chain, and what will be added to it."""

    def __init__(self, tenant: str, tip: tuple[int, str], now: int) -> None:
        self.tenant = tenant
        self._number, self._hash = tip
        self._now = now
        self._rows: list[dict[str, Any]] = []
        self._notes: dict[int, tuple[Note, JsonObject]] = {}

    @classmethod
    def of(cls, connection: Connection, tenant: str, now: int) -> _Tip:
        columns = reports.c
        last = select(columns.number, columns.hash).where(columns.tenant == tenant)
        found = connection.execute(last.order_by(columns.number.desc()).limit(1)).one_or_none()
        return cls(tenant, (0, GENESIS) if found is None else (found.number, found.hash), now)

    @property
    def at(self) -> tuple[int, str]:
        """The last row's number and hash."""
        return self._number, self._hash

    def add(self, chain: str, sequence: int, record: bytes, at: int) -> None:
        """Add a row."""
        self._number += 1
        row: dict[str, Any] = {
            "tenant": self.tenant,
            "number": self._number,
            "chain": chain,
            "sequence": sequence,
            "received_at": self._now,
            "at": at,
            "digest": hashlib.sha256(record).hexdigest(),
            "previous": self._hash,
        }
        self._hash = row_hash(**row)
        self._rows.append({**row, "hash": self._hash, "record": record})

    def note(self, note: Note, fields: JsonObject) -> None:
        """Add a note of the service."""
        said: JsonObject = {"event": note.value, "user": self.tenant, **fields}
        self.add(notes_of(self.tenant), self._number + 1, dump_json(said), self._now)
        self._notes[self._number] = note, fields

    def write(self, connection: Connection, outbox: Outbox | None) -> None:
        """Write the rows, also for audit sinks."""
        if self._rows:
            connection.execute(reports.insert(), self._rows)
            if outbox is not None:
                add_records(connection, [self._outgoing(row, outbox) for row in self._rows])

    def _outgoing(self, row: dict[str, Any], outbox: Outbox) -> Outgoing:
        """Return a row as audit sinks get it: a record as it was received, a note as a record of the service."""
        if row["number"] not in self._notes:
            return outbox.line(row["record"])
        note, fields = self._notes[row["number"]]
        said = {_IN_RECORDS.get(name, name): value for name, value in fields.items()}
        return outbox.own(note.value, {"user": self.tenant, **said, "row": row["number"], "row_hash": row["hash"]})


def gaps(connection: Connection) -> Iterator[Gap]:
    """Yield the gaps: numbers missing between others, and ends of chains after which the same server began anew."""
    if not is_there(connection):
        return
    holey = select(chains).where(chains.c.last > chains.c.records).order_by(chains.c.tenant, chains.c.began_at)
    for chain in connection.execute(holey).mappings().all():
        yield from _holes(connection, chain)
    later = chains.alias()
    is_followed = (
        select(later.c.chain)
        .where(
            later.c.tenant == chains.c.tenant,
            later.c.hub_server == chains.c.hub_server,
            later.c.began_at > chains.c.began_at,
        )
        .exists()
    )
    endless = select(chains).where(chains.c.has_ended == 0, is_followed).order_by(chains.c.tenant, chains.c.began_at)
    for chain in connection.execute(endless).mappings().all():
        yield _gap(chain, chain["last"] + 1, 0)


def _holes(connection: Connection, chain: RowMapping) -> Iterator[Gap]:
    before = func.coalesce(func.lag(reports.c.sequence).over(order_by=reports.c.sequence), 0).label("before")
    numbers = select(reports.c.sequence, before).where(reports.c.chain == chain["chain"]).subquery()
    holes = select(numbers).where(numbers.c.sequence > numbers.c.before + 1).order_by(numbers.c.sequence)
    for row in connection.execute(holes):
        yield _gap(chain, row.before + 1, row.sequence - 1)


def _gap(chain: RowMapping, first: int, last: int) -> Gap:
    return Gap(tenant=chain["tenant"], hub_server=chain["hub_server"], chain=chain["chain"], first=first, last=last)


def _page(connection: Connection, query: ReportQuery) -> Sequence[ReportRow]:
    columns = reports.c
    statement = select(reports).where(tuple_(columns.tenant, columns.number) > tuple_(*query.after))
    if query.tenant:
        statement = statement.where(columns.tenant == text_key(query.tenant))
    if query.since is not None:
        statement = statement.where(columns.at >= microseconds(query.since))
    if query.until is not None:
        statement = statement.where(columns.at < microseconds(query.until))
    rows = connection.execute(statement.order_by(columns.tenant, columns.number).limit(_STEP)).all()
    return [
        ReportRow(
            tenant=row.tenant,
            number=row.number,
            received_at=EPOCH + timedelta(microseconds=row.received_at),
            record=row.record,
            digest=row.digest,
            hash=row.hash,
            is_note=row.chain.startswith(_NOTES),
        )
        for row in rows
    ]
