"""Tells what belongs to the site: files and directories that the user of this process cannot change."""

from __future__ import annotations

import os
from pathlib import Path

from .protected_paths import way_to


def is_site(path: Path) -> bool:
    """Whether the user can change neither a file or directory nor any directory on the way to it.

    Root can change everything. For root, whatever is not below the home directory, and nobody else can change, is the
    site's.

    Parameters
    ----------
    path : Path
        An absolute path.
    """
    real, links = way_to(path)
    if os.getuid() == 0:
        way = (real, *real.parents)
        return real.exists() and Path.home().resolve() not in way and not any(map(_is_of_others, way))
    return real.exists() and not any(_is_own(one) for one in (real, *real.parents, *(link.parent for link in links)))


def _is_own(path: Path) -> bool:
    found = path.stat()
    is_sticky = bool(found.st_mode & 0o1000)  # only the owner of an entry can replace it
    return found.st_uid == os.getuid() or (os.access(path, os.W_OK) and not is_sticky)


def _is_of_others(path: Path) -> bool:
    found = path.stat()
    return found.st_uid != 0 or (bool(found.st_mode & 0o022) and not found.st_mode & 0o1000)
