"""Which processes a test started, and whether they have ended."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

import psutil


def children(pid: int | None = None, *, beside: Iterable[psutil.Process] = ()) -> list[psutil.Process]:
    """Return the processes below `pid` (this one by default), but for those of `beside` and what is below them.

    This process has the browser and its JupyterLab below it, if their tests ran before; they start and end processes
    of their own whenever they like.
    """
    known = set(beside)
    own = [child for child in psutil.Process(pid or os.getpid()).children() if child not in known]
    return own + [below for child in own for below in _below(child)]


def running(word: str, processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Return the processes that have a word in their commands; what has ended meanwhile has none."""
    return [process for process in processes if any(word in part for part in _command(process))]


def survivors(processes: Iterable[psutil.Process], timeout: float = 60) -> list[psutil.Process]:
    """Return the processes that still run after `timeout` seconds; return at once when none does.

    A zombie has ended: when it leaves the process table is up to process 1, which in a container may never look.
    """
    left = list(processes)
    end = time.monotonic() + timeout
    while True:
        left = [process for process in left if _runs(process)]
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.02)


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _below(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []
