"""Verifies the audit chain from its first entry to its last."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from sqlalchemy import ColumnElement, Connection, exists, func, select, text

from jupyter_agentbox.core.approvals import Status
from jupyter_agentbox.core.audit import Entry, Head, Part

from .audit_chain import Record, entries_after, matches, says
from .rows import OMITTED, arguments_digest
from .schema import approvals, audit, tools

#: How many entries are read per transaction: servers that share the database can write in between.
_STEP: Final = 1000
_PARTS: Final = frozenset(part.value for part in Part)
#: The number of a note, as the entry about it has it.
_NUMBER: Final = re.compile("[0-9]{1,18}")
_VERBS: Final = {Part.DECIDED.value: "it was decided", Part.ENDED.value: "it ended"}
#: As text, so that tampered values are returned unchanged, whatever their type.
_ARGUMENTS: Final = text("SELECT arguments FROM agentbox_arguments WHERE id = :id")
_TOOLS: Final = text("SELECT digest, description FROM agentbox_tools")

#: Returns a connection in a read transaction.
Reading = Callable[[], AbstractContextManager[Connection]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A record that does not match the chain, or an entry that does not follow from the previous one.

    Parameters
    ----------
    number : int or None
        Number of the entry, or of the missing entry; ``None`` for a record without an entry.
    what : str
        What is wrong, for people.
    request_id : str
        The request concerned; empty if unknown.
    about : str
        Its tool and time; empty if unknown.
    """

    number: int | None
    what: str
    request_id: str = ""
    about: str = ""

    def __str__(self) -> str:
        place = f"entry {self.number}" if self.number is not None else "no entry"
        of = f", request `{self.request_id}`" if self.request_id else ""
        about = f" ({self.about})" if self.about else ""
        return f"{place}{of}{about}: {self.what}"


@dataclass(slots=True, kw_only=True)
class Verification:
    """The result of verifying the chain.

    Parameters
    ----------
    head : Head
        The last entry that was read.
    first : int
        Number of the first remaining entry.
    records : int
        Number of verified entries about the decision or end of a request.
    removed : int
        Number of requests removed by age or size, according to entries.
    removed_since : int
        How many of them were removed after the given head.
    since : int or None
        Number of entries after the given head; ``None`` if none was given.
    reports : Head
        The last row of a Hub service's own chain of reports that entries name; see `verify_reports`.
    broken : Broken or None
        The first error found.
    """

    head: Head = field(default_factory=Head)
    first: int = 1
    records: int = 0
    removed: int = 0
    removed_since: int = 0
    since: int | None = None
    reports: Head = field(default_factory=Head)
    broken: Broken | None = None


def verify(reading: Reading, known: Head | None = None) -> Verification:
    """Verify all entries, stored requests and tool descriptions.

    Parameters
    ----------
    reading : callable
        Returns a connection in a read transaction. Called repeatedly, so that servers can write in between.
    known : Head, optional
        The head from an earlier verification, stored elsewhere, which the chain must contain.
    """
    found = Verification()
    found.broken = _verify_chain(reading, found, known) or _verify_rest(reading)
    if found.broken is None and known is not None and found.since is None:
        found.broken = _missing(known, found)
    return found


def _verify_chain(reading: Reading, found: Verification, known: Head | None) -> Broken | None:
    if known is not None and known.number == 0:
        found.since = 0
    is_first = True
    while True:
        with reading() as connection:
            entries = entries_after(connection, found.head.number, limit=_STEP)
            if not entries:
                return None
            for entry, record in entries:
                broken = _link(connection, found, entry, is_first=is_first) or _record(connection, entry, record)
                if broken is not None:
                    return broken
                is_first = False
                _count(found, entry, known)


def _link(connection: Connection, found: Verification, entry: Entry, *, is_first: bool) -> Broken | None:
    """Return the error in how an entry follows from the previous one, if any."""
    follows = entry.number == found.head.number + 1 and entry.previous == found.head.hash
    if not follows and _is_trimmed(connection, entry):
        follows = True  # also after the first step: a server may meanwhile have trimmed the chain
        if is_first:
            found.first = entry.number
    if not follows and entry.number != found.head.number + 1:
        missing = found.head.number + 1
        return Broken(number=missing, what=f"it is missing; the next entry there is has the number {entry.number}")
    if not follows:
        return Broken(
            number=entry.number,
            what="it does not follow from the entry before it: one of the two was replaced or moved",
            request_id=entry.request_id,
        )
    is_known = entry.part in _PARTS and (entry.part != Part.REPORTS.value or _NUMBER.fullmatch(entry.request_id))
    if not entry.is_sound or not is_known:
        return Broken(number=entry.number, what="the entry itself was changed", request_id=entry.request_id)
    return None


def _is_trimmed(connection: Connection, entry: Entry) -> bool:
    """Whether the entry is the first, and a later checkpoint names its predecessor."""
    if connection.scalar(select(func.min(audit.c.number))) != entry.number:
        return False
    checkpoint = exists().where(
        audit.c.part == Part.CHECKPOINT.value,
        audit.c.request_id == str(entry.number - 1),
        audit.c.digest == entry.previous,
    )
    return bool(connection.scalar(select(checkpoint)))


