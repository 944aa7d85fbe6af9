"""The time limit of code. The clock is paused while a person decides."""

from __future__ import annotations

import time


class PausableDeadline:
    """The time limit of one cell.

    Parameters
    ----------
    seconds : float or None
        How long it may run; ``None`` for ever.
    """

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self._deadline = None if seconds is None else time.monotonic() + seconds
        self._paused_at: float | None = None

    def deadline(self) -> float | None:
        """Return the deadline, by the clock of `time.monotonic`; ``None`` while the clock is paused."""
        return self._deadline if self._paused_at is None else None

    def pause(self) -> bool:
        """Pause the clock; return whether that changed the deadline."""
        if self._paused_at is not None:
            return False
        self._paused_at = time.monotonic()
        return self._deadline is not None

    def resume(self) -> bool:
        """Resume the clock; return whether that changed the deadline."""
        if self._paused_at is None:
            return False
        if self._deadline is not None:
            self._deadline += time.monotonic() - self._paused_at
        self._paused_at = None
        return self._deadline is not None

    def exceeded(self, resists: str | None = None) -> str:
        """Return what to say of code that ran until the deadline.

        Parameters
        ----------
        resists : str or None
            Why the kernel cannot be used, if the code did not end.
        """
        then = resists if resists is not None else "it was interrupted, and the kernel is still usable"
        return f"the code ran for more than {self.seconds or 0:.2f}s, not counting the time for decisions; {then}"
