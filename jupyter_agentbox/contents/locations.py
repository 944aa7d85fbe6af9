"""Files in directories where sandboxed kernels can write, opened name by name, without following links."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator, Sequence, Set
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from jupyter_agentbox.no_follow import NO_FOLLOW, open_directory

_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_FOLLOW
#: A pipe in place of a file must not block the server.
_AT_ONCE: Final = getattr(os, "O_NONBLOCK", 0)
#: The number of links that Linux follows in a path.
_MOST_LINKS: Final = 40


@dataclass(frozen=True, slots=True)
class Location:
    """A file below a directory in which a kernel can write.

    Parameters
    ----------
    place : Path
        The directory, without links.
    parts : tuple of str
        The names from there to the file, none of which may be a link.
    """

    place: Path
    parts: tuple[str, ...]

    @classmethod
    def at(cls, path: str) -> Location:
        """Return the location of a file where no kernel can write; links above it are followed."""
        return cls(Path(path).parent, (Path(path).name,))

    @contextmanager
    def reading(self) -> Iterator[IO[bytes]]:
        """Open the file for reading.

        Raises
        ------
        OSError
            If that fails, if there is a link on the way, or if it is not a regular file.
        """
        with self._existing(os.O_RDONLY, "rb") as file:
            yield file

    @contextmanager
    def appending(self) -> Iterator[IO[bytes]]:
        """Open the existing file for appending. Raises the same errors as `reading`."""
        with self._existing(os.O_WRONLY | os.O_APPEND, "ab") as file:
            yield file

    def remove(self) -> None:
        """Remove the file. Raises the same errors as `reading`."""
        with self._directory() as directory:
            _mode_of(self.parts[-1], directory)
            os.unlink(self.parts[-1], dir_fd=directory)

    def move(self, target: Location) -> None:
        """Move the file. Raises the same errors as `reading`."""
        with self._directory() as directory, target._directory() as other:
            _mode_of(self.parts[-1], directory)
            os.replace(self.parts[-1], target.parts[-1], src_dir_fd=directory, dst_dir_fd=other)

    @property
    def is_below_link(self) -> bool:
        """Whether a directory on the way is a link, or cannot be opened."""
        try:
            with self._directory():
                return False
        except FileNotFoundError:
            return False
        except OSError:
            return True

    @property
    def is_link(self) -> bool:
        """Whether the file itself is a link."""
        return self.place.joinpath(*self.parts).is_symlink()

    def _directory(self) -> AbstractContextManager[int]:
        return _opened(self.place, self.parts[:-1])

    @contextmanager
    def _existing(self, flags: int, mode: str) -> Iterator[IO[bytes]]:
        with self._directory() as directory:
            fd = os.open(self.parts[-1], flags | NO_FOLLOW | _AT_ONCE, dir_fd=directory)
            with os.fdopen(fd, mode) as file:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    raise PermissionError(f"`{self.parts[-1]}` is not a regular file")
                yield file

    @contextmanager
    def writing(self, *, text: bool = False, **options: Any) -> Iterator[IO[Any]]:
        """Yield a new file, which replaces the old one once it is written.

        Parameters
        ----------
        text : bool
            Whether text will be written.
        **options
            For `os.fdopen`.

        Raises
        ------
        OSError
            If that fails, if there is a link on the way, or if the old one is not a regular file.
        """
        *above, name = self.parts
        new = f".~{name}.{secrets.token_hex(4)}"
        with _opened(self.place, above) as directory:
            mode = _mode_of(name, directory)
            fd = os.open(new, _NEW, 0o666, dir_fd=directory)
            try:
                with os.fdopen(fd, "w" if text else "wb", **options) as file:
                    if mode is not None:
                        os.fchmod(fd, mode)
                    yield file
                    file.flush()
                    os.fsync(fd)
                os.replace(new, name, src_dir_fd=directory, dst_dir_fd=directory)
            except BaseException:
                with suppress(OSError):
                    os.unlink(new, dir_fd=directory)
                raise


def locate(path: str, directories: Set[str]) -> Location | None:
    """Follow a path name by name until it enters one of `directories`; links above them are followed."""
    waiting = _names(path)
    real, links = "/", 0
    while waiting:
        if real in directories:
            return Location(Path(real), tuple(reversed(waiting)))
        name = waiting.pop()
        if name == "..":
            real = os.path.dirname(real)  # noqa: PTH120  # text: there is no link in it
            continue
        inner = os.path.join(real, name)  # noqa: PTH118
        try:
            target = os.readlink(inner)  # noqa: PTH115
        except OSError:  # not a link, or missing
            real = inner
            continue
        links += 1
        if links > _MOST_LINKS:
            return None
        waiting += _names(target)
        real = "/" if target.startswith("/") else real
    return None


def _names(path: str) -> list[str]:
    """Return the names in a path, last one first."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]


@contextmanager
def _opened(place: Path, parts: Sequence[str]) -> Iterator[int]:
    directory = open_directory(place, parts)
    try:
        yield directory
    finally:
        os.close(directory)


def _mode_of(name: str, directory: int) -> int | None:
    """Return the mode of the file that a new one will replace; ``None`` if there is none."""
    try:
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        raise PermissionError(f"`{name}` is not a regular file")
    return stat.S_IMODE(mode) & 0o777
