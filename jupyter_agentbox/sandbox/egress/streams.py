"""Joins two streams: whatever arrives on one is sent on the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

BLOCK = 65536


class Stream(NamedTuple):
    """Both directions of a connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


async def join(one: Stream, other: Stream, *, heard: Callable[[], None] = lambda: None) -> None:
    """Pass everything on in both directions until both have ended; either may end first.

    Parameters
    ----------
    one, other : Stream
        The connections. They are not closed.
    heard : callable
        Called whenever data arrives from either.

    Raises
    ------
    OSError
        If one of them breaks.
    """
    ways = [asyncio.ensure_future(_pass_on(one.reader, other.writer, heard))]
    ways.append(asyncio.ensure_future(_pass_on(other.reader, one.writer, heard)))
    try:
        await asyncio.gather(*ways)
    finally:
        for way in ways:
            way.cancel()


async def close(stream: Stream) -> None:
    """Close a connection; drop what it no longer accepts."""
    stream.writer.close()
    with suppress(OSError):  # it broke before
        await stream.writer.wait_closed()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heard: Callable[[], None]) -> None:
    while block := await reader.read(BLOCK):
        heard()
        writer.write(block)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
