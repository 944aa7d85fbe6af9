"""Sends batches of records to an audit sink until it accepts them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from jupyter_agentbox.core.ports import AuditSink
from jupyter_agentbox.exceptions import RecordsRejectedError

log = logging.getLogger(__name__)

#: Approximate batch size, in bytes.
BATCH: Final = 256_000
#: Maximum delay between two attempts, as a multiple of the first.
_LONGEST: Final = 60
#: How often the sink must refuse a record sent on its own before it is set aside.
REFUSALS: Final = 5

#: Saves a record that the sink refuses, with the reason, and says where; raises `OSError` if it cannot be saved. It
#: returns an empty string if it has logged all there is to say.
SetAside: TypeAlias = Callable[[bytes, Exception], Awaitable[str]]


class DeliveryResult(str, Enum):
    """What became of a record."""

    DELIVERED = "delivered"
    REJECTED = "rejected"
    """Refused by the sink, and saved elsewhere."""

    LOST = "lost"
    """Not accepted by this server's disk."""


@dataclass(frozen=True, slots=True)
class Handed:
    """Finished records, and why the sink refused them, if it did."""

    lines: Sequence[bytes]
    refusal: OSError | None = None


class Sender:
    """Sends records to one sink, one batch after another. Several tasks may use it.

    Parameters
    ----------
    sink : AuditSink
        The audit sink.
    pause : float
        Delay before the second attempt, in seconds; doubled with each further one.
    count : callable
        Called with what became of records, and their number.
    on_failure : callable
        Called after each attempt that failed.
    refusals : int
        How often the sink must refuse a record sent on its own before that is set aside.

    Attributes
    ----------
    name : str
        The sink's name.
    is_down : bool
        Whether the last attempt failed.
    is_away : bool
        Whether no record gets through: the last attempt failed, and not because of records that are set aside at once.
    seconds : float
        How long the last attempt took.
    """

    def __init__(
        self,
        sink: AuditSink,
        *,
        pause: float,
        count: Callable[[DeliveryResult, int], None] = lambda _result, _records: None,
        on_failure: Callable[[], None] = lambda: None,
        refusals: int = REFUSALS,
    ) -> None:
        self.name = sink.name
        self.is_down = False
        self.is_away = False
        self.seconds = 0.0
        self._refusals = refusals
        self._sink = sink
        self._pause = pause
        self._count = count
        self._on_failure = on_failure

    async def hand_over(self, lines: Sequence[bytes], set_aside: SetAside) -> Handed:
        """Deliver records, however long that takes; return those at the front that are finished.

        A record that is refused repeatedly, even on its own, is set aside, so that those behind it can proceed.
        """
        pause, refusals = self._pause, 0
        while (error := await self._attempt(lines)) is not None:
            is_refused = isinstance(error, RecordsRejectedError)
            refusals = refusals + 1 if is_refused and len(lines) == 1 else 0
            if refusals >= self._refusals and await self._is_set_aside(lines[0], set_aside, error):
                return Handed(lines, refusal=OSError(f"{self.name} refused it: {error}"))
            if not is_refused or len(lines) == 1:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST * self._pause)
            lines = lines[: max(1, len(lines) // 2)]  # a sink may accept fewer at once
        self._count(DeliveryResult.DELIVERED, len(lines))
        return Handed(lines)

    async def _is_set_aside(self, line: bytes, set_aside: SetAside, error: Exception) -> bool:
        try:
            place = await set_aside(line, error)
        except OSError as problem:  # not dropped: nothing is delivered until somebody frees space
            log.error(
                "an audit record that %s refuses cannot be set aside, so no later record is sent: %s",
                *(self.name, problem),
            )
            self.is_away = True
            return False
        if place:
            log.error(
                "%s refuses an audit record (%s). It is now in %s: find out what is wrong with it, and deliver it by"
                " hand. Later records are sent",
                *(self.name, error, place),
            )
        self._count(DeliveryResult.REJECTED, 1)
        return True

    async def _attempt(self, lines: Sequence[bytes]) -> Exception | None:
        """Send records; return the error if they were not accepted."""
        loop = asyncio.get_running_loop()
        begun_at = loop.time()
        try:
            await self._sink.send(lines)
        except Exception as error:  # noqa: BLE001  # whatever it is: an end of this task would be the end of the trail
            if not self.is_down:
                what = error if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
                log.warning("%s does not accept audit records: %s", self.name, what)
            self.is_down = True
            self.is_away = self._refusals > 1 or not isinstance(error, RecordsRejectedError)
            self._on_failure()
            return error
        finally:
            self.seconds = loop.time() - begun_at
        if self.is_down:
            log.warning("%s accepts audit records again", self.name)
        self.is_down = self.is_away = False
        return None


def batch_of(lines: Iterable[bytes]) -> list[bytes]:
    """Return the first records, up to about the batch size but at least one."""
    batch: list[bytes] = []
    size = 0
    for line in lines:
        size += len(line) + 1
        if batch and size > BATCH:
            break
        batch.append(line)
    return batch
