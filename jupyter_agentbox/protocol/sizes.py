"""The memory that messages take: their bytes, and their values, which are larger in memory than in JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from jupyter_agentbox.core.calls import JsonValue

#: Maximum number of values in a message. Parsing is a single step that nothing in the process can interrupt; for a
#: million values, it takes 0.1 to 0.2 s.
MAX_VALUES: Final = 1_000_000
#: Approximate memory of a value besides its text, in bytes: an empty list takes 56, and 8 in its parent.
VALUE_SIZE: Final = 64


def count_values(data: bytes, *, most: int | None = None) -> int:
    """Return the number of values in a JSON text, or a few more, without parsing it.

    The first value of a list or object follows a bracket, each other one a comma. If there are too many of these, those
    inside strings are excluded.

    Parameters
    ----------
    data : bytes
        The text.
    most : int, optional
        The limit; `MAX_VALUES` by default.
    """
    limit = MAX_VALUES if most is None else most
    count = _separators(data)
    if count <= limit:
        return count
    bare = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    strings = bare.count(b'"') // 2
    if strings > 2 * limit:  # half of them may be names; splitting the text at them would take more memory than they do
        return strings
    return sum(map(_separators, bare.split(b'"')[::2]))


class ValueCounter:
    """Counts the values of JSON texts that arrive in chunks, like `count_values`, without keeping them."""

    def __init__(self) -> None:
        self.count = 0
        self._is_in_string = False
        self._rest = b""

    def feed(self, chunk: bytes) -> None:
        """Count the separators in the next chunk, outside strings."""
        data = self._rest + chunk
        cut = len(data) - len(data.rstrip(b"\\"))
        self._rest = b"\\" if cut % 2 else b""  # the escaped character is in the next chunk
        bare = data.removesuffix(self._rest).replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = bare.split(b'"')
        self.count += sum(map(_separators, parts[1 if self._is_in_string else 0 :: 2]))
        self._is_in_string ^= len(parts) % 2 == 0


def weight(data: bytes) -> int:
    """Return the approximate memory that a JSON text takes once parsed, including the text itself, in bytes."""
    return len(data) + VALUE_SIZE * count_values(data)


def weight_of(value: JsonValue, *, most: float = math.inf) -> int:
    """Return the `weight` of a parsed value; counting stops above `most`."""
    total = 0
    rest: list[JsonValue] = [value]
    while rest and total < most:
        item = rest.pop()
        total += VALUE_SIZE
        if item is None or isinstance(item, int | float):
            continue  # first, because a long message is often a list of numbers
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
