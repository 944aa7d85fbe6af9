"""Work beside the event loop: tasks that nobody awaits while they run, and threads for what blocks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")


def in_background(
    work: Coroutine[object, object, None], *, what: str, on_failure: Callable[[], None] = lambda: None
) -> asyncio.Task[None]:
    """Run the work in a task. What it raises is logged, not kept until somebody awaits the task.

    Parameters
    ----------
    work : coroutine
        What to do.
    what : str
        What it is, for the log.
    on_failure : callable
        Called after an exception was logged; not if the task was cancelled.
    """
    return asyncio.create_task(_guarded(work, what, on_failure), name=what)


async def _guarded(work: Coroutine[object, object, None], what: str, on_failure: Callable[[], None]) -> None:
    try:
        await work
    except Exception:
        # The root of a task: nobody else would say that it ended.
        log.exception("%s failed", what)
        on_failure()


async def in_thread(work: Callable[..., T], *arguments: object) -> T:
    """Do what blocks in a thread, and return what it returns.

    A thread cannot be cancelled. If this task is, it still waits for the thread: what the work opened or started is
    known when the cancellation goes on.

    Parameters
    ----------
    work : callable
        What to do.
    *arguments
        For `work`.
    """
    running = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        if not running.cancelled():
            running.exception()  # nobody waits for it any more
        raise
