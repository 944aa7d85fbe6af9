"""Limits the rate of each caller's messages, so that a caller who sends many does not delay the others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from jupyter_agentbox.exceptions import TooManyRequestsError

#: How many seconds' worth of messages may exceed the rate.
BURST: Final = 2.0
#: The rate at which these pass, as a multiple of the rate: all at once, they would delay everybody else.
PEAK: Final = 5.0
#: The longest wait for a message's turn, in seconds. A message that would have to wait longer is refused.
LONGEST: Final = 5.0
#: The longest wait for a refusal, in seconds. Refusals wait in a line of their own; otherwise callers who retry at once
#: would keep the service busy. The wait is bounded, because each waiting refusal takes memory.
LONGEST_REFUSAL: Final = 30.0
#: Seconds between two removals of callers who have stopped sending.
_LOOK: Final = 10.0


@dataclass(slots=True)
class _Line:
    """One caller's waiting line.

    Parameters
    ----------
    used_until : float
        When all messages so far will have been paid for at the rate.
    next_at : float
        When the next message may pass at the peak rate.
    refused_until : float
        When all refusals will have been sent at the rate.
    """

    used_until: float
    next_at: float
    refused_until: float

    @property
    def ends_at(self) -> float:
        """When the line can be removed."""
        return max(self.used_until, self.refused_until)


class RateLimiter:
    """Lets each caller's messages pass at a rate. A faster caller waits in line, behind nobody but themselves.

    Parameters
    ----------
    rate : float
        Messages per second of one caller. `BURST` seconds' worth of them may pass at up to `PEAK` times the rate.
    now : callable
        Returns monotonic seconds.
    sleep : callable
        Waits for a number of seconds.
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
        """Wait until it is the caller's turn.

        Raises
        ------
        TooManyRequestsError
            If too many of the caller's messages are in line. It is raised only after earlier refusals.
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
                f"you are sending more than {1 / self._seconds:g} messages per second, so this one was refused"
            )
        line.used_until, line.next_at = used_until, passes_at + self._seconds / PEAK
        if passes_at > now:
            await self._sleep(passes_at - now)

    def _forget(self, now: float) -> None:
        if now >= self._look_at:
            self._look_at = now + _LOOK
            self._lines = {who: line for who, line in self._lines.items() if line.ends_at > now}
