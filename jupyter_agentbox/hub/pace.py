"""How fast one caller's messages are taken, so that who sends many keeps nobody else waiting for long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from jupyter_agentbox.exceptions import TooManyRequestsError

#: Seconds' worth of messages that may come at once.
BURST: Final = 2.0
#: Seconds that a message waits for its turn at the most; one that would have to wait longer is refused.
LONGEST: Final = 5.0
#: Seconds between two looks for callers who can be forgotten.
_LOOK: Final = 10.0


class Pace:
    """Lets each caller pass at a rate. Who comes faster waits in line, behind nobody but themselves.

    Parameters
    ----------
    rate : float
        Messages a second of one caller. `BURST` seconds' worth of them pass at once.
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
        self._used_until: dict[str, float] = {}  # by caller: when all that they sent has been paid for at the rate
        self._look_at = 0.0

    async def turn(self, who: str) -> None:
        """Return when it is the caller's turn.

        Raises
        ------
        TooManyRequestsError
            Too many of theirs are in line; this one is not added to it.
        """
        now = self._now()
        self._forget(now)
        used_until = max(now, self._used_until.get(who, now))
        wait = used_until + self._seconds - now - max(BURST, self._seconds)
        if wait > LONGEST:
            raise TooManyRequestsError(
                f"you send more than {1 / self._seconds:g} messages a second: this one was not taken"
            )
        self._used_until[who] = used_until + self._seconds
        if wait > 0:
            await self._sleep(wait)

    def _forget(self, now: float) -> None:
        if now >= self._look_at:
            self._look_at = now + _LOOK
            self._used_until = {who: until for who, until in self._used_until.items() if until > now}
