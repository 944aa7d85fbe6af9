"""Seals the records in a Hub service's outbox, and keeps for each audit sink how far it has come.

Stores add records without a number, so that they need not wait for each other. The reader then takes what is committed,
gives each record the next position, and seals the service's own ones into its chain. Numbered first, records of
transactions that commit in another order would be skipped by a sink that is already past them.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, bindparam, func, select

from jupyter_agentbox.core.audit_trail import TrailEnd
from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.pagination import from_microseconds, microseconds
from jupyter_agentbox.core.ports import Clock, Ids

from .database import Database
from .group_commit import GroupCommitter, Timer, untimed
from .outbox import Outgoing, add_records, make_outbox_tables, outbox, outbox_end, outbox_refused, outbox_sinks
from .service_claim import ServiceClaim

log = logging.getLogger(__name__)

#: Begins the name of the service's chain: no server's chain has a slash, so a user can report no record in it.
_OWN: Final = "service/"
#: Records that are sealed, or read for a sink, at once. Each has at most about 60 kB.
_STEP: Final = 250
#: How many records that one sink refuses are stored.
MOST_REFUSED: Final = 1000
#: How many of them are one user's, if calls wait for the sink.
MOST_REFUSED_OF_USER: Final = 100

_SEAL: Final = (
    outbox.update()
    .where(outbox.c.id == bindparam("sought"))
    .values(position=bindparam("new_position"), record=bindparam("new_record"))
)
_UNSEALED: Final = (
    select(outbox.c.id, outbox.c.is_own, outbox.c.record).where(outbox.c.position.is_(None)).order_by(outbox.c.id)
)
_SLOWEST: Final = select(func.min(outbox_sinks.c.position))
_END: Final = select(outbox_end).where(outbox_end.c.id == 1)


@dataclass(frozen=True, slots=True)
class SealedRecord:
    """A record in the form in which it is sent.

    Parameters
    ----------
    position : int
        Its place in the order of sending.
    line : bytes
        One line of JSON.
    """

    position: int
    line: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """What a sink has not accepted yet.

    Parameters
    ----------
    records : int
        The number of records.
    oldest : datetime or None
        When the oldest of them was made; ``None`` without any.
    """

    records: int = 0
    oldest: datetime | None = None


class OutboxReader:
    """Reads the outbox for audit sinks.

    Parameters
    ----------
    url : str
        The SQLAlchemy URL of the service's database.
    clock, ids
        The time at which a record is refused, and the id of a new chain.
    busy_timeout : float
        How long to wait for another process's lock, in seconds.
    service_claim : ServiceClaim or None
        The claim on the database; without it nothing is written.
    timer : function, optional
        As for `GroupCommitter`.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock,
        ids: Ids,
        busy_timeout: float = 10.0,
        service_claim: ServiceClaim | None = None,
        timer: Timer = untimed,
    ) -> None:
        self._clock = clock
        self._ids = ids
        database = Database(
            url, journal_mode=None, busy_timeout=busy_timeout, on_connect=make_outbox_tables, guard=service_claim
        )
        self._committer = GroupCommitter(database, timer=timer)
        self._refused: dict[tuple[str, int], str] = {}

    async def open(self, sinks: Sequence[str]) -> int:
        """Begin with these sinks; return how many records are dropped because only former sinks still lacked them.

        A new sink receives everything that is still there: whatever its predecessor at another address has not
        accepted, or only new records.

        Raises
        ------
        StorageError
        """
        chain = f"{_OWN}{self._ids.new()}"
        return await self._committer.run(lambda connection: _begin(connection, sinks, chain), write=True)

    async def add(self, record: Outgoing) -> None:
        """Add a record that belongs to no other change.

        Raises
        ------
        StorageError
        """
        await self._committer.run(lambda connection: add_records(connection, [record]), write=True)

    async def add_sealed(self, record: Outgoing) -> SealedRecord:
        """Add a record of the service and seal it, with all that were added before; return it.

        Raises
        ------
        StorageError
        """
        return await self._committer.run(lambda connection: _add_sealed(connection, record), write=True)

    async def seal(self) -> bool:
        """Seal some of the added records; return whether there may be more.

        Raises
        ------
        StorageError
        """
        # Durable: otherwise, after a power cut, another record could get a number that a sink has seen.
        return await self._committer.run(_seal, write=True)

    async def next(self, sink: str) -> Sequence[SealedRecord]:
        """Return the first records that a sink has not accepted.

        Raises
        ------
        StorageError
        """
        return await self._committer.run(lambda connection: _next(connection, sink), write=False)

    async def sent(self, sink: str, position: int) -> None:
        """Note that a sink has everything up to a position; remove what all sinks have.

        Raises
        ------
        StorageError
        """
        await self._committer.run(lambda connection: _sent(connection, sink, position), write=True, durable=False)

    async def set_aside(self, sink: str, record: SealedRecord, reason: str) -> bool:
        """Store a record that a sink refuses; return whether there was room for it.

        Raises
        ------
        StorageError
        """
        values = {
            "sink": sink,
            "position": record.position,
            "refused_at": microseconds(self._clock.now()),
            "reason": reason,
            "record": record.line,
        }
        return await self._committer.run(lambda connection: _set_aside(connection, values), write=True)

    async def refused_of(self, sink: str, user: str) -> int:
        """Return how many refused records of a user are stored for a sink.

        Raises
        ------
        StorageError
        """
        users = await self._committer.run(
            lambda connection: _users_of_refused(connection, sink, self._refused), write=False
        )
        return users.count(user)

    async def backlogs(self, sinks: Sequence[str]) -> Sequence[Backlog]:
        """Return what each sink has not accepted yet.

        Raises
        ------
        StorageError
        """
        return await self._committer.run(lambda connection: [_backlog(connection, sink) for sink in sinks], write=False)

    async def aclose(self) -> None:
        """Close the database."""
        await self._committer.aclose()


