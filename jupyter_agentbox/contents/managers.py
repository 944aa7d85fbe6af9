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
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

from jupyter_client.multikernelmanager import MultiKernelManager
from jupyter_events import EventLogger
from jupyter_server.services.contents.filecheckpoints import AsyncFileCheckpoints, FileCheckpoints
from jupyter_server.services.contents.fileio import AsyncFileManagerMixin, FileManagerMixin
from jupyter_server.services.contents.filemanager import FileContentsManager
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager, LargeFileManager
from jupyter_server.services.contents.manager import ContentsManager
from tornado.web import HTTPError

from jupyter_agentbox.background import in_thread
from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.no_follow import NO_FOLLOW, open_directory
from jupyter_agentbox.protocol.kernel_actions import KERNEL_ACTIONS

_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | NO_FOLLOW
#: A pipe in the place of a file must not hold up the server.
_AT_ONCE: Final = getattr(os, "O_NONBLOCK", 0)
#: As many as Linux follows in a path.
_MOST_LINKS: Final = 40
#: Seconds between two looks at what other servers recorded: a list of a large directory asks for every file.
_RECORD: Final = 1.0
_BAD_REQUEST: Final = 400
_FORBIDDEN: Final = 403

#: What a copy reads, and what it writes.
_Files: TypeAlias = tuple[AbstractContextManager[IO[Any]], AbstractContextManager[IO[Any]]]


class KernelDirectories:
    """The directories in which sandboxed kernels of this server can write, or could.

    Parameters
    ----------
    kernels : MultiKernelManager
        The server's.
    events : EventLogger
        Where the kernels' managers say what they do.
    recorded : callable, optional
        Returns such directories of this user's other servers, and of earlier ones.
    """

    def __init__(
        self,
        kernels: MultiKernelManager,
        events: EventLogger,
        recorded: Callable[[], Iterable[Path]] = tuple,
    ) -> None:
        self._kernels = kernels
        self._recorded = recorded
        self._known: set[str] = set()
        self._due = 0.0
        events.add_listener(schema_id=KERNEL_ACTIONS, listener=self._on_action)

    def find(self, path: str) -> Location | None:
        """Return where a path leads, if that is in such a directory.

        Parameters
        ----------
        path : str
            Absolute; what of it is above such a directory may hold links.
        """
        self._look()
        return _locate(os.path.abspath(path), self._known) if self._known else None  # noqa: PTH100  # links matter

    def holds(self, directory: Path) -> bool:
        """Whether a sandboxed kernel can write in a directory, or could."""
        return self.find(str(directory / "file")) is not None

    def _look(self) -> None:
        for kernel_id in self._kernels.list_kernel_ids():
            provisioner: Any = self._kernels.get_kernel(kernel_id).provisioner
            self._known.update(map(str, getattr(provisioner, "kernel_directories", ())))
        if (now := time.monotonic()) >= self._due:
            self._due = now + _RECORD
            self._known.update(map(str, self._recorded()))

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

    def remove(self) -> None:
        """Remove the file. Raises as `reading` does."""
        with self._directory() as directory:
            _mode_of(self.parts[-1], directory)
            os.unlink(self.parts[-1], dir_fd=directory)

    def move(self, target: Location) -> None:
        """Give the file another place, and name. Raises as `reading` does."""
        with self._directory() as directory, target._directory() as other:
            _mode_of(self.parts[-1], directory)
            os.replace(self.parts[-1], target.parts[-1], src_dir_fd=directory, dst_dir_fd=other)

    @property
    def is_below_link(self) -> bool:
        """Whether one of the directories on the way is a link, or cannot be entered."""
        try:
            with self._directory():
                return False
        except FileNotFoundError:
            return False
        except OSError:
            return True

    @property
    def is_link(self) -> bool:
        """Whether it is a link itself."""
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


def _locate(path: str, directories: Set[str]) -> Location | None:
    """Go to a path, one name after the other, until that enters one of `directories`; links above them are followed."""
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
        except OSError:  # no link, or nothing there
            real = inner
            continue
        links += 1
        if links > _MOST_LINKS:
            return None
        waiting += _names(target)
        real = "/" if target.startswith("/") else real
    return None


