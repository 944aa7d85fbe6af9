"""Shows that an event loop goes on while something waits: what it waits for comes from the loop alone."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

#: Seconds after which what waits gives up.
TIMEOUT = 60

_STAND_IN = """#!{python} -ISB
import os, socket, sys
with socket.socket(socket.AF_UNIX) as loop:
    loop.settimeout({timeout})
    loop.connect({socket!r})
    loop.recv(1)
os.execv({program!r}, [{program!r}, *sys.argv[1:]])
"""


def beat_of_the_loop() -> Callable[[], None]:
    """Return what blocks a thread until the loop that runs here has turned. Called by the loop itself, it fails."""
    loop = asyncio.get_running_loop()

    def await_beat() -> None:
        beat = threading.Event()
        loop.call_soon_threadsafe(beat.set)
        if not beat.wait(TIMEOUT):
            raise TimeoutError("the loop did not turn meanwhile")

    return await_beat


@asynccontextmanager
async def slow_program(program: str, path: Path) -> AsyncIterator[list[str]]:
    """Make a program that is another one, but first waits until the loop that runs here has turned.

    Gives a list with one item for each time that it was run.
    """
    runs: list[str] = []

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        runs.append(program)
        writer.write(b"g")
        writer.close()
        await writer.wait_closed()

    address = str(path.with_suffix(".socket"))
    path.write_text(_STAND_IN.format(python=sys.executable, timeout=TIMEOUT, socket=address, program=program))
    path.chmod(0o700)
    server = await asyncio.start_unix_server(answer, address)
    async with server:
        yield runs
