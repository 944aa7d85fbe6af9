"""`WorkClock`: limits how long something works; it stops while a person thinks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self


class WorkClock:
    """A time limit for an ``async with`` block, which raises `TimeoutError` when the time is over.

    Parameters
    ----------
    seconds : float or None
        How long the block may work; ``None`` for no limit.
    """

    def __init__(self, seconds: float | None) -> None:
        self._left = seconds
        self._timeout = asyncio.timeout(seconds)
        self._waits = 0
        self._has_ended = False

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._has_ended = True  # a person may think on, and the clock of what has ended cannot be set
        await self._timeout.__aexit__(kind, error, traceback)

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return self._timeout.expired()

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Stop the clock while this block waits for a person."""
        self._waits += 1
        if self._waits == 1 and not self._has_ended and not self.is_over:
            deadline = self._timeout.when()
            self._left = deadline - asyncio.get_running_loop().time() if deadline is not None else None
            self._timeout.reschedule(None)
        try:
            yield
        finally:
            self._waits -= 1
            if self._waits == 0 and self._left is not None and not self._has_ended and not self.is_over:
                self._timeout.reschedule(asyncio.get_running_loop().time() + self._left)