def _begin(connection: Connection, sinks: Sequence[str], chain: str) -> int:
    if connection.execute(_END).first() is None:
        end = TrailEnd()
        values = {"id": 1, "chain": chain, "sequence": end.sequence, "hash": end.hash, "position": 0}
        connection.execute(outbox_end.insert().values(values))
    oldest = connection.scalar(select(func.min(outbox.c.position)))
    last = connection.scalar(select(outbox_end.c.position)) or 0
    begin = last if oldest is None else oldest - 1
    known: dict[str, int] = {row.sink: row.position for row in connection.execute(select(outbox_sinks))}
    for sink in sinks:
        if sink not in known:
            known[sink] = begin
            connection.execute(outbox_sinks.insert().values(sink=sink, position=begin))
    connection.execute(outbox_sinks.delete().where(outbox_sinks.c.sink.not_in(sinks)))
    _remove_sent(connection)
    return max(0, min(known[sink] for sink in sinks) - min(known.values()))


def _add_sealed(connection: Connection, record: Outgoing) -> SealedRecord:
    values = {"made_at": record.made_at, "is_own": int(record.is_own), "record": record.record}
    added = connection.execute(outbox.insert().values(values).returning(outbox.c.id)).scalar_one()
    while _seal(connection):
        pass
    row = connection.execute(select(outbox.c.position, outbox.c.record).where(outbox.c.id == added)).one()
    return SealedRecord(row.position, row.record)


def _seal(connection: Connection) -> bool:
    rows = connection.execute(_UNSEALED.limit(_STEP)).all()
    if not rows:
        return False
    end = connection.execute(_END.with_for_update()).one()
    link, position, sealed = TrailEnd(sequence=end.sequence, hash=end.hash), end.position, []
    for row in rows:
        position += 1
        link, line = _sealed(link, row.record, end.chain) if row.is_own else (link, row.record)
        sealed.append({"sought": row.id, "new_position": position, "new_record": line})
    connection.execute(_SEAL, sealed)
    after = {"sequence": link.sequence, "hash": link.hash, "position": position}
    connection.execute(outbox_end.update().where(outbox_end.c.id == 1).values(after))
    return len(rows) == _STEP


