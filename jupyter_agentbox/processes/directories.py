"""Private temporary directories. Those of a process that was killed are removed by the user's next one."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

if sys.platform != "win32":
    import fcntl

#: What all names begin with.
PREFIX: Final = "agentbox-"
_LOCK: Final = ".owner"


class PrivateDirectory:
    """A directory for this process alone, mode 0700.

    Parameters
    ----------
    kind : str
        What it is for, as a part of its name.
    parent : Path or None
        Where it is made; ``None`` for the place of temporary files.

    Attributes
    ----------
    path : Path
        The directory.
    """

    def __init__(self, kind: str = "", *, parent: Path | None = None) -> None:
        sweep(parent)
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{kind}", dir=parent))
            # Held as long as this process lives, however it ends: who can take the lock may remove the directory.
            self._lock = os.open(self.path / _LOCK, os.O_CREAT | os.O_RDWR | getattr(os, "O_CLOEXEC", 0), 0o600)
            if sys.platform == "win32":
                break
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            if os.fstat(self._lock).st_nlink > 0:
                break
            os.close(self._lock)  # another process' `sweep` had it a moment earlier, and removed the directory

    def remove(self) -> None:
        """Remove it with all that is in it."""
        if self._lock >= 0:
            lock, self._lock = self._lock, -1
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(lock)


def sweep(parent: Path | None = None) -> None:
    """Remove the directories that processes of this user left behind which were killed.

    Parameters
    ----------
    parent : Path or None
        Where they are; ``None`` for the place of temporary files.
    """
    if sys.platform == "win32":
        return
    with suppress(OSError):
        for path in Path(parent or tempfile.gettempdir()).glob(f"{PREFIX}*"):
            with suppress(OSError):
                _remove_left(path)


def _remove_left(path: Path) -> None:
    """Remove a directory if it is one of ours, and no process has it."""
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) != 0o700:
        return
    lock = os.open(path / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with suppress(RecursionError):  # a kernel made them; whoever wants them gone removes them by hand
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(lock)
