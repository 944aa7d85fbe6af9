"""How many programs of MCP servers run at a time, and which one makes place for another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from jupyter_agentbox.exceptions import ToolServerError


class Holder(Protocol):
    """Who holds a place while it runs."""

    @property
    def is_idle(self) -> bool:
        """Whether it runs and nobody uses it."""

    @property
    def used_at(self) -> float:
        """When it was last used, by a monotonic clock."""

    async def stop(self) -> None:
        """End it; it has left its place when this returns."""


class Places:
    """The places of programs that run.

    Parameters
    ----------
    most : int or None
        How many there are; ``None`` for no limit.
    """

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._holders: list[Holder] = []
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def hold(self, holder: Holder) -> AsyncIterator[None]:
        """Hold a place. If there is none, the one that was not used for longest is stopped, of those that nobody uses.

        Raises
        ------
        ToolServerError
            If all are in use.
        """
        async with self._lock:
            await self._make_place()
            self._holders.append(holder)
        try:
            yield
        finally:
            self._holders.remove(holder)

    async def _make_place(self) -> None:
        while self._most is not None and len(self._holders) >= self._most:
            idle = [holder for holder in self._holders if holder.is_idle]
            if not idle:
                raise ToolServerError(
                    f"{len(self._holders)} MCP servers run already, as many as are allowed, and all are in use: try"
                    " again when one of them has answered, or stop one in the side panel"
                )
            await min(idle, key=lambda holder: holder.used_at).stop()
