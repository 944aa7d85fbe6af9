"""The audit chain in the database: digests of stored requests, and adding and removing entries.

An entry is written in the transaction of its change. All servers that share a database write one chain: SQLite has a
single writer, and on PostgreSQL they wait for each other from the first entry to the commit.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from sqlalchemy import Connection, exists, func, select, text

from jupyter_agentbox.core.approvals import ApprovalRequest, Status
from jupyter_agentbox.core.audit import Entry, Head, Part, digest_of

from .rows import OUTCOME
from .schema import approvals, audit
from .statements import execute

log = logging.getLogger(__name__)

#: The immutable columns of a request that the chain covers. Of the others, `owner` must be empty once it is closed.
ASKED: Final = ("id", "created_at", "kernel_id", "notebook_path", "tool_digest", "server", "tool", "thread_id")
_ANSWERED: Final = ("status", "answer", "via", "reviewer", "reviewer_name")

_HEAD: Final = "SELECT number, hash FROM agentbox_audit ORDER BY number DESC LIMIT 1"
_LOCK: Final = "SELECT pg_advisory_xact_lock(72057594037928)"
_ADD: Final = audit.insert()
_NAMES: Final = tuple(column.name for column in audit.c)
#: As text, so that tampered values are returned unchanged, whatever their type.
_ENTRIES: Final = text(
    f"""
    SELECT {", ".join(f"entry.{name} AS entry_{name}" for name in _NAMES)}, record.*
    FROM agentbox_audit AS entry LEFT JOIN agentbox_approvals AS record ON record.id = entry.request_id
    WHERE entry.number > :number ORDER BY entry.number LIMIT :limit
    """  # noqa: S608  # the names are our own
)

#: The unconverted columns of a stored request.
Record: TypeAlias = Mapping[str, Any]

#: How many entries are removed per transaction.
_STEP: Final = 1000
#: How many entries of deleted requests are kept, in addition to three for each existing one.
_SPARE: Final = 10_000


def asked_digest(row: Mapping[str, Any]) -> str:
    """Return the digest of the immutable part of a request."""
    return digest_of([*(row[name] for name in ASKED), _sha256(row["request"])])


def record_digest(asked: str, part: Part, row: Mapping[str, Any]) -> str:
    """Return the digest of a stored request as decided or as ended.

    Parameters
    ----------
    asked : str
        `asked_digest` of the row.
    part : Part
        `DECIDED` or `ENDED`.
    row : mapping
        The mutable columns.
    """
    answered = [asked, part.value, *(row[name] for name in _ANSWERED)]
    if part is Part.DECIDED:
        return digest_of([*answered, _sha256(row["progress"].rpartition(OUTCOME)[0])])
    return digest_of([*answered, row["outcome_state"], _sha256(row["progress"])])


def part_of(request: ApprovalRequest) -> Part | None:
    """Return the kind of entry for a request in this state; ``None`` while it is pending."""
    if request.status is Status.PENDING:
        return None
    return Part.DECIDED if request.is_open else Part.ENDED


def append(connection: Connection, part: Part, request_id: str, digest: str) -> None:
    """Add an entry, in the transaction of its change."""
    execute(connection, _ADD, _row(head(connection).then(part, request_id, digest)))


def append_all(connection: Connection, entries: Sequence[tuple[Part, str, str]]) -> None:
    """Add entries, given as part, request id and digest."""
    if not entries:
        return
    last = head(connection)
    rows = []
    for part, request_id, digest in entries:
        entry = last.then(part, request_id, digest)
        rows.append(_row(entry))
        last = Head(entry.number, entry.hash)
    connection.execute(_ADD, rows)


def head(connection: Connection) -> Head:
    """Return the chain's last entry, locking the chain until the transaction ends."""
    if connection.dialect.name == "sqlite":
        driver: Any = connection.connection.driver_connection
        found = driver.execute(_HEAD).fetchone()
    else:
        connection.execute(text(_LOCK))
        found = connection.execute(text(_HEAD)).one_or_none()
    return Head(*found) if found is not None else Head()


def lock(connection: Connection) -> None:
    """Lock the chain until the transaction ends; call this before locking rows that others may need."""
    if connection.dialect.name != "sqlite":
        connection.execute(text(_LOCK))


def trim(connection: Connection) -> bool:
    """Remove the first entries if most are of deleted requests; return whether there may be more.

    Entries of existing requests are added again at the end. A checkpoint names the last removed entry. Broken entries
    are left for somebody to see.
    """
    size = select(func.max(audit.c.number) - func.min(audit.c.number)).scalar_subquery()
    kept = select(func.count()).select_from(approvals).scalar_subquery()
    if not connection.scalar(select(size > 3 * kept + _SPARE)):
        return False
    lock(connection)
    return _trim(connection, entries_after(connection, 0, limit=_STEP))


def entries_after(connection: Connection, number: int, *, limit: int) -> Sequence[tuple[Entry, Record | None]]:
    """Return the entries after a number, in order, with the stored requests that they refer to."""
    rows = connection.execute(_ENTRIES, {"number": number, "limit": limit}).mappings().all()
    return [(_entry(dict(row)), dict(row) if row["id"] is not None else None) for row in rows]


def says(connection: Connection, request_id: str, part: Part) -> bool:
    """Whether there is an entry of the chain that says this of a request."""
    found = exists().where(audit.c.request_id == request_id, audit.c.part == part.value, audit.c.number > 0)
    return bool(connection.scalar(select(found)))


def _trim(connection: Connection, entries: Sequence[tuple[Entry, Record | None]]) -> bool:
    carried: list[tuple[Part, str, str]] = []
    noted: tuple[Part, str, str] | None = None
    previous: str | None = None
    for entry, record in entries:
        if not entry.is_sound or previous not in (None, entry.previous) or not _may_go(connection, entry, record):
            log.warning("the audit chain is broken at entry %d: see `jupyter agentbox audit verify`", entry.number)
            return False
        previous = entry.hash
        if record is not None:
            carried.append((Part(entry.part), entry.request_id, entry.digest))
        elif entry.part == Part.REPORTS.value:
            noted = (Part.REPORTS, entry.request_id, entry.digest)  # covers what those before it cover
    if noted is not None:
        carried.append(noted)
    (first, _), (last, _) = entries[0], entries[-1]
    connection.execute(audit.delete().where(audit.c.number.between(first.number, last.number)))
    append_all(connection, [*carried, (Part.CHECKPOINT, str(last.number), last.hash)])
    return True


def _may_go(connection: Connection, entry: Entry, record: Record | None) -> bool:
    if entry.part in (Part.DECIDED.value, Part.ENDED.value):
        return says(connection, entry.request_id, Part.REMOVED) if record is None else matches(entry, record)
    return True


def matches(entry: Entry, record: Record) -> bool:
    """Whether a stored request matches an entry: as it was decided, or as it ended."""
    try:
        return record_digest(asked_digest(record), Part(entry.part), record) == entry.digest
    except (TypeError, ValueError, AttributeError):  # not anything that was ever written
        return False


def _entry(row: Mapping[str, Any]) -> Entry:
    return Entry(**{name: row[f"entry_{name}"] for name in _NAMES})


def _row(entry: Entry) -> dict[str, Any]:
    return {
        "number": entry.number,
        "part": entry.part,
        "request_id": entry.request_id,
        "digest": entry.digest,
        "previous": entry.previous,
        "hash": entry.hash,
    }


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
