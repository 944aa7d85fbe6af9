"""Runs outside a sandbox and as long as it; ends it when it exceeds a limit, and removes its control groups.

Started as ``python watchdog.py ORDERS`` by the server. `ORDERS` is JSON:

``sandbox``
    A file descriptor (``pidfd_open(2)``) of the process whose end is the sandbox's.
``root``, ``root_fd``, ``overhead``
    The process above all those that are counted, as its id and as a file descriptor, and how many of the counted
    processes are the sandbox's own.
``signal``
    The signal that makes that process end everything below it.
``processes``, ``memory``
    The most processes and threads, and the most bytes, if they must be watched; otherwise ``null``.
``groups``
    Control groups to remove; Linux enforces their limits.
``report``
    The file that gets, as JSON, the limit that was exceeded, the consequence in words, and whether the sandbox ended.

Counting takes a moment, in which processes can start. So what exceeds the limit is not refused, as by a control group,
but ends the sandbox. Most checks cost two reads: the number of threads on the whole machine, and the memory left, tell
whether the sandbox can have exceeded a limit since its processes were last counted.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

if __name__ == "__main__":
    # Run by its path: its directory must not be where modules are looked for, but its package must be.
    sys.path[:] = [path for path in sys.path if path != str(Path(__file__).parent)]
    sys.path.append(str(Path(__file__).parents[3]))

from jupyter_agentbox.processes.reaper import descendants, process_table
from jupyter_agentbox.sandbox.watch.cgroups import Group

#: Seconds between two looks, and between two counts though nothing seems to have changed.
_LOOK: Final = 0.02
_COUNT: Final = 0.5


def memory_of(found: list[int], most: int) -> int:
    """Return how many bytes processes have in memory; count more exactly if a first estimate is above `most`."""
    total = sum(map(_own_pages, found)) * os.sysconf("SC_PAGE_SIZE")
    if total <= most:
        return total
    return sum(map(_share, found))  # of what several have, each has its share


def _own_pages(process: int) -> int:
    with suppress(OSError):
        fields = _read(f"/proc/{process}/statm").split()
        return int(fields[1]) - int(fields[2]) if len(fields) > 2 else 0
    return 0


def _share(process: int) -> int:
    with suppress(OSError):
        for line in _read(f"/proc/{process}/smaps_rollup").splitlines():
            if line.startswith(b"Pss_Anon:"):
                return int(line.split()[1]) * 1024
    return _own_pages(process) * os.sysconf("SC_PAGE_SIZE")


class Watch:
    """Finds out whether a sandbox must be ended, and why.

    Parameters
    ----------
    orders : dict
        See the module's docstring.
    """

    def __init__(self, orders: dict[str, Any]) -> None:
        self._root: int = orders["root"]
        self._overhead: int = orders["overhead"]
        self._processes: int | None = orders["processes"]
        self._memory: int | None = orders["memory"]
        self._counted = self._used = 0
        self._threads = self._left = 0
        self._due = 0.0

    @property
    def has_work(self) -> bool:
        """Whether there is a limit to watch."""
        return self._processes is not None or self._memory is not None

    def look(self) -> tuple[str, str] | None:
        """Return the limit that is exceeded, and by what; ``None`` if none is."""
        now, threads, left = time.monotonic(), _threads_of_machine(), _memory_left()
        if now < self._due and not self._can_have_passed(threads, left):
            return None
        self._due, self._threads, self._left = now + _COUNT, threads, left
        table = process_table()
        found = [self._root, *descendants(self._root, table)] if self._root in table else []
        self._counted = sum(table[process][1] for process in found) - self._overhead
        if self._processes is not None and self._counted > self._processes:
            had = f"it had {self._counted} processes and threads"
            return "process_limit", f"{had}; `process_limit` is {self._processes}"
        if self._memory is not None:
            self._used = memory_of(found, self._memory)
            if self._used > self._memory:
                had = f"its processes had {self._used} bytes of memory together"
                return "memory_limit", f"{had}; `memory_limit` is {self._memory}"
        return None

    def _can_have_passed(self, threads: int, left: int) -> bool:
        more_threads, more_memory = max(0, threads - self._threads), max(0, self._left - left)
        return (self._processes is not None and self._counted + more_threads > self._processes) or (
            self._memory is not None and self._used + more_memory > self._memory
        )


def _threads_of_machine() -> int:
    return int(_read("/proc/loadavg").split()[3].partition(b"/")[2])


def _memory_left() -> int:
    lines = _read("/proc/meminfo").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(b"MemAvailable:"))


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123  # pathlib doubles what a count costs
        return file.read()


def main(orders: dict[str, Any]) -> None:
    """Watch the sandbox until it has ended."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # meant for the server, which ends the sandbox in its own way
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)  # ahead of what a fork bomb started, if this user may
    watch = Watch(orders)
    has_ended = select.poll()
    has_ended.register(orders["sandbox"], select.POLLIN)
    while not has_ended.poll(_LOOK * 1000 if watch.has_work else None):
        if (passed := watch.look()) is not None:
            limit, how = passed
            write_report(orders["report"], limit, f"the sandbox was ended: {how}", is_end=True)
            signal.pidfd_send_signal(orders["root_fd"], orders["signal"])
            has_ended.poll()
            break
    remove_groups(orders)


def write_report(report: str, limit: str, words: str, *, is_end: bool) -> None:
    """Write, for the server, what a limit did."""
    with suppress(OSError):
        Path(report).write_text(json.dumps({"limit": limit, "words": words, "is_end": is_end}), encoding="utf-8")


def remove_groups(orders: dict[str, Any]) -> None:
    """Remove the control groups, after noting what Linux ended in them."""
    for group in map(Group, map(Path, orders["groups"])):
        if words := group.what_was_ended():
            write_report(orders["report"], "memory_limit", words, is_end=False)
        group.remove()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
