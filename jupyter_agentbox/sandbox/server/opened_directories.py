"""Opens what a kernel will be given: once, and through no link that another kernel may have made.

A path is only a name: whoever can write to a directory on the way can replace what it names at any moment. So the work
directory and the paths of the settings are opened one component after the other. From then on only the file descriptor
counts; the path is just a label.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.no_follow import NO_FOLLOW, open_below

from .protected_paths import Protected, check_work_directory
from .settings import ExtraPaths

_NAMED: Final = getattr(os, "O_PATH", os.O_RDONLY) | NO_FOLLOW | os.O_NONBLOCK
#: As many as Linux follows in a path.
_MOST_LINKS: Final = 40

#: Device and number of a file: what it is, wherever it is.
Identity = tuple[int, int]


class Opened:
    """Open files and directories, each by its path, which contains no link.

    Parameters
    ----------
    kernels : iterable of Path
        Directories in which sandboxed kernels can write, or once could. No link in them is followed.
    """

    def __init__(self, kernels: Iterable[Path] = ()) -> None:
        self._kernels = frozenset(kernels)
        self._identities = frozenset(filter(None, map(_identity_of, self._kernels)))
        self._fds: dict[Path, int] = {}

    def open(self, asked: Path, *, root: Path | None = None) -> Path:
        """Open a file or directory and return its path.

        Parameters
        ----------
        asked : Path
            The path that was asked for. Links above it that belong to the machine or its user are followed.
        root : Path or None
            A directory below which no link is followed, because kernels may have had their notebooks anywhere in it.

        Raises
        ------
        SandboxRefusedError
            If a kernel may have made a link on the way.
        OSError
            If it is missing or cannot be reached.
        """
        walk = _Walk(self._kernels, self._identities)
        try:
            path = walk.go(asked, root)
        except BaseException:
            walk.close()
            raise
        if path in self._fds:
            walk.close()
        else:
            self._fds[path] = walk.here
        return path

    def open_work_directory(self, asked: Path, protected: Protected, *, root: Path | None = None) -> Path:
        """Open a work directory, if a kernel may have it, and return its path.

        Parameters
        ----------
        asked, root : Path
            As for `open`.
        protected : Protected
            What is to be kept from the kernel.

        Raises
        ------
        SandboxRefusedError
            If it cannot be opened, a kernel may have made a link on the way, or it would expose what is protected.
        """
        try:
            work = self.open(asked, root=root)
        except OSError as error:
            raise SandboxRefusedError(f"the work directory `{asked}` cannot be opened: {error.strerror}") from error
        if check_work_directory(work, protected) != work:
            raise SandboxRefusedError(f"the work directory `{asked}` was replaced while the kernel was starting")
        return work

    def open_extra_paths(self, extra: ExtraPaths) -> ExtraPaths:
        """Open the paths that settings name, and return them without links. Missing ones are left out.

        Parameters
        ----------
        extra : ExtraPaths
            Absolute paths.

        Raises
        ------
        SandboxRefusedError
            If a kernel may have made a link on the way to one.
        """
        return ExtraPaths(
            readable=tuple(self._existing(extra.readable)),
            writable=tuple(self._existing(extra.writable)),
            hidden=extra.hidden,
            read_only=extra.read_only,
            unprotected=extra.unprotected,
        )

    @property
    def fds(self) -> dict[Path, int]:
        """The file descriptors, by their paths."""
        return dict(self._fds)

    def fd_below(self, path: Path) -> int | None:
        """Open what is at `path`, below something that is open and through no link; ``None`` if it is below nothing.

        Raises
        ------
        SandboxRefusedError
            If it is no longer there, or a link leads there.
        """
        above = next((one for one in (path, *path.parents) if one in self._fds), None)
        if above is None:
            return None
        try:
            fd = open_below(os.dup(self._fds[above]), path.relative_to(above).parts, flags=_NAMED)
            if stat.S_ISLNK(os.fstat(fd).st_mode):
                os.close(fd)
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        except OSError as error:
            raise SandboxRefusedError(f"`{path}` was replaced while the kernel was starting: {error}") from error
        return fd

    @property
    def identities(self) -> dict[Path, Identity]:
        """The device and inode of each, by its path."""
        found = {path: os.fstat(fd) for path, fd in self._fds.items()}
        return {path: (one.st_dev, one.st_ino) for path, one in found.items()}

    def close(self) -> None:
        """Close them all."""
        while self._fds:
            os.close(self._fds.popitem()[1])

    def _existing(self, paths: Iterable[Path]) -> Iterator[Path]:
        for path in paths:
            try:
                yield self.open(path)
            except (FileNotFoundError, NotADirectoryError, PermissionError):
                continue


class _Walk:
    """Walks to a path, one component after the other."""

    def __init__(self, kernels: frozenset[Path], identities: frozenset[Identity]) -> None:
        self._kernels = kernels
        self._identities = identities
        self._path = Path("/")
        self._links = 0
        self._is_kernels = False
        self.here = os.open("/", _NAMED)

    def close(self) -> None:
        os.close(self.here)

    def go(self, asked: Path, root: Path | None) -> Path:
        asked = Path(os.path.abspath(asked))  # noqa: PTH100  # links are looked at below
        top = None if root is None else Path(os.path.abspath(root))  # noqa: PTH100
        below = asked.relative_to(top).parts if top is not None and top in (asked, *asked.parents) else ()
        above = asked.parts[1 : len(asked.parts) - len(below)]
        waiting = [*((name, True) for name in above), *((name, False) for name in below)]
        while waiting:
            name, may_be_link = waiting.pop(0)
            target = _target(name, self.here)
            if target is None:
                self._enter(name)
                continue
            if not may_be_link or self._is_kernels:
                raise SandboxRefusedError(
                    f"`{asked}` leads through the link `{self._path / name}`, which a kernel may have made;"
                    f" it leads to `{target}`: ask for that by its own path, or name it in `work_dir`"
                )
            self._links += 1
            if self._links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(asked))
            if target.startswith("/"):
                self._restart()
            waiting[:0] = [(part, True) for part in target.split("/") if part not in ("", ".")]
        return self._path

    def _enter(self, name: str) -> None:
        inner = os.open(name, _NAMED, dir_fd=self.here)
        found = os.fstat(inner)
        os.close(self.here)
        self.here = inner
        if stat.S_ISLNK(found.st_mode):
            raise SandboxRefusedError(f"`{self._path / name}` was replaced with a link")
        self._path = self._path.parent if name == ".." else self._path / name
        self._is_kernels |= self._path in self._kernels or (found.st_dev, found.st_ino) in self._identities

    def _restart(self) -> None:
        os.close(self.here)
        self.here, self._path = os.open("/", _NAMED), Path("/")


def _target(name: str, directory: int) -> str | None:
    """Return the target of a link; ``None`` if it is not a link."""
    try:
        return os.readlink(name, dir_fd=directory)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    return None


def _identity_of(path: Path) -> Identity | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
