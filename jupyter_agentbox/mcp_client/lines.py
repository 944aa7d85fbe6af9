"""Splitting a pipe into lines in linear time, and finding the id of an overlong or broken message."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

#: How many bytes of each end of an overlong line are kept.
KEPT: Final = 4096

# All known servers write a response's own id at its beginning or at its end; an ``"id"`` anywhere else may be part of a
# result and is ignored.
_ID: Final = rb'"id"\s*:\s*(-?\d{1,18}|"(?:[^"\\]|\\.){0,200}")'
_VERSION: Final = rb'"jsonrpc"\s*:\s*"2\.0"'
_HEAD: Final = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb"\s*,\s*)?" + _ID + rb"\s*[,}]")
_TAIL: Final = re.compile(_ID + rb"\s*(?:,\s*" + _VERSION + rb"\s*)?\}\s*$")
_TAIL_VERSION_FIRST: Final = re.compile(_VERSION + rb"\s*,\s*" + _ID + rb"\s*\}\s*$")


@dataclass(frozen=True, slots=True)
class LongLine:
    """The remains of an overlong line: both ends, and its length in bytes."""

    head: bytes
    tail: bytes
    length: int


class LineSplitter:
    """Splits chunks into lines; examines each byte once, however long the line.

    Parameters
    ----------
    cap : int
        Maximum length of a complete line, in bytes. Of a longer one, only the ends are kept, which bounds memory.
    """

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._parts: list[bytes] = []
        self._length = 0
        self._head = b""
        self._tail = b""

    def feed(self, chunk: bytes) -> Iterator[bytes | LongLine]:
        """Yield the lines that end in this chunk, without their newlines."""
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._add(chunk[start:end])
            yield self._take()
            start = end + 1
        if start < len(chunk):
            self._add(chunk[start:] if start else chunk)

    def finish(self) -> Iterator[bytes | LongLine]:
        """Yield the rest after the last newline, if any."""
        if self._length:
            yield self._take()

    def _add(self, part: bytes) -> None:
        self._length += len(part)
        if self._length <= self._cap:
            self._parts.append(part)
            return
        if self._parts:
            kept = b"".join(self._parts)
            self._parts.clear()
            self._head, self._tail = kept[:KEPT], kept[-KEPT:]
        if len(self._head) < KEPT:
            self._head += part[: KEPT - len(self._head)]
        self._tail = (self._tail + part[-KEPT:])[-KEPT:]

    def _take(self) -> bytes | LongLine:
        line: bytes | LongLine
        if self._length <= self._cap:
            line = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        else:
            line = LongLine(self._head, self._tail, self._length)
        self._parts = []
        self._length = 0
        self._head = self._tail = b""
        return line


def response_id(line: bytes | LongLine) -> int | str | None:
    """Return the id of the response in this line; ``None`` if it cannot be determined."""
    head, tail = (line.head, line.tail) if isinstance(line, LongLine) else (line[:KEPT], line[-KEPT:])
    found = _HEAD.match(head) or _TAIL.search(tail) or _TAIL_VERSION_FIRST.search(tail)
    if found is None:
        return None
    try:
        value = json.loads(found.group(1))
    except ValueError:
        return None
    return value if isinstance(value, (int, str)) else None