def _names(path: str) -> list[str]:
    """Return the names of a path, the last one first."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]


def harden_contents_manager(contents: ContentsManager, directories: KernelDirectories) -> None:
    """Let a server's contents manager follow no link where a sandboxed kernel can write, now and later.

    Parameters
    ----------
    contents : ContentsManager
        The server's. One that keeps contents elsewhere than in files is left as it is.
    directories : KernelDirectories
        Where kernels can write.
    """
    managers: tuple[object, ...] = (contents, contents.checkpoints)
    for manager in managers:
        if isinstance(manager, FileManagerMixin):
            safe = _SafeFiles(manager, directories)
            copy = safe.copy_later if isinstance(manager, AsyncFileManagerMixin) else safe.copy
            methods: dict[str, Any] = {"open": safe.open, "atomic_writing": safe.atomic_writing, "_copy": copy}
            if isinstance(manager, LargeFileManager):
                methods["_save_large_file"] = _Uploads(manager._save_large_file, directories).append
            elif isinstance(manager, AsyncLargeFileManager):
                methods["_save_large_file"] = _Uploads(manager._save_large_file, directories).append_later
            if isinstance(manager, FileCheckpoints):
                methods |= _SafeCheckpoints(manager, directories).methods()
            elif isinstance(manager, FileContentsManager):
                methods["_get_os_path"] = safe.path_of
                methods["_dir_model"] = _SafeListing(manager, directories).model
            for name, method in methods.items():
                setattr(manager, name, method)


class _SafeFiles:
    """What a contents manager does with files, and the same without links where that is needed."""

    def __init__(self, manager: FileManagerMixin, directories: KernelDirectories) -> None:
        self._manager = manager
        self._find = directories.find
        self._open = manager.open
        self._atomic_writing = manager.atomic_writing
        self._copy: Any = manager._copy
        self._path_of: Any = manager._get_os_path

    def path_of(self, path: str) -> str:
        """Return the path of a file for whatever the manager does with it, if no link leads there.

        Such a link is refused here for all that goes by the name: deleting, renaming, making a directory.
        """
        os_path: str = self._path_of(path)
        found = self._find(os_path)
        if found is not None and found.is_below_link:
            raise _refusal(os_path, "there is a link on the way")
        return os_path

    def open(self, os_path: str, mode: str = "r", *args: Any, **options: Any) -> AbstractContextManager[IO[Any]]:
        found = self._find(os_path) if mode == "rb" else None
        return self._open(os_path, mode, *args, **options) if found is None else _reading(os_path, found)

    def atomic_writing(
        self, os_path: str, text: bool = True, encoding: str = "utf-8", **options: Any
    ) -> AbstractContextManager[IO[Any]]:
        found = self._find(os_path)
        if found is None:
            return self._atomic_writing(os_path, text=text, encoding=encoding, **options)
        return _writing(os_path, found, text=text, **({"encoding": encoding, "newline": "\n"} if text else {}))

    def copy(self, src: str, dest: str) -> None:
        files = self._files_of_copy(src, dest)
        if files is None:
            self._copy(src, dest)
        else:
            _copy(*files)

    async def copy_later(self, src: str, dest: str) -> None:
        files = self._files_of_copy(src, dest)
        if files is None:
            await self._copy(src, dest)
        else:
            await in_thread(_copy, *files)

    def _files_of_copy(self, src: str, dest: str) -> _Files | None:
        """Return what a copy reads and writes if one of the two is where a kernel can write; nothing is open yet."""
        if self._find(src) is None and self._find(dest) is None:
            return None
        return self.open(src, "rb"), self.atomic_writing(dest, text=False)


class _SafeCheckpoints:
    """What a manager of checkpoints does with files by their names."""

    def __init__(self, manager: FileCheckpoints, directories: KernelDirectories) -> None:
        self._manager: Any = manager
        self._find = directories.find
        self._path_of: Any = manager._get_os_path
        self._delete: Any = manager.delete_checkpoint
        self._rename: Any = manager.rename_checkpoint

    def methods(self) -> dict[str, Any]:
        """Return the methods that take the place of the manager's."""
        is_async = isinstance(self._manager, AsyncFileCheckpoints)
        return {
            "_get_os_path": self.directory_of,
            "delete_checkpoint": self.delete_later if is_async else self.delete,
            "rename_checkpoint": self.rename_later if is_async else self.rename,
        }

    def directory_of(self, path: str) -> str:
        """Return the path of a directory in which there will be one of checkpoints."""
        os_path: str = self._path_of(path)
        found = self._find(str(Path(os_path) / self._manager.checkpoint_dir / "file"))
        if found is not None and found.is_below_link:
            raise _refusal(os_path, "there is a link on the way to its checkpoints")
        return os_path

    def delete(self, checkpoint_id: str, path: str) -> None:
        if not self._delete_safely(checkpoint_id, path):
            self._delete(checkpoint_id, path)

    async def delete_later(self, checkpoint_id: str, path: str) -> None:
        if not self._delete_safely(checkpoint_id, path):
            await self._delete(checkpoint_id, path)

    def rename(self, checkpoint_id: str, old_path: str, new_path: str) -> None:
        if not self._rename_safely(checkpoint_id, old_path, new_path):
            self._rename(checkpoint_id, old_path, new_path)

    async def rename_later(self, checkpoint_id: str, old_path: str, new_path: str) -> None:
        if not self._rename_safely(checkpoint_id, old_path, new_path):
            await self._rename(checkpoint_id, old_path, new_path)

    def _delete_safely(self, checkpoint_id: str, path: str) -> bool:
        os_path = self._manager.checkpoint_path(checkpoint_id, path)
        if (found := self._find(os_path)) is None:
            return False
        try:
            with as_http_error(os_path):
                found.remove()
        except FileNotFoundError:
            self._manager.no_such_checkpoint(path, checkpoint_id)
        return True

    def _rename_safely(self, checkpoint_id: str, old_path: str, new_path: str) -> bool:
        old, new = (self._manager.checkpoint_path(checkpoint_id, path) for path in (old_path, new_path))
        source, target = self._find(old), self._find(new)
        if source is None and target is None:
            return False
        with suppress(FileNotFoundError), as_http_error(old):  # as Jupyter does: a file need not have one
            (source or _anywhere(old)).move(target or _anywhere(new))
        return True


