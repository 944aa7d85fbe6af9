"""Control groups, where this user may create one: Linux itself counts a tree of processes and enforces a limit."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

#: Seconds that the last processes of a group may take to be gone.
_PATIENCE = 5.0

#: Controller -> the files that are written, of version 2 and of version 1. The first one is what must hold.
_LIMITS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "pids": (("pids.max",), ("pids.max",)),
    "memory": (("memory.max",), ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")),
}


@dataclass(frozen=True, slots=True)
class Group:
    """A control group with one limit.

    Parameters
    ----------
    path : Path
        Its directory.
    """

    path: Path

    def add(self, process: int) -> bool:
        """Move a process, and with it what it will start, into the group; return whether it is there."""
        try:
            (self.path / "cgroup.procs").write_text(str(process), encoding="ascii")
            return str(process) in (self.path / "cgroup.procs").read_text(encoding="ascii").split()
        except OSError:
            return False

    def what_was_ended(self) -> str:
        """Return what Linux ended because the group had no memory left; empty if nothing was."""
        for name in ("memory.events", "memory.oom_control"):
            with suppress(OSError):
                for line in (self.path / name).read_text(encoding="ascii").splitlines():
                    if line.startswith("oom_kill ") and (killed := int(line.split()[1])):
                        return f"Linux ended {killed} of the sandbox's processes: together they reached `memory_limit`"
        return ""

    def remove(self) -> None:
        """Remove the group, once what was in it has ended."""
        limit = time.monotonic() + _PATIENCE
        while self.path.is_dir():
            try:
                self.path.rmdir()
            except OSError:
                if time.monotonic() > limit:
                    return
                time.sleep(0.005)


def make_group(controller: str, limit: int) -> Group | None:
    """Return a new, empty group with a limit; ``None`` if this user cannot create one.

    Parameters
    ----------
    controller : str
        ``pids``: processes and threads; ``memory``: bytes.
    limit : int
        The most that all processes of the group have together.
    """
    mounts, membership = (
        Path(f"/proc/self/{name}").read_text(encoding="utf-8") for name in ("mountinfo", "cgroup")
    )  # fmt: skip
    for parent, names in parents(controller, mounts, membership):
        group = Group(parent / f"agentbox-{os.getpid()}-{secrets.token_hex(4)}")
        try:
            group.path.mkdir()
        except OSError:
            continue
        if _is_set(group.path, names, limit):
            return group
        group.remove()
    return None


def _is_set(path: Path, names: Iterable[str], limit: int) -> bool:
    needed, *more = names
    try:
        (path / needed).write_text(str(limit), encoding="ascii")
        held = int((path / needed).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return False
    for name in more:
        with suppress(OSError):  # a Linux that does not count what is swapped out
            (path / name).write_text(str(limit), encoding="ascii")
    with suppress(OSError):
        (path / "memory.swap.max").write_text("0", encoding="ascii")
    return limit - os.sysconf("SC_PAGE_SIZE") < held <= limit


def parents(controller: str, mounts: str, membership: str) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Yield the directories in which a new group may be created, and the names of the files with its limit.

    Parameters
    ----------
    controller : str
        As `make_group` takes it.
    mounts, membership : str
        The contents of ``/proc/self/mountinfo`` and ``/proc/self/cgroup``.
    """
    second, first = _LIMITS[controller]
    for version, own, top in _own(controller, mounts, membership):
        if version == 1:
            yield own, first
            continue
        # A group of version 2 that has processes gives its groups no memory controller: then it is the one above.
        for parent in (own, own.parent):
            with suppress(OSError):
                is_given = controller in (parent / "cgroup.subtree_control").read_text(encoding="ascii").split()
                if is_given and top in (parent, *parent.parents):
                    yield parent, second


def _own(controller: str, mounts: str, membership: str) -> Iterator[tuple[int, Path, Path]]:
    """Yield the version, this process's group, and the top of the hierarchy that can have the controller."""
    mine: dict[str, str] = {}
    for line in membership.splitlines():
        _, names, path = line.split(":", 2)
        mine |= dict.fromkeys(names.split(","), path)
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        root, top = (part.encode().decode("unicode_escape") for part in before.split(" ")[3:5])
        version = {"cgroup": 1, "cgroup2": 2}.get(kind)
        if version is None or (version == 1 and controller not in options.split(",")):
            continue
        own = mine.get(controller if version == 1 else "")
        if own is not None and Path(root) in (Path(own), *Path(own).parents):
            yield version, Path(top) / Path(own).relative_to(root), Path(top)
