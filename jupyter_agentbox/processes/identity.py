"""The identity of a process, by which another process on the same machine can tell whether it has ended."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
#: Indexes in `/proc/PID/stat`, after the name: the state, the number of threads, the start time.
_STATE, _THREADS, _START = 0, 17, 19


def machine_of_this_process() -> str:
    """Return an identifier shared by processes with the same process ids; empty if unknown."""
    try:
        boot = _BOOT.read_text().strip()
        pid = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""
    try:
        time = str(Path("/proc/self/ns/time").readlink())
    except OSError:  # older kernels do not have it
        time = ""
    return f"{boot} {pid} {time}"


def start_of(pid: int) -> str:
    """Return when a process started, in clock ticks since boot; empty if unknown."""
    fields = _stat(pid)
    return fields[_START] if fields else ""


def has_ended(pid: int, started: str) -> bool:
    """Whether a process of this machine has ended, even if its id was reused. If unknown, it counts as alive.

    Parameters
    ----------
    pid : int
        Its process id.
    started : str
        The result of `start_of` for it.
    """
    if pid <= 0 or not started:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # it exists, but belongs to another user
    fields = _stat(pid)
    if not fields:
        return False
    is_zombie = fields[_STATE] in "ZX" and int(fields[_THREADS]) <= 1
    return is_zombie or fields[_START] != started


def _stat(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return text.rpartition(")")[2].split()
