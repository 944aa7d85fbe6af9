"""Starts processes that die with this one.

``PR_SET_PDEATHSIG`` tells a process of the end of the *thread* that started it. So one thread, that lives as long as
this process, starts them all.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


def in_lasting_thread(work: Callable[[], T]) -> Future[T]:
    """Run `work` in the thread that lives as long as this process."""
    return _thread(os.getpid()).submit(work)


def start(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a process that dies with this one, and wait until it runs."""
    return in_lasting_thread(lambda: subprocess.Popen(command, **options)).result()


@cache
def _thread(_process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="agentbox-launcher")