def _record(connection: Connection, entry: Entry, record: Record | None) -> Broken | None:
    """Return the error in an entry's record, if any."""
    if entry.part not in _VERBS:
        return None
    if record is None:
        if says(connection, entry.request_id, Part.REMOVED):
            return None
        what = "its record was removed, and no entry says that age or size was the reason"
        return Broken(number=entry.number, what=what, request_id=entry.request_id)
    what = _change(connection, entry, record)
    return Broken(number=entry.number, what=what, request_id=entry.request_id, about=_about(record)) if what else None


def _change(connection: Connection, entry: Entry, record: Record) -> str:
    """Return how a record changed since its entry was written; empty if it did not."""
    has_ended = entry.part == Part.ENDED.value
    if not matches(entry, record) or (has_ended and record["owner"] is not None):
        return f"its record was changed after {_VERBS[entry.part]}"
    return _arguments(connection, record) if has_ended and OMITTED in record["request"] else ""


def _arguments(connection: Connection, record: Record) -> str:
    """Return the error in an ended request's long arguments; empty if there is none."""
    digest = arguments_digest(record["request"])
    found = connection.execute(_ARGUMENTS, {"id": record["id"]}).one_or_none()
    if found is not None:
        is_same = digest is None or (isinstance(found[0], bytes) and hashlib.sha256(found[0]).hexdigest() == digest)
        return "" if is_same else "its long arguments were changed"
    is_kept = record["status"] == Status.APPROVED.value or record["answer"] is not None
    if digest is None or not is_kept or says(connection, record["id"], Part.SHORTENED):
        return ""
    return "its long arguments were removed, and no entry says that size was the reason"


def _count(found: Verification, entry: Entry, known: Head | None) -> None:
    found.head = Head(entry.number, entry.hash)
    if entry.part in _VERBS:
        found.records += 1
    if entry.part == Part.REMOVED.value:
        found.removed += 1
    if entry.part == Part.REPORTS.value and int(entry.request_id) > found.reports.number:
        found.reports = Head(int(entry.request_id), entry.digest)
    if found.since is not None:
        found.since += 1
        found.removed_since += entry.part == Part.REMOVED.value
    if known == found.head:
        found.since = 0


def _verify_rest(reading: Reading) -> Broken | None:
    """Return an entry outside of the chain, a record that no entry is about, or a changed tool description."""
    with reading() as connection:
        outside = _outside(connection)
        return outside or next(_unrecorded(connection), None) or next(_changed_tools(connection), None)


def _outside(connection: Connection) -> Broken | None:
    """Return an entry numbered below 1, which is not linked to the chain and so proves nothing."""
    first = connection.execute(select(audit.c.number, audit.c.request_id).order_by(audit.c.number).limit(1)).first()
    if first is None or first.number > 0:
        return None
    what = "it is not part of the chain, whose first entry has the number 1: it was added or moved by hand"
    return Broken(number=first.number, what=what, request_id=first.request_id)


def _unrecorded(connection: Connection) -> Iterator[Broken]:
    is_closed = approvals.c.owner.is_(None)
    is_running = ~is_closed & (approvals.c.status != Status.PENDING.value)
    for part, kind in ((Part.ENDED, is_closed), (Part.DECIDED, is_running)):
        recorded = select(audit.c.request_id).where(audit.c.part == part.value)
        what = "no entry records it: it was added by hand, or the last entries were removed"
        yield from _first(connection, kind & approvals.c.id.not_in(recorded), what)


def _changed_tools(connection: Connection) -> Iterator[Broken]:
    for digest, description in connection.execute(_TOOLS):
        if not isinstance(description, bytes) or hashlib.sha256(description).hexdigest() != digest:
            yield Broken(number=None, what=f"the description of a tool was changed (SHA-256 {digest!s:.12}…)")
    is_lost = approvals.c.tool_digest.not_in(select(tools.c.digest))
    yield from _first(connection, is_lost, "the description of its tool is missing")


def _first(connection: Connection, kind: ColumnElement[bool], what: str) -> Iterator[Broken]:
    columns = approvals.c
    statement = select(columns.id, columns.created_at, columns.server, columns.tool).where(kind)
    for row in connection.execute(statement.order_by(columns.created_at).limit(1)).mappings():
        yield Broken(number=None, what=what, request_id=row["id"], about=_about(dict(row)))


def _about(record: Record) -> str:
    name = f"{record['server']}.{record['tool']}"
    try:
        at = datetime.fromtimestamp(record["created_at"] / 1_000_000, UTC)
    except (OverflowError, TypeError, ValueError, OSError):
        return name
    return f"{name}, {at:%Y-%m-%d %H:%M:%S} UTC"


def _missing(known: Head, found: Verification) -> Broken:
    if known.number < found.first:
        what = f"it is older than the first entry that is kept ({found.first}): keep the present head and check that"
    elif known.number > found.head.number:
        what = f"the chain ends at {found.head.number}, before the head that you kept: its end was removed"
    else:
        what = "it is another one than the head that you kept: the chain was written anew from there, or before"
    return Broken(number=known.number, what=what)
