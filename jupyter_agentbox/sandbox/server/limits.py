"""The resources that all processes of a sandbox may use together, and what enforces that."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from jupyter_agentbox.exceptions import SandboxRefusedError
from jupyter_agentbox.sandbox.watch.cgroups import Group, make_group

from .exit_reasons import LimitExceeded

_WATCHDOG: Final = Path(__file__).parents[1] / "watch" / "watchdog.py"

#: Starts a process outside the sandbox, whose output goes where the kernel's goes: its command, and its descriptors.
Spawn = Callable[[list[str], Sequence[int]], subprocess.Popen[bytes]]


class ResourceLimits:
    """Enforces limits on all processes of a sandbox together, by a control group or else by a process that watches.

    Parameters
    ----------
    processes : int or None
        The most processes and threads; ``None`` if there is no limit, or Linux itself enforces it for each process.
    memory : int or None
        The most bytes of memory; ``None`` if there is no limit.
    report : Path
        The file that gets the limit that ended something.
    overhead : int
        How many of the counted processes are the sandbox's own.
    """

    def __init__(self, *, processes: int | None, memory: int | None, report: Path, overhead: int = 0) -> None:
        self._processes = processes
        self._memory = memory
        self._report_file = report
        self._overhead = overhead
        self._group: Group | None = None

    def enforce(
        self, root: int, sandbox: int, *, end: signal.Signals, spawn: Spawn, on_watchdog_lost: Callable[[], None]
    ) -> None:
        """Enforce the limits on everything below a process that has not begun to run.

        Parameters
        ----------
        root : int
            The process above all those that are counted.
        sandbox : int
            The process whose end is the end of the sandbox.
        end : Signals
            What makes `root` end everything below it.
        spawn : callable
            Starts a process outside the sandbox.
        on_watchdog_lost : callable
            Called from a thread when nothing watches the sandbox any more; it must end everything in it.

        Raises
        ------
        SandboxRefusedError
            If nothing can enforce the limits.
        """
        if self._processes is None and self._memory is None:
            return
        with_overhead = None if self._processes is None else self._processes + self._overhead
        processes, memory = _group("pids", with_overhead, root), _group("memory", self._memory, root)
        self._group = memory
        groups = [group for group in (processes, memory) if group is not None]
        fds: list[int] = []
        try:
            fds += [os.pidfd_open(one) for one in (sandbox, root)]
            orders = {
                "sandbox": fds[0],
                "root": root,
                "root_fd": fds[1],
                "overhead": self._overhead,
                "signal": int(end),
                "processes": None if processes is not None else self._processes,
                "memory": None if memory is not None else self._memory,
                "groups": [str(group.path) for group in groups],
                "report": str(self._report_file),
            }
            watchdog = spawn([sys.executable, "-I", "-S", str(_WATCHDOG), json.dumps(orders)], fds)
        except (OSError, AttributeError) as error:
            on_watchdog_lost()
            for group in groups:
                group.remove()
            raise SandboxRefusedError(f"the sandbox's limits cannot be enforced: {error}") from error
        finally:
            for fd in fds:
                os.close(fd)
        threading.Thread(target=_attend, args=(watchdog, on_watchdog_lost), name="agentbox-limits", daemon=True).start()

    def exceeded(self) -> LimitExceeded | None:
        """Return the limit that the sandbox reached; ``None`` if it reached none."""
        # The group first: before it is removed, what it tells is kept in the file.
        if self._group is not None and (words := self._group.what_was_ended()):
            return self._limit_exceeded("memory_limit", words, is_end=False)
        with suppress(OSError, ValueError):  # no file, or one that is just being written
            return self._limit_exceeded(**json.loads(self._report_file.read_text(encoding="utf-8")))
        return None

    def _limit_exceeded(self, limit: str, words: str, *, is_end: bool) -> LimitExceeded:
        most = self._memory if limit == "memory_limit" else self._processes
        return LimitExceeded(limit=limit, most=most or 0, words=words, is_end=is_end)


def _group(controller: str, limit: int | None, process: int) -> Group | None:
    group = None if limit is None else make_group(controller, limit)
    if group is not None and not group.add(process):
        group.remove()
        return None
    return group


def _attend(watchdog: subprocess.Popen[bytes], on_watchdog_lost: Callable[[], None]) -> None:
    if watchdog.wait() != 0:
        on_watchdog_lost()
