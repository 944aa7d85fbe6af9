"""The audit chain: each entry names a record by its digest, and has a hash over itself and the entry before it.

Whoever changes a record that is in the chain must change its entry too, and so the hash of every later entry. Who can
write the whole chain anew can hide a change from everybody but those who kept the hash of an entry elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

#: For lists of texts and whole numbers this is canonical JSON, without the checks that other values need.
_FLAT: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)

#: What stands in the first entry for the hash of the one before it.
GENESIS: Final = "0" * 64


class Part(str, Enum):
    """What an entry says of a request."""

    DECIDED = "decided"
    """It was approved, by a person or a rule; the digest covers all but what became of the call."""

    ENDED = "ended"
    """Nothing can change it any more; the digest covers all of it."""

    SHORTENED = "shortened"
    """Its long arguments were removed to save space."""

    REMOVED = "removed"
    """It was removed because of its age, or to save space."""

    CHECKPOINT = "checkpoint"
    """Entries before a number were removed: those of requests that are no longer kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One link of the chain.

    Parameters
    ----------
    number : int
        1 for the first; the next one's is one more.
    part : str
        One of `Part`.
    request_id : str
        Of which request; of a checkpoint, the number of the last entry that was removed.
    digest : str
        SHA-256 of what the entry is about; of a checkpoint, the hash of the last entry that was removed.
    previous : str
        The hash of the entry before it.
    hash : str
        SHA-256 of all of the above.
    """

    number: int
    part: str
    request_id: str
    digest: str
    previous: str
    hash: str

    @property
    def is_sound(self) -> bool:
        """Whether its hash is that of what it says."""
        try:
            return self.hash == _hash(self.number, self.part, self.request_id, self.digest, self.previous)
        except (TypeError, ValueError):  # read from where anybody may have written anything
            return False


@dataclass(frozen=True, slots=True)
class Head:
    """The last entry of a chain, or of a part of one: what to keep elsewhere.

    Parameters
    ----------
    number : int
        Its number; 0 of an empty chain.
    hash : str
        Its hash.
    """

    number: int = 0
    hash: str = GENESIS

    def then(self, part: Part, request_id: str, digest: str) -> Entry:
        """Return the entry that follows."""
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
        """Read what `str` gave.

        Raises
        ------
        ValueError
        """
        found = re.fullmatch("([0-9]{1,18}):([0-9a-f]{64})", text.strip())
        if found is None:
            raise ValueError(f"{text!r:.100} is not a head: it looks like 1234:5f3c…, as `audit verify` prints it")
        return cls(int(found[1]), found[2])


def digest_of(values: Sequence[str | int | None]) -> str:
    """Return SHA-256 of the values' canonical JSON, in hexadecimal digits."""
    return hashlib.sha256(_FLAT.encode(values).encode()).hexdigest()


def _hash(number: int, part: str, request_id: str, digest: str, previous: str) -> str:
    return digest_of([number, part, request_id, digest, previous])
