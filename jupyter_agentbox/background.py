"""Tasks that nobody awaits while they run: one that fails is logged, and who depends on it hears of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine

log = logging.getLogger(__name__)


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
