"""Starts processes that die with this one, and waits for their end.

``PR_SET_PDEATHSIG`` tells a process of the end of the *thread* that started it. So one thread, which lives as long as
this process, starts them all.
"""

from __future__ import annotations

import logging
import os
import subprocess
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import Any, Final, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")

#: Seconds for a process that was killed to end.
_PATIENCE: Final = 10.0


def in_lasting_thread(work: Callable[[], T]) -> Future[T]:
    """Run `work` in the thread that lives as long as this process."""
    return _thread(os.getpid()).submit(work)


def start(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a process that dies with this one, and wait until it runs."""
    return in_lasting_thread(lambda: subprocess.Popen(command, **options)).result()


def await_end(process: subprocess.Popen[bytes]) -> None:
    """Wait a limited time for the end of a process that was told to end.

    Parameters
    ----------
    process : Popen
        One of a sandbox's processes.
    """
    with suppress(subprocess.TimeoutExpired):
        process.wait(_PATIENCE)
        return
    process.kill()
    try:
        process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        log.error("process %d of a sandbox does not exit", process.pid)


@cache
def _thread(_process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="agentbox-launcher")
