"""The server's own reading and writing where sandboxed kernels can write: through no link that one may have made.

Jupyter saves a notebook by its name, and follows links. What is saved is partly the kernel's, outputs above all; so a
kernel that put a link in the place of its notebook would let the server write them to a file of its choice. And what
the server copies, to a checkpoint first of all, the kernel can read.
"""

from __future__ import annotations

import base64
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from jupyter_client.multikernelmanager import MultiKernelManager
from jupyter_events import EventLogger
from jupyter_server.services.contents.fileio import AsyncFileManagerMixin, FileManagerMixin
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager, LargeFileManager
from jupyter_server.services.contents.manager import ContentsManager
from tornado.web import HTTPError

from jupyter_agentbox.core.calls import JsonObject

from .lifecycle import KERNEL_ACTIONS

_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_DIRECTORY: Final = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | _NO_LINK
_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_LINK
#: A pipe in the place of a file must not hold up the server.
_AT_ONCE: Final = getattr(os, "O_NONBLOCK", 0)
_BAD_REQUEST: Final = 400
_FORBIDDEN: Final = 403


class KernelPlaces:
    """The directories in which sandboxed kernels of this server can write, or could.

    Parameters
    ----------
    kernels : MultiKernelManager
        The server's.
    events : EventLogger
        Where the kernels' managers say what they do.
    """

    def __init__(self, kernels: MultiKernelManager, events: EventLogger) -> None:
        self._kernels = kernels
        self._known: set[Path] = set()
        events.add_listener(schema_id=KERNEL_ACTIONS, listener=self._on_action)

    def find(self, path: str) -> Location | None:
        """Return where a path leads, if that is in such a directory.

        Parameters
        ----------
        path : str
            Absolute; what of it is above such a directory may hold links.
        """
        self._look()
        whole = Path(os.path.abspath(path))  # noqa: PTH100  # links are looked at below
        for above in reversed(whole.parents):
            real = Path(os.path.realpath(above))
            # The outermost first: what is below it, a kernel may have exchanged.
            for place in sorted(self._known, key=lambda one: len(one.parts)):
                if real == place or place in real.parents:
                    return Location(place, (*real.relative_to(place).parts, *whole.relative_to(above).parts))
        return None

    def holds(self, directory: Path) -> bool:
        """Whether a sandboxed kernel can write in a directory, or could."""
        return self.find(str(directory / "file")) is not None

    def _look(self) -> None:
        for kernel_id in self._kernels.list_kernel_ids():
            provisioner: Any = self._kernels.get_kernel(kernel_id).provisioner
            self._known.update(getattr(provisioner, "kernels_places", ()))

    async def _on_action(self, logger: EventLogger, schema_id: str, data: JsonObject) -> None:  # noqa: ARG002  # by name
        self._look()


