"""How long code may run. While a person thinks, time stands still."""

from __future__ import annotations

import time


class Budget:
    """The time that one cell has.

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
        """Return when the time is over, on the clock of `time.monotonic`; ``None`` while it stands still."""
        return self._deadline if self._paused_at is None else None

    def pause(self) -> None:
        """Stop the clock."""
        if self._paused_at is None:
            self._paused_at = time.monotonic()

    def resume(self) -> None:
        """Let the clock run on."""
        if self._paused_at is not None:
            if self._deadline is not None:
                self._deadline += time.monotonic() - self._paused_at
            self._paused_at = None
