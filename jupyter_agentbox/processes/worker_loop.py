"""The worker's end of a `WorkerProcess`: reads requests and writes answers, a line of JSON each."""

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
    """Answer until the end of standard input. A request that takes longer to compute than it may ends the process.

    Parameters
    ----------
    answer : callable
        Answers a request. What it raises ends the process.
    memory : int
        Bytes that all of the process may take.
    too_deep : mapping, optional
        The answer to a request that nests too deeply to be read, which ends the process by default.
    """
    for limit, value in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(OSError, ValueError):  # not on every platform
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
    # Nobody catches the signal: it ends the process in the middle of whatever it does. What counts is the time that
    # this process computes, so that a busy machine does not refuse what is quickly answered.
    signal.setitimer(signal.ITIMER_PROF, request["seconds"])
    found = answer(request)
    signal.setitimer(signal.ITIMER_PROF, 0)
    return found
