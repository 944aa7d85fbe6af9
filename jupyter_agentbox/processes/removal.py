"""Removes a directory that a kernel wrote: whatever it holds, no link is followed, and no failure is raised.

The tree is taken apart from the top: what lies in a directory below is moved up, and so removed as the top's own. That
takes two file descriptors and no recursion, however deep the tree is, and no path in it is ever too long.
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
    """Remove a directory with all that is in it, as far as that is possible and time allows; say whether it is gone.

    Parameters
    ----------
    path : Path
        The directory. What is above it must not be in a kernel's hands.
    seconds : float
        After these no further entry is removed.
    """
    until = time.monotonic() + seconds
    with suppress(OSError):
        with _descriptor(os.open(path.parent, _DIRECTORY)) as above, _opened(path.name, above) as top:
            while _flatten(top, lambda: time.monotonic() < until):
                pass
        path.rmdir()
    return not os.path.lexists(path)


def _flatten(top: int, has_time: Callable[[], bool]) -> bool:
    """Remove the files and empty directories of `top`, and move up what others hold; say whether that changed any."""
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
    """Remove the files and empty directories of `inner`, and move its other directories to `top`."""
    changed = False
    for name in _names(inner):
        if not has_time():
            break
        changed |= _remove(name, inner) or _move(name, inner, top)
    return changed


def _names(directory: int) -> Iterator[str]:
    # One after the other: a list of all names could take all memory.
    with os.scandir(directory) as entries:
        for entry in entries:
            yield entry.name


def _remove(name: str, directory: int) -> bool:
    """Remove a file or an empty directory; say whether it is gone."""
    for remove in (os.rmdir, os.unlink):
        with suppress(OSError):
            remove(name, dir_fd=directory)
            return True
    return False


def _move(name: str, inner: int, top: int) -> bool:
    with suppress(OSError):
        with _opened(name, inner):  # now it can be written, and so be moved
            pass
        os.rename(name, secrets.token_hex(16), src_dir_fd=inner, dst_dir_fd=top)
        return True
    return False


@contextmanager
def _opened(name: str, directory: int) -> Iterator[int]:
    """Open a directory with every right that its owner can have."""
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
    """Let a directory that cannot be opened be one that can."""
    if os.chmod in os.supports_follow_symlinks:
        os.chmod(name, _ALL, dir_fd=directory, follow_symlinks=False)
        return
    # On Linux, what cannot be read can still be named by a file descriptor.
    with _descriptor(os.open(name, DIRECTORY, dir_fd=directory)) as found:
        Path(f"/proc/self/fd/{found}").chmod(_ALL)


@contextmanager
def _descriptor(opened: int) -> Iterator[int]:
    try:
        yield opened
    finally:
        os.close(opened)
