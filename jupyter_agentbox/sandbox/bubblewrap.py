"""The command line of bubblewrap: a new set of namespaces, and a root that holds what the view names."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.exceptions import SandboxRefusedError

from .view import Access, Mount, View


def find_bubblewrap(named: str = "") -> str | None:
    """Return the path of ``bwrap``.

    Parameters
    ----------
    named : str
        What settings name; empty to look on the system's path.
    """
    return shutil.which(named or "bwrap", path=None if named else os.environ.get("PATH", "") + ":/usr/bin:/bin")


def bubblewrap_command(
    program: str,
    view: View,
    *,
    level: Isolation,
    temporary: int | None,
    empty: Path,
    seccomp: int,
    info: int | None = None,
    block: int | None = None,
    pinned: list[int] | None = None,
) -> list[str]:
    """Return the command up to the program that it runs.

    Parameters
    ----------
    program : str
        The path of ``bwrap``.
    view : View
        What is seen inside.
    level : Isolation
        Which way of seeing processes.
    temporary : int or None
        Bytes of each file system in memory.
    empty : Path
        An empty file that nobody can read; it is put over hidden files.
    seccomp : int
        A file descriptor with the system-call filter.
    info, block : int or None
        File descriptors: where bubblewrap says which process it made, and what it waits for before it goes on.
    pinned : list of int or None
        Takes the file descriptors that are opened for what is mounted from the work directory; bubblewrap needs them.
        ``None`` for a bubblewrap that takes none: then a kernel that shares the work directory and is quick can put
        a link in the place of what is to be mounted.

    Raises
    ------
    SandboxRefusedError
        If something in the work directory was exchanged while it was looked at.
    """
    own_processes = level is Isolation.BUBBLEWRAP
    command = [program, "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    command += ["--unshare-cgroup-try", "--hostname", "sandbox", "--die-with-parent", "--new-session"]
    command += ["--cap-drop", "ALL", "--seccomp", str(seccomp)]
    if info is not None:
        command += ["--info-fd", str(info)]
    if block is not None:
        command += ["--block-fd", str(block)]
    command += ["--dev", "/dev", *_memory("/dev/shm", temporary)]  # noqa: S108  # a place inside
    # Read-only in either case: a server that runs as root is root's user id inside, to which `/proc/sys` would yield.
    command += ["--proc", "/proc", "--remount-ro", "/proc"] if own_processes else ["--ro-bind", "/proc", "/proc"]
    for mount in view.mounts:
        command += _mount(mount, temporary, empty, pinned if view.work in (mount.place, *mount.place.parents) else None)
    return [*command, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", str(view.work)]


def _mount(mount: Mount, temporary: int | None, empty: Path, pinned: list[int] | None) -> Sequence[str]:
    place, source = str(mount.place), mount.source or mount.place
    if mount.access is Access.PRIVATE:
        return _memory(place, temporary)
    if not os.path.lexists(source):
        return ()
    if mount.access is Access.HIDDEN:
        return ("--tmpfs", place, "--remount-ro", place) if source.is_dir() else ("--ro-bind", str(empty), place)
    if source.is_symlink():
        return ("--symlink", str(source.readlink()), place)
    option = "--bind" if mount.access is Access.WRITE else "--ro-bind"
    if pinned is None:
        return (option, str(source), place)
    pinned.append(os.open(source, os.O_PATH | os.O_NOFOLLOW))
    if Path(f"/proc/self/fd/{pinned[-1]}").readlink() != source:
        raise SandboxRefusedError(f"`{source}` was exchanged while the kernel was started")
    return (f"{option}-fd", str(pinned[-1]), place)


def _memory(place: str, size: int | None) -> tuple[str, ...]:
    return (*(() if size is None else ("--size", str(size))), "--tmpfs", place)
