"""The audit chain: each entry has the digest of a record, and a hash over itself and the previous entry.

Changing a record in the chain requires changing its entry and the hash of every later entry. Whoever can rewrite the
whole chain can hide a change from everybody except those who kept an entry's hash elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

#: Canonical JSON for lists of strings and integers, without the checks that other values need.
_FLAT: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)

#: The previous hash in the first entry.
GENESIS: Final = "0" * 64


class Part(str, Enum):
    """What an entry says about a request."""

    DECIDED = "decided"
    """Approved, by a person or a rule; the digest covers everything but the outcome."""

    ENDED = "ended"
    """Final; the digest covers everything."""

    SHORTENED = "shortened"
    """Its long arguments were removed to save space."""

    REMOVED = "removed"
    """Removed because of its age, or to save space."""

    CHECKPOINT = "checkpoint"
    """Entries up to a number were removed: those of requests that are no longer kept."""

    REPORTS = "reports"
    """A Hub service noted the ends of its users' chains of reported records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An entry of the chain.

    Parameters
    ----------
    number : int
        Sequence number, from 1.
    part : str
        One of `Part`.
    request_id : str
        The request; in a checkpoint, the number of the last removed entry; for reports, the number of the note.
    digest : str
        SHA-256 of the entry's subject; in a checkpoint, the hash of the last removed entry; for reports, the hash of
        the note.
    previous : str
        The hash of the previous entry.
    hash : str
        SHA-256 of the fields above.
    """

    number: int
    part: str
    request_id: str
    digest: str
    previous: str
    hash: str

    @property
    def is_sound(self) -> bool:
        """Whether its hash matches its fields."""
        try:
            return self.hash == _hash(self.number, self.part, self.request_id, self.digest, self.previous)
        except (TypeError, ValueError):  # the data comes from a file that anybody may have written
            return False


@dataclass(frozen=True, slots=True)
class Head:
    """The last entry of a chain or of a part of it, to be kept elsewhere.

    Parameters
    ----------
    number : int
        The entry's number; 0 for an empty chain.
    hash : str
        The entry's hash.
    """

    number: int = 0
    hash: str = GENESIS

    def then(self, part: Part, request_id: str, digest: str) -> Entry:
        """Return the next entry."""
        number = self.number + 1
        return Entry(
            number=number,
            part=part.value,
            request_id=request_id,
            digest=digest,
            previous=self.hash,
            hash=_hash(number, part.value, request_id, digest, self.hash),
        )

    def __str__(self) -> str:
        return f"{self.number}:{self.hash}"

    @classmethod
    def parse(cls, text: str) -> Head:
        """Read the result of `str`.

        Raises
        ------
        ValueError
        """
        found = re.fullmatch(f"([1-9][0-9]{{0,17}}):([0-9a-f]{{64}})|(0):({GENESIS})", text.strip())
        if found is None:
            raise ValueError(f"{text!r:.100} is not a head: it looks like 1234:5f3c…, as `audit verify` prints it")
        return cls(int(found[1]), found[2]) if found[1] else cls()


def digest_of(values: Sequence[str | int | None]) -> str:
    """Return the SHA-256 of the values' canonical JSON, in lower-case hex."""
    return hashlib.sha256(_FLAT.encode(values).encode()).hexdigest()


def _hash(number: int, part: str, request_id: str, digest: str, previous: str) -> str:
    return digest_of([number, part, request_id, digest, previous])
