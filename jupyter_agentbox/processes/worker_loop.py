"""The worker side of a `WorkerProcess`: reads requests and writes answers, as lines of JSON."""

from __future__ import annotations

import contextlib
import json
import resource
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any


def answer_requests(
    answer: Callable[[dict[str, Any]], Mapping[str, Any]],
    *,
    memory: int,
    too_deep: Mapping[str, Any] | None = None,
) -> None:
    """Answer requests until the end of standard input. A request that takes too long to compute ends the process.

    Parameters
    ----------
    answer : callable
        Answers a request. An exception ends the process.
    memory : int
        Maximum memory of the process, in bytes.
    too_deep : mapping, optional
        The answer to a request that is nested too deeply to be parsed. By default, such a request ends the process.
    """
    for limit, value in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(OSError, ValueError):  # not available on every platform
            resource.setrlimit(limit, (value, value))
    for line in sys.stdin.buffer:
        found = _answered(line, answer, too_deep)
        sys.stdout.buffer.write(json.dumps(found).encode() + b"\n")
        sys.stdout.buffer.flush()


def _answered(
    line: bytes, answer: Callable[[dict[str, Any]], Mapping[str, Any]], too_deep: Mapping[str, Any] | None
) -> Mapping[str, Any]:
    try:
        request = json.loads(line)
    except RecursionError:
        if too_deep is None:
            raise
        return too_deep
    # Nobody catches the signal, so it ends the process whatever it is doing. Only this process's CPU time counts, so
    # that a busy machine does not refuse quick requests.
    signal.setitimer(signal.ITIMER_PROF, request["seconds"])
    found = answer(request)
    signal.setitimer(signal.ITIMER_PROF, 0)
    return found
