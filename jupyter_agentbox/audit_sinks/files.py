"""Audit sinks that append to a file or write to standard output."""

from __future__ import annotations

import os
import select
import stat
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from jupyter_agentbox.background import in_thread

_FLAGS: Final = os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0) if hasattr(os, "O_NONBLOCK") else 0
#: The file is opened for each batch, so that it can be rotated. It may be append-only. If it is a pipe that nobody
#: reads, opening it fails instead of waiting.
_ADD: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | _FLAGS
#: Maximum time in which a pipe must take all records, in seconds. A service that stops waits for it.
_PATIENCE: Final = 10.0


class FileSink:
    """An `AuditSink` that appends to a file of JSON Lines.

    Parameters
    ----------
    path : str
        The file. If missing, it is created, accessible only to its owner.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._writer: _LineWriter | None = None
        self.name = f"the file `{path}`"

    async def send(self, lines: Sequence[bytes]) -> None:
        """Append records, and write them to disk."""
        await in_thread(self._add, lines)

    def _add(self, lines: Sequence[bytes]) -> None:
        self._writer = self._writer or _LineWriter(is_torn=_has_partial_line(self._path))
        descriptor = os.open(self._path, _ADD, 0o600)
        try:
            self._writer.write(descriptor, lines)
            if _is_regular(descriptor):
                # What is sent is removed from where it waited, and some disks say only now that they are full.
                os.fsync(descriptor)
        finally:
            os.close(descriptor)


class StandardOutputSink:
    """An `AuditSink` that writes to this process's standard output, which containers collect."""

    name = "standard output"

    def __init__(self) -> None:
        self._writer = _LineWriter()

    async def send(self, lines: Sequence[bytes]) -> None:
        """Write records."""
        await in_thread(self._writer.write, 1, lines)


class _LineWriter:
    """Writes each batch on lines of its own, also after a full disk or a killed process left a partial line.

    Parameters
    ----------
    is_torn : bool
        Whether what is there may end with a partial line.
    """

    def __init__(self, *, is_torn: bool = False) -> None:
        self._is_torn = is_torn

    def write(self, descriptor: int, lines: Sequence[bytes]) -> None:
        """Write lines.

        Raises
        ------
        OSError
            Not all were written.
        """
        begin = b"\n" if self._is_torn else b""
        self._is_torn = True
        _write(descriptor, begin + b"".join(line + b"\n" for line in lines))
        self._is_torn = False


def _has_partial_line(path: Path) -> bool:
    """Whether a file ends with a partial line, or may do so because it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | _FLAGS)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # it may be for writing only; an empty line does no harm
    with os.fdopen(descriptor, "rb") as file:
        if not _is_regular(descriptor) or not (size := file.seek(0, os.SEEK_END)):
            return False
        file.seek(size - 1)
        return file.read(1) != b"\n"


def _is_regular(descriptor: int) -> bool:
    return stat.S_ISREG(os.fstat(descriptor).st_mode)


def _write(descriptor: int, data: bytes) -> None:
    """Write all of the data, to a pipe in pieces for which it has room: one that nobody reads is not waited for."""
    if _is_regular(descriptor):
        while data:
            data = data[os.write(descriptor, data) :]
        return
    poll, end = select.poll(), time.monotonic() + _PATIENCE
    poll.register(descriptor, select.POLLOUT)
    while data:
        if not poll.poll(max(0.0, end - time.monotonic()) * 1000):
            raise TimeoutError(f"it did not take all records within {_PATIENCE:g} s")
        try:
            data = data[os.write(descriptor, data[: select.PIPE_BUF]) :]
        except BlockingIOError:
            continue  # another process was faster
