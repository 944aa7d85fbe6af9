"""The private directory of one sandboxed kernel: its sockets and its small files, removed when the kernel ends."""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.processes import directories
from jupyter_agentbox.processes.directories import OwnedDirectory, remove_all, remove_left

#: ``sun_path`` of ``unix(7)`` without its final zero.
LONGEST_SOCKET_PATH = 107

#: What a socket's path adds to the directory: ``/ipc/k-5``.
_SOCKET_SUFFIX = len("/ipc/k-5")

#: How the name of a directory begins that the next kernel does not get.
_ASIDE: Final = "aside-"


class RunDirectory(OwnedDirectory):
    """One kernel's private directory, mode 0700.

    Parameters
    ----------
    base : Path
        The directory of all run directories.

    Attributes
    ----------
    sockets : Path
        Where the kernel creates its sockets; the only part that it can write.
    """

    lock_name = "lock"

    def __init__(self, base: Path) -> None:
        super().__init__(lambda: _make(base))
        self.sockets = self.path / "ipc"
        self.sockets.mkdir(mode=0o700)

    def directory(self, name: str) -> Path:
        """Return a directory of this name; create it if it is missing."""
        made = self.path / name
        made.mkdir(mode=0o700, exist_ok=True)
        return made

    def file(self, name: str, content: str) -> Path:
        """Write a small file and return its path."""
        made = self.path / name
        made.write_text(content, encoding="utf-8")
        return made

    def clear(self) -> None:
        """Remove what the last kernel left. The sockets keep their paths, so that clients find the next kernel.

        What the kernel wrote is first moved aside, whatever it contains, and then removed as far as possible.

        Raises
        ------
        SandboxRefusedError
            If it cannot even be moved aside.
        """
        try:
            for entry in list(self.path.iterdir()):
                if entry.is_dir():
                    entry.rename(self.path / f"{_ASIDE}{secrets.token_hex(8)}")
                elif entry.name != self.lock_name:
                    entry.unlink()
            self.sockets.mkdir(mode=0o700)
        except OSError as error:
            raise SandboxRefusedError(f"the files that the last kernel left cannot be moved aside: {error}") from error
        remove_all(list(self.path.glob(f"{_ASIDE}*")), seconds=directories.PATIENCE)


def sweep(base: Path) -> None:
    """Remove, as far as possible in a few seconds, the run directories that killed servers left behind."""
    # In any order but one: a directory that takes all the time is not always the first.
    remove_left(sorted(base.iterdir(), key=lambda _: secrets.token_bytes(4)), RunDirectory.lock_name)


def _make(base: Path) -> Path:
    made = base / secrets.token_hex(6)
    made.mkdir(mode=0o700)
    return made


def base_directory(environment: Mapping[str, str]) -> Path:
    """Return the directory of all run directories of this user; create it if it is missing.

    Parameters
    ----------
    environment : mapping
        The server's environment.

    Raises
    ------
    SandboxRefusedError
        If someone else owns the directory, others can enter it, or every candidate's path is too long for a socket.
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
    raise SandboxRefusedError(
        "there is no suitable directory for a kernel's sockets: set XDG_RUNTIME_DIR to a short path"
    )