def _sealed(link: TrailEnd, fields: bytes, chain: str) -> tuple[TrailEnd, bytes]:
    said: JsonObject = {**json.loads(fields), "chain": chain}
    try:
        return link.then(said)
    except ValueError as error:
        # Nested too deeply, for example. Without this record's values, those behind it can be sent.
        log.error("an audit record is sealed without its lists and objects: %s", error)
        flat = {name: value for name, value in said.items() if not isinstance(value, dict | list)}
        return link.then({**flat, "shortened": True})


def _next(connection: Connection, sink: str) -> Sequence[SealedRecord]:
    reached = select(outbox_sinks.c.position).where(outbox_sinks.c.sink == sink).scalar_subquery()
    columns = outbox.c
    unsent = select(columns.position, columns.record).where(columns.position > reached).order_by(columns.position)
    return [SealedRecord(row.position, row.record) for row in connection.execute(unsent.limit(_STEP))]


def _sent(connection: Connection, sink: str, position: int) -> None:
    before = connection.scalar(_SLOWEST)
    connection.execute(outbox_sinks.update().where(outbox_sinks.c.sink == sink).values(position=position))
    _remove_sent(connection, after=before or 0)


def _remove_sent(connection: Connection, *, after: int = 0) -> None:
    """Remove what all sinks have. Begin `after` a position, so as not to search among rows that were removed before."""
    is_sent = outbox.c.position.between(after + 1, connection.scalar(_SLOWEST) or 0)
    connection.execute(outbox.delete().where(is_sent))


def _set_aside(connection: Connection, values: dict[str, Any]) -> bool:
    is_its = outbox_refused.c.sink == values["sink"]
    known = set(connection.scalars(select(outbox_refused.c.position).where(is_its)))
    if values["position"] in known:  # before this process was ended and the next one started
        return True
    if len(known) >= MOST_REFUSED:
        return False
    connection.execute(outbox_refused.insert().values(values))
    return True


def _users_of_refused(connection: Connection, sink: str, known: dict[tuple[str, int], str]) -> Sequence[str]:
    """Return the user of each refused record. Those that are known need not be read again."""
    columns = outbox_refused.c
    positions = list(connection.scalars(select(columns.position).where(columns.sink == sink)))
    for position in positions:
        if (sink, position) not in known:
            is_its = (columns.sink == sink) & (columns.position == position)
            record = connection.scalar(select(columns.record).where(is_its))
            known[sink, position] = "" if record is None else user_of(record)
    return [known[sink, position] for position in positions]


def user_of(record: bytes) -> str:
    """Return the user whom a record is about, an empty string for none; all that cannot be read have the same."""
    said = _read(record)
    return "?" if said is None else str(said.get("user", ""))


def place_of(record: bytes) -> str:
    """Return in words which record it is."""
    said = _read(record)
    if said is None:
        return "one that cannot be read"
    return f"number {said.get('sequence')} of the chain {said.get('chain')!r}, hash {said.get('hash')}"


def sequence_of(record: SealedRecord) -> int:
    """Return the number of one of the service's own records in its chain."""
    return int(json.loads(record.line)["sequence"])


def _read(record: bytes) -> JsonObject | None:
    try:
        said: JsonObject = json.loads(record)
    except (ValueError, RecursionError):  # nested almost as deeply as the service that received it could read
        return None
    return said


def _backlog(connection: Connection, sink: str) -> Backlog:
    reached = connection.scalar(select(outbox_sinks.c.position).where(outbox_sinks.c.sink == sink))
    last = connection.scalar(select(outbox_end.c.position))
    if reached is None or last is None:  # not opened yet
        return Backlog()
    columns = outbox.c
    is_unsealed = columns.position.is_(None)
    unsealed = connection.scalar(select(func.count()).select_from(outbox).where(is_unsealed)) or 0
    first = select(columns.made_at).where(columns.position > reached).order_by(columns.position).limit(1)
    oldest = connection.scalar(first)
    if oldest is None and unsealed:
        oldest = connection.scalar(select(columns.made_at).where(is_unsealed).order_by(columns.id).limit(1))
    return Backlog(records=last - reached + unsealed, oldest=None if oldest is None else from_microseconds(oldest))
