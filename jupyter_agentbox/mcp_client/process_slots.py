"""Limits the number of running MCP server programs, and chooses which one to stop for another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from jupyter_agentbox.exceptions import ToolServerError


class SlotHolder(Protocol):
    """A program that holds a slot while it runs."""

    @property
    def is_idle(self) -> bool:
        """Whether it is running and unused."""

    @property
    def used_at(self) -> float:
        """When it was last used, by a monotonic clock."""

    async def stop(self) -> None:
        """Stop it; on return, it has released its slot."""


class ProcessSlots:
    """The slots of running programs.

    Parameters
    ----------
    most : int or None
        Number of slots; ``None`` for no limit.
    advice : str
        What to do if all programs are in use.
    """

    def __init__(
        self,
        most: int | None,
        *,
        advice: str = "try again when one of them has answered, or stop one in the side panel",
    ) -> None:
        self._most = most
        self._advice = advice
        self._holders: list[SlotHolder] = []
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def hold(self, holder: SlotHolder) -> AsyncIterator[None]:
        """Hold a slot. If none is free, stop the unused program with the oldest last use.

        Raises
        ------
        ToolServerError
            If all programs are in use.
        """
        async with self._lock:
            await self._free_slot()
            self._holders.append(holder)
        try:
            yield
        finally:
            self._holders.remove(holder)

    async def _free_slot(self) -> None:
        while self._most is not None and len(self._holders) >= self._most:
            idle = [holder for holder in self._holders if holder.is_idle]
            if not idle:
                raise ToolServerError(
                    f"{len(self._holders)} MCP servers run already, as many as are allowed, and all are in use:"
                    f" {self._advice}"
                )
            await min(idle, key=lambda holder: holder.used_at).stop()
