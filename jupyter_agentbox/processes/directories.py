"""Private directories of this process. Those of a process that was killed are removed by the user's next one."""

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

#: What the names of private directories begin with.
PREFIX: Final = "agentbox-"
#: Seconds. What a kernel left must not hold up the next one, or the end of the server.
PATIENCE: Final = 3.0


class OwnedDirectory:
    """A directory that is this process's for as long as the process lives, however that ends.

    Whoever can lock the file `lock_name` in it may remove it: the operating system lets go of the lock when its owner
    ends.

    Parameters
    ----------
    make : callable
        Makes an empty directory and returns its path.

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
            os.close(self._lock)  # another process's sweep had it a moment earlier, and removed the directory

    def remove(self) -> None:
        """Remove it with all that is in it. What cannot be removed, or not soon, is left for a sweep."""
        if self._lock >= 0:
            lock, self._lock = self._lock, -1
            _remove(self.path, self.lock_name, seconds=PATIENCE)
            os.close(lock)


class PrivateDirectory(OwnedDirectory):
    """A temporary directory for this process alone, mode 0700.

    Parameters
    ----------
    kind : str
        What it is for, as a part of its name.
    parent : Path or None
        Where it is made; ``None`` for the place of temporary files.
    """

    def __init__(self, kind: str = "", *, parent: Path | None = None) -> None:
        sweep(parent)
        super().__init__(lambda: Path(tempfile.mkdtemp(prefix=f"{PREFIX}{kind}", dir=parent)))


def sweep(parent: Path | None = None) -> None:
    """Remove the private directories that processes of this user left behind which were killed.

    Parameters
    ----------
    parent : Path or None
        Where they are; ``None`` for the place of temporary files.
    """
    with suppress(OSError):
        found = Path(parent or tempfile.gettempdir()).glob(f"{PREFIX}*")
        remove_left(filter(_is_private, found), PrivateDirectory.lock_name)


def remove_left(directories: Iterable[Path], lock_name: str) -> None:
    """Remove those of several directories that no process owns any more, as far as possible in a few seconds.

    Parameters
    ----------
    directories : iterable of Path
        Where an `OwnedDirectory` may be.
    lock_name : str
        The name of the file that its owner locks.
    """
    if sys.platform == "win32":
        return
    until = time.monotonic() + PATIENCE
    for path in directories:
        try:
            lock = os.open(path / lock_name, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue  # just being made, or just being removed, or no such directory
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(path, lock_name, seconds=until - time.monotonic())
        except BlockingIOError:
            pass
        finally:
            os.close(lock)


def remove_all(entries: Iterable[Path], *, seconds: float) -> bool:
    """Remove files and directories, as far as time allows; say whether all are gone.

    Parameters
    ----------
    entries : iterable of Path
        What is to go.
    seconds : float
        How long that may take.
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
    """Remove a directory whose lock is held; the lock last, so that what is left is found again."""
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
