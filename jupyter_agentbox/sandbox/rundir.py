"""The private directory of one sandboxed kernel: its sockets and its small files, gone when it ends."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path

from jupyter_agentbox.exceptions import SandboxRefusedError

#: ``sun_path`` of ``unix(7)`` without its final zero.
LONGEST_SOCKET_PATH = 107

#: What a socket's path adds to the directory: ``/ipc/k-5``.
_SOCKET_SUFFIX = len("/ipc/k-5")


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
            self._lock = os.open(self.path / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
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
        """Forget what the last kernel left. The sockets keep their paths, so that clients find the next kernel."""
        for entry in self.path.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)
            elif entry.name != "lock":
                entry.unlink()
        self.sockets.mkdir(mode=0o700)

    def remove(self) -> None:
        """Remove everything. What cannot be removed is left: it is ours alone."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def sweep(base: Path) -> None:
    """Remove the run directories that servers left behind which were killed."""
    for path in base.iterdir():
        try:
            lock = os.open(path / "lock", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue  # just being made, or just being removed
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        except BlockingIOError:
            pass
        finally:
            os.close(lock)


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
