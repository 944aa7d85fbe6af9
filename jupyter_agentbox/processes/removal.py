"""Removes directories that a kernel wrote. Whatever they contain, no link is followed, and no error is raised.

The tree is removed from the top: the contents of subdirectories are moved up and removed there. This takes two file
descriptors and no recursion, however deep the tree is, and no path is ever too long.
"""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from jupyter_agentbox.no_follow import DIRECTORY, NO_FOLLOW

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | NO_FOLLOW
_ALL: Final = 0o700


def remove_tree(path: Path, *, seconds: float) -> bool:
    """Remove a directory with its contents, as far as possible and as time allows; return whether it is gone.

    Parameters
    ----------
    path : Path
        The directory. A kernel must not be able to change its parents.
    seconds : float
        Time after which no further entry is removed.
    """
    until = time.monotonic() + seconds
    with suppress(OSError):
        with _descriptor(os.open(path.parent, _DIRECTORY)) as above, _opened(path.name, above) as top:
            while _flatten(top, lambda: time.monotonic() < until):
                pass
        path.rmdir()
    return not os.path.lexists(path)


def _flatten(top: int, has_time: Callable[[], bool]) -> bool:
    """Remove the files and empty directories in `top`, and move up the contents of others; return whether it did."""
    changed = False
    for name in _names(top):
        if not has_time():
            return False
        if _remove(name, top):
            changed = True
            continue
        with suppress(OSError), _opened(name, top) as inner:
            changed |= _empty(inner, top, has_time)
        changed |= _remove(name, top)
    return changed


def _empty(inner: int, top: int, has_time: Callable[[], bool]) -> bool:
    """Remove the files and empty directories in `inner`, and move its other directories to `top`."""
    changed = False
    for name in _names(inner):
        if not has_time():
            break
        changed |= _remove(name, inner) or _move(name, inner, top)
    return changed


def _names(directory: int) -> Iterator[str]:
    # One by one: a list of all names could take all memory.
    with os.scandir(directory) as entries:
        for entry in entries:
            yield entry.name


def _remove(name: str, directory: int) -> bool:
    """Remove a file or an empty directory; return whether it is gone."""
    for remove in (os.rmdir, os.unlink):
        with suppress(OSError):
            remove(name, dir_fd=directory)
            return True
    return False


def _move(name: str, inner: int, top: int) -> bool:
    with suppress(OSError):
        with _opened(name, inner):  # now it is writable, so it can be moved
            pass
        os.rename(name, secrets.token_hex(16), src_dir_fd=inner, dst_dir_fd=top)
        return True
    return False


@contextmanager
def _opened(name: str, directory: int) -> Iterator[int]:
    """Open a directory, with all permissions for its owner."""
    try:
        found = os.open(name, _DIRECTORY, dir_fd=directory)
    except PermissionError:
        _unlock(name, directory)
        found = os.open(name, _DIRECTORY, dir_fd=directory)
    with _descriptor(found) as opened:
        if stat.S_IMODE(os.fstat(opened).st_mode) & _ALL != _ALL:
            os.fchmod(opened, _ALL)
        yield opened


def _unlock(name: str, directory: int) -> None:
    """Make a directory accessible that cannot be opened."""
    if os.chmod in os.supports_follow_symlinks:
        os.chmod(name, _ALL, dir_fd=directory, follow_symlinks=False)
        return
    # On Linux, even an unreadable directory can be referred to by a file descriptor.
    with _descriptor(os.open(name, DIRECTORY, dir_fd=directory)) as found:
        Path(f"/proc/self/fd/{found}").chmod(_ALL)


@contextmanager
def _descriptor(opened: int) -> Iterator[int]:
    try:
        yield opened
    finally:
        os.close(opened)