class _SafeListing:
    """What a contents manager says of a directory."""

    def __init__(self, manager: FileContentsManager, directories: KernelDirectories) -> None:
        self._path_of: Any = manager._get_os_path
        self._find = directories.find
        self._model: Any = manager._dir_model

    def model(self, path: str, content: bool = True) -> Any:
        os_path = self._path_of(path)
        found = self._find(os_path) if content else None
        if found is not None and found.is_link:
            raise _refusal(os_path, "it is a link")
        return self._model(path, content=content)


class _Uploads:
    """Later parts of an upload, which the server adds to the file that the first one made."""

    def __init__(self, append: Any, directories: KernelDirectories) -> None:
        self._append = append
        self._find = directories.find

    def append(self, os_path: str, content: str, kind: str) -> None:
        found = self._find(os_path)
        if found is None:
            self._append(os_path, content, kind)
        else:
            _append(os_path, found, content, kind)

    async def append_later(self, os_path: str, content: str, kind: str) -> None:
        found = self._find(os_path)
        if found is None:
            await self._append(os_path, content, kind)
        else:
            await in_thread(_append, os_path, found, content, kind)


def _append(os_path: str, found: Location, content: str, kind: str) -> None:
    try:
        part = content.encode() if kind == "text" else base64.b64decode(content)
    except ValueError as error:
        raise HTTPError(_BAD_REQUEST, f"part of `{Path(os_path).name}` cannot be decoded: {error}") from error
    with as_http_error(os_path), found.appending() as file:
        file.write(part)


@contextmanager
def _reading(os_path: str, found: Location) -> Iterator[IO[bytes]]:
    with as_http_error(os_path), found.reading() as file:
        yield file


@contextmanager
def _writing(os_path: str, found: Location, *, text: bool, **options: Any) -> Iterator[IO[Any]]:
    with as_http_error(os_path), found.writing(text=text, **options) as file:
        yield file


def _copy(source: AbstractContextManager[IO[Any]], target: AbstractContextManager[IO[Any]]) -> None:
    """Copy a file and its times."""
    with source as read, target as written:
        shutil.copyfileobj(read, written)
        found = os.fstat(read.fileno())
        written.flush()
        os.utime(written.fileno(), ns=(found.st_atime_ns, found.st_mtime_ns))


@contextmanager
def as_http_error(os_path: str) -> Iterator[None]:
    """Let a failure be one that the page shows.

    Parameters
    ----------
    os_path : str
        The file that is read or written.

    Raises
    ------
    HTTPError
        403, in the place of an `OSError`. That a file is missing is said as ever.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise _refusal(os_path, error.strerror or str(error)) from error


def _refusal(os_path: str, why: str) -> HTTPError:
    return HTTPError(
        _FORBIDDEN,
        f"`{Path(os_path).name}` is in the work directory of a sandboxed kernel, and is or is below a link or no"
        f" regular file ({why}); it is neither read nor written",
    )


def _anywhere(os_path: str) -> Location:
    """Return a file that is where no kernel can write."""
    return Location(Path(os_path).parent, (Path(os_path).name,))


@contextmanager
def _opened(place: Path, parts: Sequence[str]) -> Iterator[int]:
    directory = open_directory(place, parts)
    try:
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
        raise PermissionError(f"`{name}` is not a regular file")
    return stat.S_IMODE(mode) & 0o777
