"""The process's terminal, at which somebody is asked."""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final, TextIO

from jupyter_agentbox.core.terminal import KNOWN_STATE

#: Columns of a terminal that does not say how many it has.
_COLUMNS: Final = 80


class Terminal:
    """The process's terminal, even if standard input is a file.

    Parameters
    ----------
    reader, writer : file
        The two ends of the pipe.
    """

    def __init__(self, reader: TextIO, writer: TextIO) -> None:
        self._reader = reader
        self._writer = writer

    @property
    def columns(self) -> int:
        """How many characters a line has."""
        try:
            return os.get_terminal_size(self._writer.fileno()).columns or _COLUMNS
        except OSError:
            return _COLUMNS

    def begin_question(self, text: str) -> None:
        """Write a question to a terminal in a known state, and discard what was typed before it was asked.

        Somebody may have answered output of the code that looked like a question.
        """
        import termios  # noqa: PLC0415  # not on every platform

        self.show(f"{KNOWN_STATE}\n{text}\n")
        with suppress(termios.error):  # it is gone, as reading will show
            termios.tcflush(self._reader.fileno(), termios.TCIFLUSH)

    def show(self, text: str) -> None:
        """Write text."""
        self._writer.write(text)
        self._writer.flush()

    async def read_line(self) -> str:
        """Wait for a line; empty if the terminal is gone."""
        await self._has_line()
        line = self._reader.readline()
        if not line.endswith("\n"):
            self.show("\n")  # ended with Ctrl-D: the code's next output must not continue the question
        return line

    async def run(self, argv: Sequence[str]) -> int:
        """Run a program that has the terminal, and return its exit code.

        Raises
        ------
        OSError
            It cannot be started.
        """
        program = await asyncio.create_subprocess_exec(
            *argv, stdin=self._reader.fileno(), stdout=self._writer.fileno(), stderr=self._writer.fileno()
        )
        try:
            return await program.wait()
        finally:
            if program.returncode is None:  # interrupted by Ctrl-C
                with suppress(ProcessLookupError):
                    program.terminate()

    async def _has_line(self) -> None:
        """Wait until a line can be read. A thread blocked in a read could not be stopped by Ctrl-C."""
        stopped, stop = os.pipe()
        ends: list[int] = [self._reader.fileno(), stopped]
        nothing: list[int] = []
        waiting = asyncio.ensure_future(asyncio.to_thread(select.select, ends, nothing, nothing))
        try:
            await asyncio.shield(waiting)
        finally:
            os.write(stop, b"\0")
            await waiting
            os.close(stopped)
            os.close(stop)


@contextmanager
def open_terminal() -> Iterator[Terminal | None]:
    """Open the process's terminal; ``None`` if it has none."""
    try:
        # A terminal cannot be opened for both at once, because it cannot seek.
        with open("/dev/tty", encoding="utf-8") as reader, open("/dev/tty", "w", encoding="utf-8") as writer:  # noqa: PTH123
            yield Terminal(reader, writer)
    except OSError:
        yield None
