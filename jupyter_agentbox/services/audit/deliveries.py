"""Delivery of records to an audit sink: spooled to disk first, then sent until accepted."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from jupyter_agentbox.background import in_background, in_thread
from jupyter_agentbox.core.ports import AuditSink

from .senders import BATCH, DeliveryResult, Handed, Sender, batch_of

log = logging.getLogger(__name__)


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
    count_left_behind : callable
        Returns the number of records in these.
    pause : float
        Delay before the second attempt, in seconds; doubled with each further one.
    count : callable
        Called with what became of records, and their number.

    Attributes
    ----------
    name : str
        The sink's name.
    is_full : bool
        Whether the disk did not take the last record.
    """

    def __init__(
        self,
        sink: AuditSink,
        waiting: Waiting,
        *,
        left_behind: Callable[[], Iterator[Waiting]] = lambda: iter(()),
        count_left_behind: Callable[[], int] = lambda: 0,
        pause: float,
        count: Callable[[DeliveryResult, int], None] = lambda _result, _records: None,
    ) -> None:
        self.name = sink.name
        self.is_full = False
        self._sender = Sender(sink, pause=pause, count=count)
        self._waiting = waiting
        self._left_behind = left_behind
        self._count_left_behind = count_left_behind
        self._unsent = self._left = 0
        self._count = count
        self._last: Receipt | None = None
        self._fresh: list[Receipt] = []
        self._kept: deque[Receipt] = deque()
        self._has_fresh = asyncio.Event()
        self._has_kept = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def waiting(self) -> int:
        """The number of records that the sink has not accepted yet, with those that earlier servers left."""
        return self._unsent + self._left

    @property
    def is_stuck(self) -> bool:
        """Whether there are records that the sink does not accept now."""
        return self._sender.is_away and self.waiting > 0

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
        self._unsent += 1
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
                self.is_full = True
                self._unsent -= len(receipts)
                log.error("%d audit records for %s are lost: %s", len(receipts), self.name, error)
                self._count(DeliveryResult.LOST, len(receipts))
                for receipt in receipts:
                    receipt.fail(error)
                continue
            self.is_full = False
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
                handed = await self._hand_over(batch_of(receipt.line for receipt in self._kept), self._waiting)
                try:
                    await in_thread(self._waiting.sent, handed.lines)
                    self.is_full = False
                except OSError as error:  # accepted, but the next server may send them again
                    log.error("audit records for %s cannot be removed from the disk: %s", self.name, error)
                self._unsent -= len(handed.lines)
                for _ in handed.lines:
                    receipt = self._kept.popleft()
                    if handed.refusal is None:
                        receipt.settle(receipt.delivered)
                    else:
                        receipt.fail(handed.refusal)

    async def _deliver_left_behind(self) -> None:
        self._left = await in_thread(self._count_left_behind)
        spools = self._left_behind()
        while (left := await in_thread(next, spools, None)) is not None:  # one open at a time: there may be many
            try:
                while lines := await in_thread(left.read, BATCH):
                    handed = await self._hand_over(lines, left)
                    self._left = max(0, self._left - len(handed.lines))
                    await in_thread(left.sent, handed.lines)
            except OSError as error:
                log.error("audit records that earlier servers left for %s cannot be read: %s", self.name, error)
            else:
                await in_thread(left.discard)
            finally:
                left.close()
        self._left = 0  # other servers deliver the rest

    async def _hand_over(self, lines: Sequence[bytes], waiting: Waiting) -> Handed:
        async def set_aside(line: bytes, _: Exception) -> str:
            return f"`{await in_thread(waiting.set_aside, line)}`"

        return await self._sender.hand_over(lines, set_aside)
