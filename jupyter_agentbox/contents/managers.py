"""File access of the server where sandboxed kernels can write, without following links that one may have created.

Jupyter saves a notebook by its name, and follows links. A kernel provides part of its content, such as outputs, so by
putting a link in place of its notebook, it could have the server write them to a file of its choice. It could also read
whatever the server copies, for example to a checkpoint.
"""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final, TypeAlias

from jupyter_server.services.contents.filecheckpoints import AsyncFileCheckpoints, FileCheckpoints
from jupyter_server.services.contents.fileio import AsyncFileManagerMixin, FileManagerMixin
from jupyter_server.services.contents.filemanager import FileContentsManager
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager, LargeFileManager
from jupyter_server.services.contents.manager import ContentsManager
from tornado.web import HTTPError

from jupyter_agentbox.background import in_thread

from .kernel_directories import KernelDirectories
from .locations import Location
from .refusals import as_http_error, refusal

_BAD_REQUEST: Final = 400

#: The two files of a copy: the one read, and the one written.
_Files: TypeAlias = tuple[AbstractContextManager[IO[Any]], AbstractContextManager[IO[Any]]]


def harden_contents_manager(contents: ContentsManager, directories: KernelDirectories) -> None:
    """Prevent a server's contents manager from following links where a sandboxed kernel can write, now and later.

    Parameters
    ----------
    contents : ContentsManager
        The server's. One that does not store contents in files is left unchanged.
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
    """The file operations of a contents manager, without links where necessary."""

    def __init__(self, manager: FileManagerMixin, directories: KernelDirectories) -> None:
        self._manager = manager
        self._find = directories.find
        self._open = manager.open
        self._atomic_writing = manager.atomic_writing
        self._copy: Any = manager._copy
        self._path_of: Any = manager._get_os_path

    def path_of(self, path: str) -> str:
        """Return the path of a file for the manager's operations, if no link leads there.

        Here, such a link is refused for all operations by name: deleting, renaming, creating a directory.
        """
        os_path: str = self._path_of(path)
        found = self._find(os_path)
        if found is not None and found.is_below_link:
            raise refusal(os_path, "there is a link on the way")
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
        """Return the two files of a copy, not yet open, if a kernel can write to the directory of one of them."""
        if self._find(src) is None and self._find(dest) is None:
            return None
        return self.open(src, "rb"), self.atomic_writing(dest, text=False)


class _SafeCheckpoints:
    """The operations of a checkpoints manager on files by name."""

    def __init__(self, manager: FileCheckpoints, directories: KernelDirectories) -> None:
        self._manager: Any = manager
        self._find = directories.find
        self._path_of: Any = manager._get_os_path
        self._delete: Any = manager.delete_checkpoint
        self._rename: Any = manager.rename_checkpoint

    def methods(self) -> dict[str, Any]:
        """Return the methods that replace the manager's."""
        is_async = isinstance(self._manager, AsyncFileCheckpoints)
        return {
            "_get_os_path": self.directory_of,
            "delete_checkpoint": self.delete_later if is_async else self.delete,
            "rename_checkpoint": self.rename_later if is_async else self.rename,
        }

    def directory_of(self, path: str) -> str:
        """Return the path of a directory that will have a directory of checkpoints."""
        os_path: str = self._path_of(path)
        found = self._find(str(Path(os_path) / self._manager.checkpoint_dir / "file"))
        if found is not None and found.is_below_link:
            raise refusal(os_path, "there is a link on the way to its checkpoints")
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
            (source or Location.at(old)).move(target or Location.at(new))
        return True


class _SafeListing:
    """A contents manager's listings of directories."""

    def __init__(self, manager: FileContentsManager, directories: KernelDirectories) -> None:
        self._path_of: Any = manager._get_os_path
        self._find = directories.find
        self._model: Any = manager._dir_model

    def model(self, path: str, content: bool = True) -> Any:
        os_path = self._path_of(path)
        found = self._find(os_path) if content else None
        if found is not None and found.is_link:
            raise refusal(os_path, "it is a link")
        return self._model(path, content=content)


class _Uploads:
    """Later parts of an upload, which the server appends to the file that the first part created."""

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
