"""Opens directories name by name without following symbolic links, which a kernel may have created."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

#: Flags to open a file without following a link and without inheritance by child processes. Windows has none.
NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
#: Flags to pass through a directory, if possible without permission to list it.
DIRECTORY: Final = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | NO_FOLLOW


def open_directory(place: Path, names: Iterable[str], *, make: bool = False) -> int:
    """Open the directory at the end of a series of names, and return its file descriptor.

    Parameters
    ----------
    place : Path
        The directory to start in. It is opened by its path, so links above it are followed.
    names : iterable of str
        The names of directories, each inside the previous one. None of them may be a link.
    make : bool
        Whether to create missing directories.

    Raises
    ------
    OSError
        If a name is a link, or not a directory.
    """
    return open_below(os.open(place, DIRECTORY), names, flags=DIRECTORY, make=make)


def open_below(directory: int, names: Iterable[str], *, flags: int, make: bool = False) -> int:
    """Open the file at the end of a series of names, starting in an open directory, which is closed.

    Parameters
    ----------
    directory : int
        Its file descriptor.
    names, make
        As for `open_directory`.
    flags : int
        The flags to open each name with, including `NO_FOLLOW`.

    Raises
    ------
    OSError
        If a name cannot be opened.
    """
    try:
        for name in names:
            inner = _open(name, directory, flags=flags, make=make)
            os.close(directory)
            directory = inner
    except BaseException:
        os.close(directory)
        raise
    return directory


def _open(name: str, directory: int, *, flags: int, make: bool) -> int:
    try:
        return os.open(name, flags, dir_fd=directory)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):  # somebody else created it meanwhile
        os.mkdir(name, dir_fd=directory)  # relative to the open directory
    return os.open(name, flags, dir_fd=directory)
