"""Records that users' servers report to the Hub service: their validation, and the service's own chain over them.

A user's server seals its records in a chain (see `audit_trail`) and reports one line of it at a time. The service adds
each line to its own chain for that user, with a number and a hash, and never changes it. The service's own notes, such
as missing records, are in the same chain.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final

from jupyter_agentbox.exceptions import ReportRefusedError

from .audit import digest_of
from .audit_trail import LONGEST_RECORD, RESEALED, read_record
from .calls import JsonObject

#: Maximum size of a reported record, in bytes.
LONGEST_REPORT: Final = LONGEST_RECORD + 1000
#: Maximum distance of a record's number from the last one: more than any disk holds.
_FARTHEST: Final = 10_000_000
#: The characters of a line: printable ASCII, and the white space that JSON allows.
_CHARACTERS: Final = re.compile(rb"[\t\r -~]*")
_CHAIN: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Note(str, Enum):
    """The kind of note that the service adds to a user's chain."""

    MISSING = "missing"
    """Records of a server are missing, while later ones have arrived."""

    FILLED = "filled"
    """Missing records have arrived."""

    REMOVED = "removed"
    """Records were removed because of their age; their digests remain."""

    HOLD_SET = "hold_set"
    """A legal hold was set: records must not be removed."""

    HOLD_RELEASED = "hold_released"
    """A legal hold was released."""

    HEADS = "heads"
    """The last rows of users' chains. Only in the service's own chain, which the audit chain covers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A record from a user's server.

    Parameters
    ----------
    chain : str
        Id of the server's chain: each start of a server has its own.
    sequence : int
        Its number in that chain, from 1.
    line : bytes
        The record, one line of JSON: as received, or what is left without its secrets.
    fields : JsonObject
        The record's fields, as received.
    at : datetime
        When it was made, by that server's clock.
    """

    chain: str
    sequence: int
    line: bytes
    fields: JsonObject
    at: datetime

    @property
    def digest(self) -> str:
        """SHA-256 of the line."""
        return hashlib.sha256(self.line).hexdigest()

    @property
    def seal(self) -> str:
        """The hash with which its server sealed it."""
        return str(self.fields["hash"])

    @property
    def hub_server(self) -> str:
        """The user's server that it claims to be from."""
        return str(self.fields.get("hub_server") or "")

    @property
    def is_last(self) -> bool:
        """Whether it ends its chain."""
        return self.fields.get("event") == "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A range of missing records of a server.

    Parameters
    ----------
    tenant : str
        The user.
    hub_server : str
        Which of the user's servers.
    chain : str
        The server's chain.
    first, last : int
        Numbers of the first and the last missing record; `last` is 0 if the end of the chain, of unknown length, is
        missing.
    """

    tenant: str
    hub_server: str
    chain: str
    first: int
    last: int

    def __str__(self) -> str:
        named = self.hub_server.partition("/")[2]
        server = f"{self.tenant}'s server" + (f" `{named}`" if named else "")
        if self.last == 0:
            return (
                f"records from {self.first} on of {server} may be missing: it began anew, and this chain has no end"
                f" (chain {self.chain})"
            )
        if self.first == self.last:
            return f"record {self.first} of {server} is missing (chain {self.chain})"
        return f"records {self.first}–{self.last} of {server} are missing (chain {self.chain})"

    def to_json(self) -> JsonObject:
        """Return the gap as the REST API sends it."""
        return {
            "user": self.tenant,
            "hub_server": self.hub_server,
            "chain": self.chain,
            "first": self.first,
            "last": self.last or None,
            "message": str(self),
        }


def read_report(line: bytes, *, tenant: str) -> Report:
    """Parse a line that was sent with a user's token.

    Parameters
    ----------
    line : bytes
        The line.
    tenant : str
        The token's owner, according to the Hub.

    Raises
    ------
    ReportRefusedError
        It is invalid, was changed after it was sealed, or claims to be another user's.
    """
    if len(line) > LONGEST_REPORT:
        raise ReportRefusedError(f"a record has more than {LONGEST_REPORT:,} bytes")
    # A server escapes other characters. Some of them would end a line, or change how it is displayed.
    fields = read_record(line.decode("ascii")) if _CHARACTERS.fullmatch(line) else None
    if fields is None or not _is_unicode(fields):
        raise ReportRefusedError("a line is not an audit record, or was changed after it was made")
    if RESEALED in fields:
        raise ReportRefusedError(f"a record has `{RESEALED}`, which only the service adds")
    chain, sequence = fields.get("chain"), fields.get("sequence")
    if not isinstance(chain, str) or not _CHAIN.fullmatch(chain) or type(sequence) is not int or sequence < 1:
        raise ReportRefusedError("a record has no chain, or no number in it")
    if fields.get("user") != tenant or str(fields.get("hub_server")).partition("/")[0] != tenant:
        raise ReportRefusedError("a record says that it is of another user than the one whose token came with it")
    try:
        at = datetime.fromisoformat(str(fields.get("time")))
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise ReportRefusedError("a record has no time")
    return Report(chain=chain, sequence=sequence, line=line, fields=fields, at=at)


def check_distance(report: Report, last: int) -> None:
    """Reject a number too far from the last to be genuine.

    Raises
    ------
    ReportRefusedError
    """
    if report.sequence > last + _FARTHEST:
        raise ReportRefusedError(f"the number {report.sequence} is too far from {last}, the last of its chain")


def row_hash(
    *, tenant: str, number: int, chain: str, sequence: int, received_at: int, at: int, digest: str, previous: str
) -> str:
    """Return the hash of an entry of a user's chain.

    Parameters
    ----------
    tenant : str
        The JupyterHub user whose chain it is.
    number : int
        The entry's number in that chain.
    chain : str
        The record's own chain.
    sequence : int
        The record's number in its own chain.
    digest : str
        SHA-256 of the record's line, in hexadecimal.
    received_at, at : int
        When it was received and when it was made, in microseconds since 1970.
    previous : str
        The hash of the previous entry.
    """
    return digest_of([tenant, number, chain, sequence, received_at, at, digest, previous])


def ranges(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last number of each run of consecutive ascending numbers."""
    first = last = 0
    for number in numbers:
        if first and number == last + 1:
            last = number
            continue
        if first:
            yield first, last
        first = last = number
    if first:
        yield first, last


def news_of(last: int, sequences: Sequence[int]) -> Iterator[tuple[Note, int, int]]:
    """Yield notes on new numbers in a chain: which records are missing, and which no longer are.

    Parameters
    ----------
    last : int
        Number of the last record so far; 0 for none.
    sequences : sequence of int
        Distinct new numbers, ascending.
    """
    yield from ((Note.FILLED, *run) for run in ranges(number for number in sequences if number < last))
    for number in sequences:
        if number > last + 1:
            yield Note.MISSING, last + 1, number - 1
        last = max(last, number)


def _is_unicode(fields: JsonObject) -> bool:
    """Whether all texts can be encoded: none has half of a surrogate pair."""
    try:
        json.dumps(fields, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
