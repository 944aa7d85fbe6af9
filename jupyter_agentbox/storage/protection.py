"""Tells whether the user of this process can change what a path leads to."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

_MOST_LINKS: Final = 40


def why_unprotected(path: Path) -> str:
    """Return why a file or directory is not protected from the user of this process; empty if it is.

    Everything on the way counts: whoever can write to a directory can replace the files in it. Root can write
    everything, so for a server that runs as root it matters whether anybody else can.

    Parameters
    ----------
    path : Path
        An absolute path of something that exists.
    """
    if not hasattr(os, "geteuid"):  # Windows: a user cannot write in the directories of the system
        return ""
    try:
        return _why(path, _MOST_LINKS)
    except OSError as error:
        return f"who may change it cannot be found out: {error.strerror}"


def _why(path: Path, links: int) -> str:
    place = Path(path.anchor)
    parts = path.parts[1:]
    for number, name in enumerate(parts):
        if why := _why_writable(place, of_entry=place / name):
            return why
        place = place / name
        if place.is_symlink():
            if not links:
                return "there are too many links on the way"
            target = place.readlink()
            start = target if target.is_absolute() else place.parent / target
            return _why(Path(os.path.normpath(start.joinpath(*parts[number + 1 :]))), links - 1)
    return _why_writable(place)


def _why_writable(place: Path, *, of_entry: Path | None = None) -> str:
    """Return why a file can be changed, or why one of the entries of a directory can."""
    found = place.stat()
    is_sticky = of_entry is not None and bool(found.st_mode & stat.S_ISVTX)
    user = os.geteuid()
    if found.st_uid == user != 0:
        return f"`{place}` belongs to the user of this server"
    if user == 0 and found.st_uid != 0:
        return f"`{place}` does not belong to root"
    if is_sticky and of_entry is not None and of_entry.lstat().st_uid != (user or -1):
        return ""  # an entry of somebody else can neither be renamed nor removed there
    if user == 0:
        return f"every user can write `{place}`" if found.st_mode & stat.S_IWOTH else ""
    return f"the user of this server can write `{place}`" if os.access(place, os.W_OK) else ""
