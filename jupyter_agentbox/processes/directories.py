"""Private temporary directories. Those of killed processes are removed by the user's next process."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Final

if sys.platform != "win32":
    import fcntl

    from .removal import remove_tree

#: Prefix of the names of private directories.
PREFIX: Final = "agentbox-"
#: Maximum time for removals, in seconds: leftovers must not delay the next kernel or the end of the server.
PATIENCE: Final = 3.0


class OwnedDirectory:
    """A directory that belongs to this process until it ends, however it ends.

    Whoever can lock its file `lock_name` may remove it: the operating system releases the lock when the owner ends.

    Parameters
    ----------
    make : callable
        Creates an empty directory and returns its path.

    Attributes
    ----------
    path : Path
        The directory.
    """

    lock_name: ClassVar[str] = ".owner"

    def __init__(self, make: Callable[[], Path]) -> None:
        while True:
            self.path = make()
            flags = os.O_CREAT | os.O_RDWR | getattr(os, "O_CLOEXEC", 0)
            self._lock = os.open(self.path / self.lock_name, flags, 0o600)
            if sys.platform == "win32":
                break
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            if os.fstat(self._lock).st_nlink > 0:
                break
            os.close(self._lock)  # another process's sweep locked it first and removed the directory

    def remove(self) -> None:
        """Remove the directory with its contents. What cannot be removed, or not quickly, is left for a later sweep."""
        if self._lock >= 0:
            lock, self._lock = self._lock, -1
            _remove(self.path, self.lock_name, seconds=PATIENCE)
            os.close(lock)


class PrivateDirectory(OwnedDirectory):
    """A temporary directory for this process only, with mode 0700.

    Parameters
    ----------
    kind : str
        Its purpose, which becomes part of its name.
    parent : Path or None
        Its parent; ``None`` for the default temporary directory.
    """

    def __init__(self, kind: str = "", *, parent: Path | None = None) -> None:
        sweep(parent)
        super().__init__(lambda: Path(tempfile.mkdtemp(prefix=f"{PREFIX}{kind}", dir=parent)))


def sweep(parent: Path | None = None) -> None:
    """Remove the private directories of this user's killed processes.

    Parameters
    ----------
    parent : Path or None
        Their parent; ``None`` for the default temporary directory.
    """
    with suppress(OSError):
        found = Path(parent or tempfile.gettempdir()).glob(f"{PREFIX}*")
        remove_left(filter(_is_private, found), PrivateDirectory.lock_name)


def remove_left(directories: Iterable[Path], lock_name: str) -> None:
    """Remove the directories that no process owns any more, as far as possible within a few seconds.

    Parameters
    ----------
    directories : iterable of Path
        Candidates, which may each be an `OwnedDirectory`.
    lock_name : str
        Name of the file that an owner locks.
    """
    if sys.platform == "win32":
        return
    until = time.monotonic() + PATIENCE
    for path in directories:
        try:
            lock = os.open(path / lock_name, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue  # being created or removed, or not an owned directory
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(path, lock_name, seconds=until - time.monotonic())
        except BlockingIOError:
            pass
        finally:
            os.close(lock)


def remove_all(entries: Iterable[Path], *, seconds: float) -> bool:
    """Remove files and directories, as far as time allows; return whether all are gone.

    Parameters
    ----------
    entries : iterable of Path
        What to remove.
    seconds : float
        Maximum time to take.
    """
    until = time.monotonic() + seconds
    all_gone = True
    for entry in entries:
        if entry.is_dir() and not entry.is_symlink():
            all_gone &= remove_tree(entry, seconds=until - time.monotonic())
        else:
            entry.unlink()
    return all_gone


def _remove(path: Path, lock_name: str, *, seconds: float) -> None:
    """Remove a directory whose lock is held. The lock goes last, so that leftovers are found again."""
    if sys.platform == "win32":
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        if remove_all([entry for entry in path.iterdir() if entry.name != lock_name], seconds=seconds):
            (path / lock_name).unlink()
            path.rmdir()


def _is_private(path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and stat.S_IMODE(found.st_mode) == 0o700
