"""What a request is doing, and since when, in words."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Final

_STARTING: Final = "waiting for the kernel"
_RUNNING: Final = "running"


class Activity:
    """What one request is doing.

    Parameters
    ----------
    on_change : callable
        Called whenever it does something else.
    now : callable
        Returns the time in seconds.
    """

    def __init__(
        self, on_change: Callable[[], None] = lambda: None, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._on_change = on_change
        self._now = now
        self._doing = _STARTING
        self._since = now()
        self._decisions: dict[Hashable, tuple[str, float]] = {}
        self._behind: Activity | None = None

    def __str__(self) -> str:
        """Return what it is doing and since when; for a request that waits for another one, what that one is doing."""
        if self._behind is not None:
            return f"{self._lasting()}, which has been {self._behind}; call the tool `reset` to end it"
        return self._lasting()

    def wait_behind(self, ahead: Activity) -> None:
        """Wait until another request has left the kernel."""
        if self._behind is not ahead:
            since = self._since if self._behind is not None else self._now()
            self._behind = ahead
            self._do("waiting for an earlier request", since)

    def run(self) -> None:
        """Begin to run."""
        self._behind = None
        self._do(_RUNNING, self._now())

    def wait_for_decision(self, key: Hashable, what: str) -> None:
        """Note that it also waits for a decision.

        Parameters
        ----------
        key : hashable
            Identifies the decision; a known key changes nothing.
        what : str
            What must be decided.
        """
        if key not in self._decisions:
            self._decisions[key] = (what, self._now())
            self._on_change()

    def decided(self, key: Hashable) -> None:
        """Note that it no longer waits for a decision; an unknown key changes nothing."""
        if self._decisions.pop(key, None) is not None:
            self._on_change()

    def decisions(self) -> list[Hashable]:
        """Return the keys of the decisions for which it waits."""
        return list(self._decisions)

    def _do(self, doing: str, since: float) -> None:
        self._doing, self._since = doing, since
        self._on_change()

    def _lasting(self) -> str:
        doing, since = self._doing, self._since
        if self._decisions:  # the first that is open
            what, since = next(iter(self._decisions.values()))
            doing = f"waiting for a decision about {what}"
        return f"{doing} for {self._now() - since:.0f} s"
