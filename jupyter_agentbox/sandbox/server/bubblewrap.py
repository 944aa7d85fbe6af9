"""The command line of bubblewrap: a new set of namespaces, and a root that holds what the view names."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from jupyter_agentbox.core.isolation import Isolation

from .opened_directories import Opened
from .view import Access, Mount, View

#: Run inside by a bubblewrap that mounts by name: each place must be what was opened, else nothing is run.
_COMPARE = (
    'while [ "$1" != -- ]; do'
    ' [ "$(stat -c %d:%i "$2")" = "$1" ] || { echo "$2 was replaced while the kernel was starting" >&2; exit 77; };'
    ' shift 2; done; shift; exec "$@"'
)


def find_bubblewrap(named: str = "") -> str | None:
    """Return the path of ``bwrap``.

    Parameters
    ----------
    named : str
        The path from the settings; empty to look on the system's path.
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
    opened: Opened | None = None,
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
        The level, which says how processes are seen.
    temporary : int or None
        The size of each file system in memory, in bytes.
    empty : Path
        An empty file that nobody can read, mounted over hidden files.
    seccomp : int
        A file descriptor with the system-call filter.
    info, block : int or None
        File descriptors: where bubblewrap reports the process that it made, and where it waits before it goes on.
    opened : Opened or None
        The work directory and the paths of the settings.
    pinned : list of int or None
        Receives the file descriptors of what is mounted from these, for bubblewrap to inherit. ``None`` if this
        bubblewrap accepts none: then another kernel that is quick can replace what is to be mounted; see `compared`.

    Raises
    ------
    SandboxRefusedError
        If something in the work directory was replaced while it was being checked.
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
    writable = {mount.place for mount in view.mounts if mount.access is Access.WRITE}
    for mount in view.mounts:
        fd = None if opened is None or pinned is None else _pin(mount, opened, writable)
        if fd is not None and pinned is not None:
            pinned.append(fd)
        command += _mount(mount, temporary, empty, fd)
    return [*command, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", str(view.work)]


def compared(command: Sequence[str], opened: Opened) -> list[str]:
    """Return a command that runs another inside, but only if every path there is what was opened outside.

    Parameters
    ----------
    command : sequence of str
        The command to run.
    opened : Opened
        The work directory and the paths of the settings.
    """
    places = [part for path, (device, file) in opened.identities.items() for part in (f"{device}:{file}", str(path))]
    return ["/bin/sh", "-c", _COMPARE, "sh", *places, "--", *command]


def _pin(mount: Mount, opened: Opened, writable: set[Path]) -> int | None:
    """Return a new file descriptor of what is to be mounted, if another kernel could replace that."""
    source = mount.source or mount.place
    if mount.access not in (Access.READ, Access.WRITE):
        return None
    if (fd := opened.fds.get(source)) is not None:
        return os.dup(fd)
    if writable.isdisjoint((source, *source.parents)) or not os.path.lexists(source) or source.is_symlink():
        return None
    return opened.fd_below(source)


def _mount(mount: Mount, temporary: int | None, empty: Path, fd: int | None) -> Sequence[str]:
    place, source = str(mount.place), mount.source or mount.place
    if mount.access is Access.PRIVATE:
        return _memory(place, temporary)
    option = "--bind" if mount.access is Access.WRITE else "--ro-bind"
    if fd is not None:
        return (f"{option}-fd", str(fd), place)
    if not os.path.lexists(source):
        return ()
    if mount.access is Access.HIDDEN:
        return ("--tmpfs", place, "--remount-ro", place) if source.is_dir() else ("--ro-bind", str(empty), place)
    if source.is_symlink():
        return ("--symlink", str(source.readlink()), place)
    return (option, str(source), place)


def _memory(place: str, size: int | None) -> tuple[str, ...]:
    return (*(() if size is None else ("--size", str(size))), "--tmpfs", place)
