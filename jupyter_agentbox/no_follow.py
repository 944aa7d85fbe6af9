"""Goes to a directory one name after the other, and follows none that is a link: a kernel may have made it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

#: Flags of an open that does not follow the last name, and that no program that is started inherits. Windows has none.
NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
#: To go through a directory, without the right to list it where that can be said.
DIRECTORY: Final = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | NO_FOLLOW


def open_directory(place: Path, names: Iterable[str], *, make: bool = False) -> int:
    """Open the directory that names lead to, and return its file descriptor.

    Parameters
    ----------
    place : Path
        Where to begin. It is opened by its path: links above it are followed.
    names : iterable of str
        The names of directories, each in the one before. None of them may be a link.
    make : bool
        Whether to make directories that are missing.

    Raises
    ------
    OSError
        If there is a link on the way, or no directory.
    """
    return open_below(os.open(place, DIRECTORY), names, flags=DIRECTORY, make=make)


def open_below(directory: int, names: Iterable[str], *, flags: int, make: bool = False) -> int:
    """Open what names lead to from an open directory, which is closed.

    Parameters
    ----------
    directory : int
        Its file descriptor.
    names, make
        As for `open_directory`.
    flags : int
        How each is opened; with `NO_FOLLOW` among them.

    Raises
    ------
    OSError
        If one cannot be opened.
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
    with suppress(FileExistsError):  # somebody else made it meanwhile
        os.mkdir(name, dir_fd=directory)  # relative to what is open
    return os.open(name, flags, dir_fd=directory)
