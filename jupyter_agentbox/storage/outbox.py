"""What a Hub service's audit sinks have not received yet: tables that its stores write in their own transactions.

A change and the record of it are committed together, so neither exists without the other, whatever ends the process.
`outbox_reader` numbers and sends the records afterwards. The tables are the service's: they are created when it opens
the database, and are not part of `MIGRATIONS`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    bindparam,
    inspect,
    text,
)

from jupyter_agentbox.core.approvals import ApprovalRequest, OutcomeState, Status
from jupyter_agentbox.core.audit_trail import event_of, first_event_of, has_long_arguments, record_time
from jupyter_agentbox.core.calls import JsonObject, JsonValue
from jupyter_agentbox.core.pagination import microseconds
from jupyter_agentbox.core.ports import Clock

from .statements import execute

_LOCK: Final = text("SELECT pg_advisory_xact_lock(72057594037932)")

_metadata: Final = MetaData()

#: Records on their way. `position` is NULL until the record has its final form and its place in the order of sending.
#: `is_own` distinguishes the service's own records, which are yet to be sealed, from lines that are sent as they are.
outbox: Final = Table(
    "agentbox_outbox",
    _metadata,
    Column("id", BigInteger().with_variant(Integer(), "sqlite"), Identity(), primary_key=True),
    Column("position", BigInteger),
    Column("made_at", BigInteger, nullable=False),
    Column("is_own", Integer, nullable=False),
    Column("record", LargeBinary, nullable=False),
)
Index("agentbox_outbox_position", outbox.c.position, outbox.c.id)

#: One row: the end of the service's chain, and the last position.
outbox_end: Final = Table(
    "agentbox_outbox_end",
    _metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("chain", Text, nullable=False),
    Column("sequence", BigInteger, nullable=False),
    Column("hash", Text, nullable=False),
    Column("position", BigInteger, nullable=False),
)

#: Up to which position each sink has accepted records. The key is a hash, because an address may contain a secret.
outbox_sinks: Final = Table(
    "agentbox_outbox_sinks",
    _metadata,
    Column("sink", Text, primary_key=True),
    Column("position", BigInteger, nullable=False),
)

#: Records that a sink refuses.
outbox_refused: Final = Table(
    "agentbox_outbox_refused",
    _metadata,
    Column("sink", Text, primary_key=True),
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("refused_at", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    Column("record", LargeBinary, nullable=False),
)

#: A role's rights to these tables, by their names.
RIGHTS: Final = {
    outbox.name: "SELECT, INSERT, UPDATE, DELETE",
    outbox_end.name: "SELECT, INSERT, UPDATE",
    outbox_sinks.name: "SELECT, INSERT, UPDATE, DELETE",
    outbox_refused.name: "SELECT, INSERT",
}
#: Without `RETURNING`, which the database would add for the id.
_ADD: Final = outbox.insert().values({name: bindparam(name) for name in ("made_at", "is_own", "record")}).inline()
#: White space between the tokens of JSON that some receivers take for the end of a line.
_BETWEEN_TOKENS: Final = b"\r\t"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A record to be sent.

    Parameters
    ----------
    made_at : int
        When, in microseconds since 1970.
    record : bytes
        The fields of a record of the service, which is sealed later, or a line to be sent as it is.
    is_own : bool
        Which of the two.
    """

    made_at: int
    record: bytes
    is_own: bool


class Outbox:
    """Makes the records of what stores change, and adds them in the stores' transactions.

    Parameters
    ----------
    clock : Clock
        Source of the time.
    whose : mapping
        Fields of every record of the service.
    fields : callable
        Returns the fields of a record about a request, without secrets.
    """

    def __init__(
        self, *, clock: Clock, whose: Mapping[str, JsonValue], fields: Callable[[ApprovalRequest], JsonObject]
    ) -> None:
        self._clock = clock
        self._whose = whose
        self._fields = fields
        self._on_added: Callable[[], None] = lambda: None
        self._announced: list[ApprovalRequest] = []

    def follow(self, on_added: Callable[[], None]) -> None:
        """Have a function called after each commit that added records."""
        self._on_added = on_added

    def added(self) -> None:
        """Say that added records are committed."""
        self._on_added()

    @contextmanager
    def announced(self, request: ApprovalRequest) -> Iterator[None]:
        """Have the stores add no record of a request as it is now, because it was added before."""
        self._announced.append(request)
        try:
            yield
        finally:
            self._announced = [one for one in self._announced if one is not request]

    def is_announced(self, request: ApprovalRequest) -> bool:
        """Whether the record of a request as it is now was added before."""
        return any(one is request for one in self._announced)

    async def of_new(self, request: ApprovalRequest) -> Outgoing:
        """Return the record of a new request."""
        return await self._of_request(first_event_of(request).value, request)

    async def of_change(self, request: ApprovalRequest, before: Status, outcome: OutcomeState | None) -> Outgoing:
        """Return the record of a request whose previous status and outcome state are given."""
        return await self._of_request(event_of(request, before, outcome).value, request)

    def own(self, event: str, fields: Mapping[str, JsonValue]) -> Outgoing:
        """Return a record of the service, given its fields."""
        now = self._clock.now()
        record = {**self._whose, **fields, "event": event, "time": record_time(now)}
        # Escaped: what is read back is sealed and sent, so a pair of lone surrogates may become one character.
        data = json.dumps(record, separators=(",", ":"), allow_nan=False).encode()
        return Outgoing(made_at=microseconds(now), record=data, is_own=True)

    def line(self, line: bytes) -> Outgoing:
        """Return a record that was sealed by a user's server and is sent as it was received."""
        # Within strings, JSON has these characters only escaped.
        data = line.translate(None, _BETWEEN_TOKENS)
        return Outgoing(made_at=microseconds(self._clock.now()), record=data, is_own=False)

    async def _of_request(self, event: str, request: ApprovalRequest) -> Outgoing:
        if has_long_arguments(request):
            # In a thread: reading millions of values would block the loop.
            return self.own(event, await asyncio.to_thread(self._fields, request))
        return self.own(event, self._fields(request))


def add_records(connection: Connection, records: Iterable[Outgoing]) -> None:
    """Add records in the caller's transaction."""
    for one in records:
        execute(connection, _ADD, {"made_at": one.made_at, "is_own": int(one.is_own), "record": one.record})


def make_outbox_tables(connection: Connection) -> None:
    """Create missing tables, in the caller's transaction."""
    if inspect(connection).has_table(outbox_refused.name):
        return
    if connection.dialect.name == "postgresql":  # two services may start at once
        connection.execute(_LOCK)
    _metadata.create_all(connection, checkfirst=True)
