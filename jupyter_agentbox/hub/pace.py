"""How fast one caller's messages are taken, so that who sends many keeps nobody else waiting for long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from jupyter_agentbox.exceptions import TooManyRequestsError

#: Seconds' worth of messages that may come faster than the rate.
BURST: Final = 2.0
#: How many times the rate they pass at: all at once, they would keep everybody else waiting.
PEAK: Final = 5.0
#: Seconds that a message waits for its turn at the most; one that would have to wait longer is refused.
LONGEST: Final = 5.0
#: Seconds that a refusal waits at the most. Refusals have a line of their own, or who tries again at once would keep
#: the service busy with nothing else; it is not endless, for each that waits takes memory.
LONGEST_REFUSAL: Final = 30.0
#: Seconds between two looks for callers who can be forgotten.
_LOOK: Final = 10.0


@dataclass(slots=True)
class _Line:
    """One caller's line.

    Parameters
    ----------
    used_until : float
        When all that they sent has been paid for at the rate.
    next_at : float
        When the next one may pass at the peak.
    refused_until : float
        When all that was refused has been answered at the rate.
    """

    used_until: float
    next_at: float
    refused_until: float

    @property
    def ends_at(self) -> float:
        """When it can be forgotten."""
        return max(self.used_until, self.refused_until)


class Pace:
    """Lets each caller pass at a rate. Who comes faster waits in line, behind nobody but themselves.

    Parameters
    ----------
    rate : float
        Messages a second of one caller. `BURST` seconds' worth of them may pass at up to `PEAK` times the rate.
    now : callable
        Seconds that only grow.
    sleep : callable
        Waits for some seconds.
    """

    def __init__(
        self,
        rate: float,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._seconds = 1 / rate
        self._now = now
        self._sleep = sleep
        self._lines: dict[str, _Line] = {}
        self._look_at = 0.0

    async def turn(self, who: str) -> None:
        """Return when it is the caller's turn.

        Raises
        ------
        TooManyRequestsError
            Too many of theirs are in line; this one is not added to it. It is raised after those before it were.
        """
        now = self._now()
        self._forget(now)
        line = self._lines.setdefault(who, _Line(now, now, now))
        used_until = max(now, line.used_until) + self._seconds
        passes_at = max(now, line.next_at, used_until - max(BURST, self._seconds))
        if passes_at - now > LONGEST:
            line.refused_until = max(now, line.refused_until) + self._seconds
            await self._sleep(min(line.refused_until - now, LONGEST_REFUSAL))
            raise TooManyRequestsError(
                f"you send more than {1 / self._seconds:g} messages a second: this one was not taken"
            )
        line.used_until, line.next_at = used_until, passes_at + self._seconds / PEAK
        if passes_at > now:
            await self._sleep(passes_at - now)

    def _forget(self, now: float) -> None:
        if now >= self._look_at:
            self._look_at = now + _LOOK
            self._lines = {who: line for who, line in self._lines.items() if line.ends_at > now}
