"""Reports to an MCP client, while its request runs, what the request is doing and what its tools report."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from contextlib import suppress
from typing import Final, Protocol

from .activity import Activity

#: Seconds between two reports to a client that asked for progress.
REPORT_INTERVAL: Final = 5.0
#: Maximum number of messages of tools that wait for a slow client; of more, the latest are kept.
MOST_REPORTS: Final = 100


class ProgressClient(Protocol):
    """Receives progress reports of a request."""

    async def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Send a report."""


class ProgressReporter:
    """Reports progress to a client that asked for it.

    Parameters
    ----------
    client : ProgressClient
        Receives the reports; does nothing if it did not ask for progress.
    """

    def __init__(self, client: ProgressClient) -> None:
        self._client = client
        self._reports: deque[str] = deque(maxlen=MOST_REPORTS)
        self._last = 0.0
        self._has_changed = False
        self._over = asyncio.Event()
        self._changed = asyncio.Event()
        self.activity = Activity(self._change)

    def report(self, message: str) -> None:
        """Pass on a message of a tool or an MCP server once; if there are many, only the latest."""
        self._reports.append(message)
        self._changed.set()

    def finish(self) -> None:
        """Let `run` end after it has sent the remaining reports."""
        self._over.set()
        self._changed.set()

    async def run(self) -> None:
        """Report until `finish` or until cancelled."""
        start = time.monotonic()
        while not self._over.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(REPORT_INTERVAL):
                    await self._changed.wait()
            self._changed.clear()
            if not self._over.is_set() and (self._has_changed or not self._reports):
                self._has_changed = False
                await self._send(start, str(self.activity))
            await self._send_reports(start)
        await self._send_reports(start)

    async def _send_reports(self, start: float) -> None:
        while self._reports:
            await self._send(start, self._reports.popleft())

    async def _send(self, start: float, message: str) -> None:
        # Seconds, not the number that a tool gives: a cell can call many, and MCP wants a number that grows.
        self._last = max(round(time.monotonic() - start, 3), round(self._last + 0.001, 3))
        await self._client.report_progress(self._last, None, message)

    def _change(self) -> None:
        self._has_changed = True
        self._changed.set()
