"""Background work: tasks that nobody awaits, and threads for blocking functions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")

#: The event loop refers to a task weakly. One that waits for something that only it knows would be collected.
_running: set[asyncio.Task[None]] = set()


def in_background(
    work: Coroutine[object, object, None], *, what: str, on_failure: Callable[[], None] = lambda: None
) -> asyncio.Task[None]:
    """Run a coroutine in a task. An exception is logged at once instead of when the task is awaited.

    Parameters
    ----------
    work : coroutine
        The work.
    what : str
        A description of the work, for the log.
    on_failure : callable
        Called after an exception was logged, but not if the task was cancelled.
    """
    task = asyncio.create_task(_guarded(work, what, on_failure), name=what)
    _running.add(task)
    task.add_done_callback(_running.discard)
    # A task that is cancelled before its first step never begins the work, which Python would warn of.
    task.add_done_callback(lambda _: work.close())
    return task


async def _guarded(work: Coroutine[object, object, None], what: str, on_failure: Callable[[], None]) -> None:
    try:
        await work
    except Exception:
        # The root of a task: nothing else would report its failure.
        log.exception("%s failed", what)
        on_failure()


async def in_thread(work: Callable[..., T], *arguments: object) -> T:
    """Run a blocking function in a thread, and return its result.

    A thread cannot be cancelled. If this task is cancelled, it still waits for the thread, so that everything that the
    function opened or started is known before the cancellation proceeds.

    Parameters
    ----------
    work : callable
        The function.
    *arguments
        Its arguments.
    """
    return await to_completion(asyncio.to_thread(work, *arguments))


async def to_completion(work: Coroutine[object, object, T]) -> T:
    """Run a coroutine and return its result; if this task is cancelled, end only when the coroutine has."""
    running = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        while not running.done():
            with suppress(asyncio.CancelledError):  # cancelled once more
                await asyncio.wait([running])
        if not running.cancelled():
            running.exception()  # marks it as retrieved: nobody awaits it any more
        raise
