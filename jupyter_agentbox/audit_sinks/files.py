"""A file that is only added to, and standard output."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from jupyter_agentbox.background import in_thread

#: It is opened for each batch, so that it may be rotated. Its attributes may allow nothing but adding to it.
_ADD: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)


class FileSink:
    """A file of JSON Lines. An `AuditSink`.

    Parameters
    ----------
    path : str
        The file; it is made, for its owner only, if it is not there.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._is_torn = False
        self.name = f"the file `{path}`"

    async def send(self, lines: Sequence[bytes]) -> None:
        """Add records. What the file has then is on its way to the disk."""
        await in_thread(self._add, b"".join(line + b"\n" for line in lines))

    def _add(self, data: bytes) -> None:
        descriptor = os.open(self._path, _ADD, 0o600)
        try:
            # After a full disk the file may end in half a record: the next one is not to stand on its line.
            _write(descriptor, b"\n" + data if self._is_torn else data)
            self._is_torn = False
        except OSError:
            self._is_torn = True
            raise
        finally:
            os.close(descriptor)


class StandardOutputSink:
    """Standard output of this process, which containers keep. An `AuditSink`."""

    name = "standard output"

    async def send(self, lines: Sequence[bytes]) -> None:
        """Write records."""
        await in_thread(_write, 1, b"".join(line + b"\n" for line in lines))


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
