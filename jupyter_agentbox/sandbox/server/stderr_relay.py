"""Passes on what a sandboxed kernel writes to its raw standard output and error, as lines that name the kernel.

The kernel does not get the server's own streams, because it could read and control a terminal and truncate a log file.
Nor can it write a line that looks like one of the server's log.
"""

from __future__ import annotations

import codecs
import os
import sys
import threading
from collections.abc import Iterator
from typing import Final, TextIO

from jupyter_agentbox.core.terminal import TerminalFilter

_BLOCK: Final = 65536
#: Characters of a line after which it is continued on the next one; in a terminal as many as stand in one row.
_LONGEST_LINE: Final = 2000
_NARROWEST: Final = 20


def relay(name: str) -> int:
    """Return the writing end of a pipe whose lines go to this process's standard error until all writers are gone.

    Parameters
    ----------
    name : str
        The prefix of each line, which is put in brackets.
    """
    reader, writer = os.pipe()
    threading.Thread(target=_pass_on, args=(reader, name), name="agentbox-relay", daemon=True).start()
    return writer


class Harmless:
    """Decodes bytes as they arrive, and removes what controls a terminal."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._filter = TerminalFilter(colors=False, carriage_return="\n")

    def __call__(self, block: bytes) -> str:
        """Return the text of the next bytes."""
        return self._filter.feed(self._decoder.decode(block))


class MarkedLines:
    """Splits text into lines that begin with a mark.

    Parameters
    ----------
    name : str
        The name in the mark.
    """

    def __init__(self, name: str) -> None:
        self._mark = f"[{name}] "
        self._rest = ""

    def feed(self, text: str, columns: int | None = None) -> Iterator[str]:
        """Yield the lines that are complete.

        Parameters
        ----------
        text : str
            The next piece.
        columns : int or None
            The width of the terminal, if it is one: a line that it wraps would go on without its mark.
        """
        *lines, self._rest = (self._rest + text).split("\n")
        if len(self._rest) > _LONGEST_LINE:
            lines.append(self._rest)
            self._rest = ""
        for line in lines:
            yield from self._marked(line.replace("\t", "    "), columns)

    def end(self) -> Iterator[str]:
        """Yield what is left, if the last line was not ended."""
        if self._rest:
            yield from self.feed("\n")

    def _marked(self, line: str, columns: int | None) -> Iterator[str]:
        room = _LONGEST_LINE if columns is None else max(_NARROWEST, columns - len(self._mark))
        room = room if line.isascii() else room // 2  # a character may be two columns wide
        for start in range(0, max(1, len(line)), room):
            yield f"{self._mark}{line[start : start + room]}\n"


def _pass_on(reader: int, name: str) -> None:
    harmless, lines = Harmless(), MarkedLines(name)
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        while block := pipe.read(_BLOCK):
            _write(lines.feed(harmless(block), _columns(sys.stderr)))
    _write(lines.end())


def _write(lines: Iterator[str]) -> None:
    sys.stderr.write("".join(lines))
    sys.stderr.flush()


def _columns(stream: TextIO) -> int | None:
    try:
        return os.get_terminal_size(stream.fileno()).columns if stream.isatty() else None
    except (OSError, ValueError):  # it is not a file of the operating system
        return None
