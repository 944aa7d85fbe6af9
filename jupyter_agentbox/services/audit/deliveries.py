"""The way of records to one place: first to the disk of this server, then there, again and again until it has them."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
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
        self._is_down = False
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
            # beside what happens now, which no old file may hold up
            in_background(self._deliver_left_behind(), what=f"handing records that were left to {self.name}"),
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
            await asyncio.wait([self._last.delivered, self._tasks[-1]], timeout=patience)
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
        """Hand over what this server kept: as it was made, not as it is on the disk, where others can write."""
        while True:
            await self._has_kept.wait()
            self._has_kept.clear()
            while self._kept:
                lines = await self._hand_over(_batch(self._kept))
                try:
                    await in_thread(self._waiting.sent, lines)
                except OSError as error:  # the place has them, and may get them again from the next server
                    log.error("records of the audit for %s cannot be removed from the disk: %s", self.name, error)
                for _ in lines:
                    receipt = self._kept.popleft()
                    receipt.settle(receipt.delivered)

    async def _deliver_left_behind(self) -> None:
        for left in await in_thread(lambda: list(self._left_behind())):
            try:
                while lines := await in_thread(left.read, _BATCH):
                    await in_thread(left.sent, await self._hand_over(lines))
            except OSError as error:
                log.error("records of the audit that were left for %s cannot be read: %s", self.name, error)
            else:
                await in_thread(left.discard)

    async def _hand_over(self, lines: Sequence[bytes]) -> Sequence[bytes]:
        """Hand over records, however long that takes; return those that were taken, the first or more of them."""
        pause = self._pause
        while not await self._is_taken(lines):
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST * self._pause)
            lines = lines[: max(1, len(lines) // 2)]  # a place may take fewer at once than these
        return lines

    async def _is_taken(self, lines: Sequence[bytes]) -> bool:
        try:
            await self._sink.send(lines)
        except Exception as error:  # noqa: BLE001  # whatever it is: an end of this task would be the end of the trail
            if not self._is_down:
                what = error if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
                log.warning("%s does not take records of the audit: %s", self.name, what)
            self._is_down = True
            return False
        if self._is_down:
            log.warning("%s takes records of the audit again", self.name)
        self._is_down = False
        return True


def _batch(receipts: Iterable[Receipt]) -> list[bytes]:
    """Return the first records, about as many bytes as are handed over at once, at least one."""
    lines: list[bytes] = []
    size = 0
    for receipt in receipts:
        size += len(receipt.line) + 1
        if lines and size > _BATCH:
            break
        lines.append(receipt.line)
    return lines