@dataclass(frozen=True, slots=True)
class Location:
    """A file below a directory in which a kernel can write.

    Parameters
    ----------
    place : Path
        The directory, without links.
    parts : tuple of str
        The names that lead from it to the file. None of them may be a link.
    """

    place: Path
    parts: tuple[str, ...]

    @contextmanager
    def reading(self) -> Iterator[IO[bytes]]:
        """Open the file to read it.

        Raises
        ------
        OSError
            If that fails, or there is a link on the way, or no regular file.
        """
        with self._existing(os.O_RDONLY, "rb") as file:
            yield file

    @contextmanager
    def appending(self) -> Iterator[IO[bytes]]:
        """Open the file, which exists, to write at its end. Raises as `reading` does."""
        with self._existing(os.O_WRONLY | os.O_APPEND, "ab") as file:
            yield file

    @contextmanager
    def _existing(self, flags: int, mode: str) -> Iterator[IO[bytes]]:
        with _opened(self.place, self.parts[:-1]) as directory:
            fd = os.open(self.parts[-1], flags | _NO_LINK | _AT_ONCE, dir_fd=directory)
            with os.fdopen(fd, mode) as file:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    raise PermissionError(f"`{self.parts[-1]}` is no regular file")
                yield file

    @contextmanager
    def writing(self, *, text: bool = False, **options: Any) -> Iterator[IO[Any]]:
        """Give a new file, and put it in the place of the old one when it is written.

        Parameters
        ----------
        text : bool
            Whether text will be written.
        **options
            For `os.fdopen`.

        Raises
        ------
        OSError
            If that fails, or there is a link on the way, or something else than a regular file.
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


def keep_to_places(contents: ContentsManager, places: KernelPlaces) -> None:
    """Let a server's contents manager follow no link where a sandboxed kernel can write, now and later.

    Parameters
    ----------
    contents : ContentsManager
        The server's. One that keeps contents elsewhere than in files is left as it is.
    places : KernelPlaces
        Where kernels can write.
    """
    managers: tuple[object, ...] = (contents, contents.checkpoints)
    for manager in managers:
        if isinstance(manager, FileManagerMixin):
            kept = _KeptFiles(manager, places)
            copy = kept.copy_later if isinstance(manager, AsyncFileManagerMixin) else kept.copy
            methods: dict[str, Any] = {"open": kept.open, "atomic_writing": kept.atomic_writing, "_copy": copy}
            if isinstance(manager, LargeFileManager):
                methods["_save_large_file"] = _Uploads(manager._save_large_file, places).append
            elif isinstance(manager, AsyncLargeFileManager):
                methods["_save_large_file"] = _Uploads(manager._save_large_file, places).append_later
            for name, method in methods.items():
                setattr(manager, name, method)


class _KeptFiles:
    """What a contents manager does with files, and the same without links where that is needed."""

    def __init__(self, manager: FileManagerMixin, places: KernelPlaces) -> None:
        self._manager = manager
        self._find = places.find
        self._open = manager.open
        self._atomic_writing = manager.atomic_writing
        self._copy: Any = manager._copy

    @contextmanager
    def open(self, os_path: str, mode: str = "r", *args: Any, **options: Any) -> Iterator[IO[Any]]:
        found = self._find(os_path) if mode == "rb" else None
        if found is None:
            with self._open(os_path, mode, *args, **options) as file:
                yield file
        else:
            with _told(os_path), found.reading() as binary:
                yield binary

    @contextmanager
    def atomic_writing(
        self, os_path: str, text: bool = True, encoding: str = "utf-8", **options: Any
    ) -> Iterator[IO[Any]]:
        found = self._find(os_path)
        if found is None:
            with self._atomic_writing(os_path, text=text, encoding=encoding, **options) as file:
                yield file
            return
        options = {"encoding": encoding, "newline": "\n"} if text else {}
        with _told(os_path), found.writing(text=text, **options) as file:
            yield file

    def copy(self, src: str, dest: str) -> None:
        if not self._copy_kept(src, dest):
            self._copy(src, dest)

    async def copy_later(self, src: str, dest: str) -> None:
        if not self._copy_kept(src, dest):
            await self._copy(src, dest)

    def _copy_kept(self, src: str, dest: str) -> bool:
        """Copy a file if one of the two is where a kernel can write."""
        source, target = self._find(src), self._find(dest)
        if source is None and target is None:
            return False
        with (
            self.open(src, "rb") as read,
            self.atomic_writing(dest, text=False) as written,
        ):
            shutil.copyfileobj(read, written)
            found = os.fstat(read.fileno())
            written.flush()
            os.utime(written.fileno(), ns=(found.st_atime_ns, found.st_mtime_ns))
        return True


class _Uploads:
    """Later parts of an upload, which the server adds to the file that the first one made."""

    def __init__(self, append: Any, places: KernelPlaces) -> None:
        self._append = append
        self._find = places.find

    def append(self, os_path: str, content: str, kind: str) -> None:
        if not self._append_kept(os_path, content, kind):
            self._append(os_path, content, kind)

    async def append_later(self, os_path: str, content: str, kind: str) -> None:
        if not self._append_kept(os_path, content, kind):
            await self._append(os_path, content, kind)

    def _append_kept(self, os_path: str, content: str, kind: str) -> bool:
        found = self._find(os_path)
        if found is None:
            return False
        try:
            part = content.encode() if kind == "text" else base64.b64decode(content)
        except ValueError as error:
            raise HTTPError(_BAD_REQUEST, f"a part of `{Path(os_path).name}` cannot be decoded: {error}") from error
        with _told(os_path), found.appending() as file:
            file.write(part)
        return True


@contextmanager
def _told(os_path: str) -> Iterator[None]:
    """Let a failure be one that the page shows."""
    try:
        yield
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise
        name = Path(os_path).name
        raise HTTPError(
            _FORBIDDEN,
            f"`{name}` is in the work directory of a sandboxed kernel, and is or is below a link or no regular file"
            f" ({error.strerror or error}); it is neither read nor written",
        ) from error


@contextmanager
def _opened(place: Path, parts: Sequence[str]) -> Iterator[int]:
    """Open a directory, one name after the other; no name is followed if it is a link."""
    directory = os.open(place, _DIRECTORY)
    try:
        for part in parts:
            inner = os.open(part, _DIRECTORY, dir_fd=directory)
            os.close(directory)
            directory = inner
        yield directory
    finally:
        os.close(directory)


def _mode_of(name: str, directory: int) -> int | None:
    """Return the mode of what a new file will replace; ``None`` if there is nothing."""
    try:
        mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        raise PermissionError(f"`{name}` is no regular file")
    return stat.S_IMODE(mode) & 0o777
