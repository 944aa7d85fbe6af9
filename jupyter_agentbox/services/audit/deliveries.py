"""Delivery of records to an audit sink: spooled to disk first, then sent until accepted."""

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

#: Approximate batch size, in bytes.
_BATCH: Final = 256_000
#: Maximum delay between two attempts, as a multiple of the first.
_LONGEST: Final = 60
#: How often the sink must refuse a record sent on its own before it is set aside.
_REFUSALS: Final = 5


class DeliveryResult(str, Enum):
    """What became of a record."""

    DELIVERED = "delivered"
    REJECTED = "rejected"
    """Refused by the sink, and saved to a separate file."""

    LOST = "lost"
    """Not accepted by this server's disk."""


class Waiting(Protocol):
    """A spool of records on disk, in order."""

    def append(self, lines: Sequence[bytes]) -> None:
        """Store records, all or none; `OSError` if they cannot be stored."""

    def read(self, most: int) -> list[bytes]:
        """Return the first records, up to about this many bytes."""

    def sent(self, lines: Sequence[bytes]) -> None:
        """Remove the first records."""

    def set_aside(self, line: bytes) -> Path:
        """Save a record that the sink refuses, and return its file; `OSError` if it cannot be saved."""

    def discard(self) -> None:
        """Delete the spool."""

    def close(self) -> None:
        """Close the spool, leaving its records for later."""


@dataclass(slots=True)
class Receipt:
    """The delivery status of a record for one sink.

    Attributes
    ----------
    kept : Future
        Done when the record is on this server's disk; fails with `OSError` if it is lost.
    delivered : Future
        Done when the sink has accepted it; fails if it is lost or refused.
    """

    line: bytes
    kept: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    delivered: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def fail(self, error: OSError) -> None:
        """Mark the record as lost."""
        for future in (self.kept, self.delivered):
            if not future.done():
                future.set_exception(error)
                future.exception()  # retrieves the error if nobody is waiting

    def settle(self, future: asyncio.Future[None]) -> None:
        """Mark a stage as reached."""
        if not future.done():
            future.set_result(None)


class Delivery:
    """Delivers records to one sink, in order.

    Parameters
    ----------
    sink : AuditSink
        The audit sink.
    waiting : Waiting
        The spool.
    left_behind : callable
        Yields the spools of servers that are gone, one at a time; they are delivered alongside new records.
    pause : float
        Delay before the second attempt, in seconds; doubled with each further one.
    count : callable
        Called with what became of records, and their number.

    Attributes
    ----------
    name : str
        The sink's name.
    """

    def __init__(
        self,
        sink: AuditSink,
        waiting: Waiting,
        *,
        left_behind: Callable[[], Iterator[Waiting]] = lambda: iter(()),
        pause: float,
        count: Callable[[DeliveryResult, int], None] = lambda _result, _records: None,
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
        """Start delivering."""
        self._tasks = [
            in_background(self._keep(), what=f"keeping records for {self.name}"),
            in_background(self._deliver(), what=f"handing records to {self.name}"),
            # separately, so that old records do not delay new ones
            in_background(self._deliver_left_behind(), what=f"handing records that were left to {self.name}"),
        ]

    def put(self, line: bytes) -> Receipt:
        """Accept a record."""
        receipt = self._last = Receipt(line)
        self._fresh.append(receipt)
        self._has_fresh.set()
        return receipt

    async def aclose(self, patience: float) -> None:
        """Wait up to this many seconds for outstanding records. The rest stays on disk for the next server."""
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
                self._count(DeliveryResult.LOST, len(receipts))
                for receipt in receipts:
                    receipt.fail(error)
                continue
            self._kept.extend(receipts)
            self._has_kept.set()
            for receipt in receipts:
                receipt.settle(receipt.kept)

    async def _deliver(self) -> None:
        """Deliver this server's records: as made, not as on disk, where others can write."""
        while True:
            await self._has_kept.wait()
            self._has_kept.clear()
            while self._kept:
                handed = await self._hand_over(_batch(self._kept), self._waiting)
                try:
                    await in_thread(self._waiting.sent, handed.lines)
                except OSError as error:  # accepted, but the next server may send them again
                    log.error("records of the audit for %s cannot be removed from the disk: %s", self.name, error)
                for _ in handed.lines:
                    receipt = self._kept.popleft()
                    if handed.refusal is None:
                        receipt.settle(receipt.delivered)
                    else:
                        receipt.fail(handed.refusal)

    async def _deliver_left_behind(self) -> None:
        spools = self._left_behind()
        while (left := await in_thread(next, spools, None)) is not None:  # one open at a time: there may be many
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
        """Deliver records, however long that takes; return those at the front that are finished.

        A record that is refused repeatedly, even on its own, is set aside, so that those behind it can proceed.
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
            lines = lines[: max(1, len(lines) // 2)]  # a sink may accept fewer at once
        self._count(DeliveryResult.DELIVERED, len(lines))
        return _Handed(lines)

    async def _is_set_aside(self, line: bytes, waiting: Waiting, error: Exception) -> bool:
        try:
            file = await in_thread(waiting.set_aside, line)
        except OSError as problem:  # not dropped: nothing is delivered until somebody frees space
            log.error("a record of the audit that %s refuses cannot be set aside: %s", self.name, problem)
            return False
        log.error(
            "%s refuses a record of the audit (%s). It is now in `%s`: see what is wrong with it, and hand it in by"
            " hand. Those behind it go on",
            *(self.name, error, file),
        )
        self._count(DeliveryResult.REJECTED, 1)
        return True

    async def _attempt(self, lines: Sequence[bytes]) -> Exception | None:
        """Send records; return the error if they were not accepted."""
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
    """Finished records, and why the sink refused them, if it did."""

    lines: Sequence[bytes]
    refusal: OSError | None = None


def _batch(receipts: Iterable[Receipt]) -> list[bytes]:
    """Return the first records, up to about the batch size but at least one."""
    lines: list[bytes] = []
    size = 0
    for receipt in receipts:
        size += len(receipt.line) + 1
        if lines and size > _BATCH:
            break
        lines.append(receipt.line)
    return lines
