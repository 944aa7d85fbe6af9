"""The way of records to one place: first to the disk of this server, then there, again and again until it has them."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final, Protocol

from jupyter_agentbox.background import in_background, in_thread
from jupyter_agentbox.core.ports import AuditSink
from jupyter_agentbox.exceptions import RecordsRejectedError

log = logging.getLogger(__name__)

#: Bytes that are handed over at once, about.
_BATCH: Final = 256_000
#: How much longer than the first the longest pause between two attempts is.
_LONGEST: Final = 60
#: How often a place has to refuse a record that comes alone until it is set aside.
_REFUSALS: Final = 5


class Fate(str, Enum):
    """What became of a record."""

    DELIVERED = "delivered"
    REJECTED = "rejected"
    """The place refused it, and it is in a file of its own."""

    LOST = "lost"
    """This server's disk did not take it."""


class Waiting(Protocol):
    """Records that wait on disk, the first one first."""

    def append(self, lines: Sequence[bytes]) -> None:
        """Keep records, all or none; `OSError` if they cannot be kept."""

    def read(self, most: int) -> list[bytes]:
        """Return the first records, about as many bytes as are wanted."""

    def sent(self, lines: Sequence[bytes]) -> None:
        """Let go of the first records."""

    def set_aside(self, line: bytes) -> Path:
        """Keep a record that the place refuses, and return the file; `OSError` if it cannot be kept."""

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
        Done when the place has it; fails if it is lost, or the place refuses it.
    """

    line: bytes
    kept: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    delivered: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def fail(self, error: OSError) -> None:
        """Say that it is lost."""
        for future in (self.kept, self.delivered):
            if not future.done():
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
        The place that gets the records.
    waiting : Waiting
        Keeps them meanwhile.
    left_behind : callable
        Yields what servers left that are gone, one after the other; it is handed over beside what is new.
    pause : float
        Seconds before the second attempt; then twice as many, and so on.
    count : callable
        Told what became of how many records.

    Attributes
    ----------
    name : str
        The name of the place.
    """

    def __init__(
        self,
        sink: AuditSink,
        waiting: Waiting,
        *,
        left_behind: Callable[[], Iterator[Waiting]] = lambda: iter(()),
        pause: float,
        count: Callable[[Fate, int], None] = lambda _fate, _records: None,
    ) -> None:
        self.name = sink.name
        self._sink = sink
        self._waiting = waiting
        self._left_behind = left_behind
        self._pause = pause
        self._count = count
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
                self._count(Fate.LOST, len(receipts))
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
                handed = await self._hand_over(_batch(self._kept), self._waiting)
                try:
                    await in_thread(self._waiting.sent, handed.lines)
                except OSError as error:  # the place has them, and may get them again from the next server
                    log.error("records of the audit for %s cannot be removed from the disk: %s", self.name, error)
                for _ in handed.lines:
                    receipt = self._kept.popleft()
                    if handed.refusal is None:
                        receipt.settle(receipt.delivered)
                    else:
                        receipt.fail(handed.refusal)

    async def _deliver_left_behind(self) -> None:
        spools = self._left_behind()
        while (left := await in_thread(next, spools, None)) is not None:  # one is open at a time: there may be many
            try:
                while lines := await in_thread(left.read, _BATCH):
                    await in_thread(left.sent, (await self._hand_over(lines, left)).lines)
            except OSError as error:
                log.error("records of the audit that were left for %s cannot be read: %s", self.name, error)
            else:
                await in_thread(left.discard)
            finally:
                left.close()

    async def _hand_over(self, lines: Sequence[bytes], waiting: Waiting) -> _Handed:
        """Hand over records, however long that takes; return the first or more of them, which are done with.

        A record that the place refuses again and again, also when it comes alone, is set aside: those behind it go on.
        """
        pause, refusals = self._pause, 0
        while (error := await self._attempt(lines)) is not None:
            is_refused = isinstance(error, RecordsRejectedError)
            refusals = refusals + 1 if is_refused and len(lines) == 1 else 0
            if refusals >= _REFUSALS and await self._is_set_aside(lines[0], waiting, error):
                return _Handed(lines, refusal=OSError(f"{self.name} refused it: {error}"))
            if not is_refused or len(lines) == 1:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST * self._pause)
            lines = lines[: max(1, len(lines) // 2)]  # a place may take fewer at once than these
        self._count(Fate.DELIVERED, len(lines))
        return _Handed(lines)

    async def _is_set_aside(self, line: bytes, waiting: Waiting, error: Exception) -> bool:
        try:
            file = await in_thread(waiting.set_aside, line)
        except OSError as problem:  # it is not let go of: nothing is handed over until somebody makes room
            log.error("a record of the audit that %s refuses cannot be set aside: %s", self.name, problem)
            return False
        log.error(
            "%s refuses a record of the audit (%s). It is now in `%s`: see what is wrong with it, and hand it in by"
            " hand. Those behind it go on",
            *(self.name, error, file),
        )
        self._count(Fate.REJECTED, 1)
        return True

    async def _attempt(self, lines: Sequence[bytes]) -> Exception | None:
        """Send records, and return why the place does not have them."""
        try:
            await self._sink.send(lines)
        except Exception as error:  # noqa: BLE001  # whatever it is: an end of this task would be the end of the trail
            if not self._is_down:
                what = error if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
                log.warning("%s does not take records of the audit: %s", self.name, what)
            self._is_down = True
            return error
        if self._is_down:
            log.warning("%s takes records of the audit again", self.name)
        self._is_down = False
        return None


@dataclass(frozen=True, slots=True)
class _Handed:
    """Records that are done with, and why the place refused them, if it did."""

    lines: Sequence[bytes]
    refusal: OSError | None = None


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
