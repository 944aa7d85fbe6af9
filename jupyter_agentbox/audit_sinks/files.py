"""Audit sinks that append to a file or write to standard output."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from jupyter_agentbox.background import in_thread

#: The file is opened for each batch, so that it can be rotated. It may be append-only.
_ADD: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)


class FileSink:
    """An `AuditSink` that appends to a file of JSON Lines.

    Parameters
    ----------
    path : str
        The file. If missing, it is created, accessible only to its owner.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._is_torn: bool | None = None
        self.name = f"the file `{path}`"

    async def send(self, lines: Sequence[bytes]) -> None:
        """Append records; the operating system then writes them to disk."""
        await in_thread(self._add, b"".join(line + b"\n" for line in lines))

    def _add(self, data: bytes) -> None:
        if self._is_torn is None:
            self._is_torn = _has_partial_line(self._path)
        descriptor = os.open(self._path, _ADD, 0o600)
        try:
            # After a full disk, or the sudden end of the process before this one, the file may end with a partial
            # record; the next one starts on a new line.
            _write(descriptor, b"\n" + data if self._is_torn else data)
            self._is_torn = False
        except OSError:
            self._is_torn = True
            raise
        finally:
            os.close(descriptor)


class StandardOutputSink:
    """An `AuditSink` that writes to this process's standard output, which containers collect."""

    name = "standard output"

    async def send(self, lines: Sequence[bytes]) -> None:
        """Write records."""
        await in_thread(_write, 1, b"".join(line + b"\n" for line in lines))


def _has_partial_line(path: Path) -> bool:
    """Whether a file does not end with the end of a line, or does not say."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            if not size:
                return False
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"
    except FileNotFoundError:
        return False
    except OSError:
        return True  # it may be for writing only; an empty line does no harm


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
