"""What a message costs who takes it: its bytes, and the values in it, which are larger in memory than in JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from jupyter_agentbox.core.calls import JsonValue

#: Values that a message may have. Reading one is a single step that nothing else in the process can interrupt, and a
#: million values take a tenth of a second or two.
MAX_VALUES: Final = 1_000_000
#: Bytes that a value takes in memory beside its text, about: an empty list has 56, and 8 in the list that it is in.
VALUE_SIZE: Final = 64


def count_values(data: bytes, *, most: int | None = None) -> int:
    """Return how many values a JSON text has, or a few more, without reading it.

    Each value but the first of a list or an object comes after a comma, and the first after a bracket. Where there are
    too many of those, the ones inside strings are left out.

    Parameters
    ----------
    data : bytes
        The text.
    most : int, optional
        How many are too many; `MAX_VALUES` by default.
    """
    limit = MAX_VALUES if most is None else most
    count = _separators(data)
    if count <= limit:
        return count
    bare = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    strings = bare.count(b'"') // 2
    if strings > 2 * limit:  # half of them may be names; splitting the text at them would cost more than they are
        return strings
    return sum(map(_separators, bare.split(b'"')[::2]))


class ValueCounter:
    """Counts the values of JSON texts that come in chunks, as `count_values` does, without keeping them."""

    def __init__(self) -> None:
        self.count = 0
        self._is_in_string = False
        self._rest = b""

    def feed(self, chunk: bytes) -> None:
        """Count what separates values in the next chunk, outside strings."""
        data = self._rest + chunk
        cut = len(data) - len(data.rstrip(b"\\"))
        self._rest = b"\\" if cut % 2 else b""  # what it escapes is in the next chunk
        bare = data.removesuffix(self._rest).replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = bare.split(b'"')
        self.count += sum(map(_separators, parts[1 if self._is_in_string else 0 :: 2]))
        self._is_in_string ^= len(parts) % 2 == 0


def weight(data: bytes) -> int:
    """Return how many bytes of memory a JSON text takes, about, once it is read and its text is kept as well."""
    return len(data) + VALUE_SIZE * count_values(data)


def weight_of(value: JsonValue, *, most: float = math.inf) -> int:
    """Return the `weight` of a value that was read already; of more than `most` not how much."""
    total = 0
    rest: list[JsonValue] = [value]
    while rest and total < most:
        item = rest.pop()
        total += VALUE_SIZE
        if isinstance(item, str):
            total += len(item)
        elif isinstance(item, Mapping):
            total += sum(map(len, item))
            rest.extend(item.values())
        elif isinstance(item, list | tuple):
            rest.extend(item)
    return total


def _separators(data: bytes) -> int:
    return data.count(b",") + data.count(b"[") + data.count(b"{")
