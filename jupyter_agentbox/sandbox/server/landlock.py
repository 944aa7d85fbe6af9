"""The view of the file system as Landlock rules, which can only grant: what is hidden must be left out by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.sandbox.inside.syscalls import DEVICE, READ, READ_FILE, WRITE

from .protected_paths import inside
from .view import Access, View

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_FACTS = ("/proc/cpuinfo", "/proc/meminfo", "/proc/version", "/proc/filesystems")


def rules_of(view: View, *, read_only: Sequence[Path]) -> list[tuple[str, int]]:
    """Return the paths, and the rights beneath each of them.

    Parameters
    ----------
    view : View
        What the kernel sees.
    read_only : sequence of Path
        Places that must not be written.

    Raises
    ------
    SandboxRefusedError
        If something must be hidden or kept in a writable directory: Landlock cannot take rights away.
    """
    hidden = [mount.place for mount in view.mounts if mount.access is Access.HIDDEN and mount.place.exists()]
    rules = [(path, DEVICE) for path in _DEVICES] + [(path, READ_FILE) for path in _FACTS]
    for mount in view.mounts:
        if mount.access is Access.WRITE:
            _check(mount.place, [*hidden, *read_only, *view.kept])
            rules.append((str(mount.place), WRITE))
        elif mount.access is Access.READ:
            rules += [(str(path), READ) for path in without(mount.place, hidden)]
    return rules


def without(directory: Path, hidden: Iterable[Path]) -> list[Path]:
    """Return paths that together cover `directory` except what is hidden, and the directories above what is hidden."""
    directory = directory.resolve()
    left_out = inside(hidden, directory)
    if directory in {path.resolve() for path in hidden}:
        return []
    if not left_out or not directory.is_dir():
        return [directory]
    try:
        entries = sorted(directory.iterdir())
    except OSError:
        return []
    return [path for entry in entries if not entry.is_symlink() for path in without(entry, left_out)]


def _check(writable: Path, kept: Iterable[Path]) -> None:
    kept_inside = [*inside(kept, writable), *(path for path in kept if path == writable)]
    if kept_inside:
        raise SandboxRefusedError(
            f"the work directory `{writable}` holds `{kept_inside[0]}`, which must be hidden from the "
            "kernel; without namespaces, this machine cannot hide part of a directory. Choose a "
            "directory below it"
        )
