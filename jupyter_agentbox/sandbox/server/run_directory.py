"""The private directory of one sandboxed kernel: its sockets and its small files, gone when it ends."""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from jupyter_agentbox.exceptions import SandboxRefusedError

from .removal import remove_tree

#: ``sun_path`` of ``unix(7)`` without its final zero.
LONGEST_SOCKET_PATH = 107

#: What a socket's path adds to the directory: ``/ipc/k-5``.
_SOCKET_SUFFIX = len("/ipc/k-5")

_LOCK: Final = "lock"
#: How the name of a directory begins that the next kernel does not get.
_ASIDE: Final = "aside-"
#: Seconds. What a kernel left must not hold up the next one, or the end of the server.
_PATIENCE: Final = 3.0


class RunDirectory:
    """One kernel's private directory.

    Attributes
    ----------
    path : Path
        The directory, mode 0700.
    sockets : Path
        Where the kernel makes its sockets; the only part that it can write.
    """

    def __init__(self, base: Path) -> None:
        while True:
            self.path = base / secrets.token_hex(6)
            self.path.mkdir(mode=0o700)
            # Held as long as this process lives, however it ends: who can take the lock may remove the directory.
            self._lock = os.open(self.path / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            if os.fstat(self._lock).st_nlink > 0:
                break
            os.close(self._lock)  # another server's `sweep` had it a moment earlier, and removed the directory
        self.sockets = self.path / "ipc"
        self.sockets.mkdir(mode=0o700)

    def directory(self, name: str) -> Path:
        """Return a directory of this name, made if it is missing."""
        made = self.path / name
        made.mkdir(mode=0o700, exist_ok=True)
        return made

    def file(self, name: str, content: str) -> Path:
        """Write a small file and return its path."""
        made = self.path / name
        made.write_text(content, encoding="utf-8")
        return made

    def clear(self) -> None:
        """Forget what the last kernel left. The sockets keep their paths, so that clients find the next kernel.

        What the kernel wrote is first put aside, whatever is in it, and then removed as far as possible.

        Raises
        ------
        SandboxRefusedError
            If it cannot even be put aside.
        """
        try:
            for entry in list(self.path.iterdir()):
                if entry.is_dir():
                    entry.rename(self.path / f"{_ASIDE}{secrets.token_hex(8)}")
                elif entry.name != _LOCK:
                    entry.unlink()
            self.sockets.mkdir(mode=0o700)
        except OSError as error:
            raise SandboxRefusedError(f"what the last kernel left cannot be put aside: {error}") from error
        _remove_all(self.path.glob(f"{_ASIDE}*"), seconds=_PATIENCE)

    def remove(self) -> None:
        """Remove everything. What cannot be removed, or not soon, is left for `sweep`."""
        if self._lock >= 0:
            _remove_run(self.path, seconds=_PATIENCE)
            os.close(self._lock)
            self._lock = -1


def sweep(base: Path) -> None:
    """Remove the run directories that servers left behind which were killed, as far as possible in a few seconds."""
    until = time.monotonic() + _PATIENCE
    # In any order but one: a directory that takes all the time is not always the first.
    for path in sorted(base.iterdir(), key=lambda _: secrets.token_bytes(4)):
        try:
            lock = os.open(path / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue  # just being made, or just being removed
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove_run(path, seconds=until - time.monotonic())
        except BlockingIOError:
            pass
        finally:
            os.close(lock)


def _remove_run(path: Path, *, seconds: float) -> None:
    """Remove a run directory whose lock is held; the lock last, so that what is left is found again."""
    with suppress(OSError):
        if _remove_all((entry for entry in list(path.iterdir()) if entry.name != _LOCK), seconds=seconds):
            (path / _LOCK).unlink()
            path.rmdir()


def _remove_all(entries: Iterable[Path], *, seconds: float) -> bool:
    """Remove files and directories; say whether all are gone."""
    until = time.monotonic() + seconds
    all_gone = True
    for entry in entries:
        if entry.is_dir():
            all_gone &= remove_tree(entry, seconds=until - time.monotonic())
        else:
            entry.unlink()
    return all_gone


def base_directory(environment: Mapping[str, str]) -> Path:
    """Return the directory of all run directories of this user, made if it is missing.

    Parameters
    ----------
    environment : mapping
        The server's environment.

    Raises
    ------
    SandboxRefusedError
        If someone else owns the place, others can enter it, or every candidate's path is too long for a socket.
    """
    user = os.getuid()
    candidates = [environment.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"]  # noqa: S108  # checked below
    for parent in candidates:
        base = Path(parent or "/nonexistent") / f"agentbox-{user}"
        if len(str(base)) + 13 + _SOCKET_SUFFIX > LONGEST_SOCKET_PATH or not base.parent.is_dir():
            continue
        try:
            base.mkdir(mode=0o700, exist_ok=True)
        except OSError:
            continue
        found = base.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != user or stat.S_IMODE(found.st_mode) & 0o077:
            raise SandboxRefusedError(f"`{base}` is not a private directory of this user; remove it")
        return base.resolve()
    raise SandboxRefusedError("there is no place for a kernel's sockets: set XDG_RUNTIME_DIR to a short path")
