"""The way of records to one place: first to the disk of this server, then there, again and again until it has them."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from jupyter_agentbox.background import in_background, in_thread
from jupyter_agentbox.core.ports import AuditSink

log = logging.getLogger(__name__)

#: Bytes that are handed over at once, about.
_BATCH: Final = 256_000
#: How much longer than the first the longest pause between two attempts is.
_LONGEST: Final = 60


class Waiting(Protocol):
    """Records that wait on disk, the first one first."""

    def append(self, lines: Sequence[bytes]) -> None:
        """Keep records, all or none; `OSError` if they cannot be kept."""

    def read(self, most: int) -> list[bytes]:
        """Return the first records, about as many bytes as are wanted."""

    def sent(self, lines: Sequence[bytes]) -> None:
        """Let go of the first records."""

    def discard(self) -> None:
        """Remove what is left."""

    def close(self) -> None:
        """Close it, and keep what waits."""


@dataclass(slots=True)
class Receipt:
    """How far a record is on its way to one place.

    Attributes
    ----------
    kept : Future
        Done when it is on the disk of this server; fails with `OSError` if it is lost.
    delivered : Future
        Done when the place has it; fails as well if it is lost.
    """

    line: bytes
    kept: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    delivered: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def fail(self, error: OSError) -> None:
        """Say that it is lost."""
        for future in (self.kept, self.delivered):
            future.set_exception(error)
            future.exception()  # looks at the error, should nobody wait

    def settle(self, future: asyncio.Future[None]) -> None:
        """Say that it is so far."""
        if not future.done():
            future.set_result(None)


class Delivery:
    """Hands records to one place, in their order.

    Parameters
    ----------
    sink : AuditSink
        The place.
    waiting : Waiting
        Keeps them meanwhile.
    left_behind : callable
        Yields what servers left that are gone; it is handed over first.
    pause : float
        Seconds before the second attempt; then twice as many, and so on.

    Attributes
    ----------
    name : str
        The place's.
    """

    def __init__(
        self,
        sink: AuditSink,
        waiting: Waiting,
        *,
        left_behind: Callable[[], Iterator[Waiting]] = lambda: iter(()),
        pause: float,
    ) -> None:
        self.name = sink.name
        self._sink = sink
        self._waiting = waiting
        self._left_behind = left_behind
        self._pause = pause
        self._last: Receipt | None = None
        self._fresh: list[Receipt] = []
        self._kept: deque[Receipt] = deque()
        self._has_fresh = asyncio.Event()
        self._has_kept = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to hand over."""
        self._tasks = [
            in_background(self._keep(), what=f"keeping records for {self.name}"),
            in_background(self._deliver(), what=f"handing records to {self.name}"),
        ]

    def put(self, line: bytes) -> Receipt:
        """Take a record."""
        receipt = self._last = Receipt(line)
        self._fresh.append(receipt)
        self._has_fresh.set()
        return receipt

    async def aclose(self, patience: float) -> None:
        """Wait so many seconds for what is on its way. What is left stays on disk for the next server."""
        if self._last is not None and self._tasks:
            await asyncio.wait([self._last.kept])
            await asyncio.wait([self._last.delivered], timeout=patience)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._waiting.close()

    async def _keep(self) -> None:
        while True:
            await self._has_fresh.wait()
            self._has_fresh.clear()
            receipts, self._fresh = self._fresh, []
            try:
                await in_thread(self._waiting.append, [receipt.line for receipt in receipts])
            except OSError as error:
                log.error("%d records of the audit for %s are lost: %s", len(receipts), self.name, error)
                for receipt in receipts:
                    receipt.fail(error)
                continue
            self._kept.extend(receipts)
            self._has_kept.set()
            for receipt in receipts:
                receipt.settle(receipt.kept)

    async def _deliver(self) -> None:
        for left in await in_thread(lambda: list(self._left_behind())):
            while await self._hand_over(left):
                pass
            await in_thread(left.discard)
        while True:
            await self._has_kept.wait()
            self._has_kept.clear()
            while self._kept:
                count = await self._hand_over(self._waiting)
                if not count:
                    self._lose("somebody removed them from this server's disk")
                for _ in range(min(count, len(self._kept))):
                    receipt = self._kept.popleft()
                    receipt.settle(receipt.delivered)

    def _lose(self, why: str) -> None:
        log.error("%d records of the audit for %s are lost: %s", len(self._kept), self.name, why)
        while self._kept:
            receipt = self._kept.popleft()
            receipt.delivered.set_exception(OSError(why))
            receipt.delivered.exception()

    async def _hand_over(self, waiting: Waiting) -> int:
        """Hand over the first records, however long that takes; return how many they were."""
        lines = await in_thread(waiting.read, _BATCH)
        pause, is_down = self._pause, False
        while lines:
            try:
                await self._sink.send(lines)
                break
            except OSError as error:
                if not is_down:
                    log.warning("%s does not take records of the audit: %s", self.name, error)
                is_down = True
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST * self._pause)
        if is_down:
            log.warning("%s takes records of the audit again", self.name)
        await in_thread(waiting.sent, lines)
        return len(lines)
