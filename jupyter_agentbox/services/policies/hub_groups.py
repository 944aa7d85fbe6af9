"""The JupyterHub groups of this server's user, as the Hub returns them for the server's own token."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from jupyter_agentbox.exceptions import UnknownReviewerError

log = logging.getLogger(__name__)

#: Asks the Hub about the owner of the server's token.
Ask: TypeAlias = Callable[[], Awaitable[Mapping[str, Any] | None]]

#: Seconds between requests, and between checks whether a rule needs the groups.
INTERVAL: Final = 60.0
_LOOK: Final = 5.0
#: How long an answer is valid, in seconds, if the Hub gives no other.
HOLDS: Final = 300.0


class HubGroups:
    """Holds the groups of one user. Asks only while a rule uses groups; the environment is not trusted.

    Parameters
    ----------
    ask : callable or None
        Asks the Hub; ``None`` if there is none.
    are_needed : callable
        Returns whether a rule uses groups.
    owner : str
        The user's name; the Hub's answer about another user is ignored.
    clock : callable
        Monotonic clock, in seconds.
    """

    def __init__(
        self,
        *,
        ask: Ask | None,
        are_needed: Callable[[], bool],
        owner: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._are_needed = are_needed
        self._owner = owner
        self._clock = clock
        self._groups: frozenset[str] | None = None
        self._answered = self._asked = float("-inf")
        self._task: asyncio.Task[None] | None = None

    @property
    def known(self) -> frozenset[str] | None:
        """The groups; ``None`` if there is no Hub, or its last answer is too old."""
        if self._groups is None or self._clock() - self._answered >= HOLDS:
            return None
        return self._groups

    async def start(self) -> None:
        """Ask if necessary, and then periodically."""
        if self._ask is not None:
            await self.look()
            self._task = asyncio.create_task(self._watch(), name="asking JupyterHub for groups")

    async def look(self) -> None:
        """Ask the Hub, if a rule uses groups and the last request is not recent."""
        if self._ask is None or not self._are_needed() or self._clock() - self._asked < INTERVAL:
            return
        self._asked = self._clock()
        try:
            model = await self._ask()
        except UnknownReviewerError:
            log.warning(
                "JupyterHub does not say in which groups the user is. What it said holds for %d s; then rules for"
                " groups that ask or deny hold for this user, and none that allows",
                HOLDS,
            )
            return
        self._hear(model)

    def _hear(self, model: Mapping[str, Any] | None) -> None:
        is_owner = model is not None and model.get("kind") == "user" and model.get("name") == self._owner
        groups = model.get("groups") if model is not None and is_owner else None
        if isinstance(groups, list):
            self._groups, self._answered = frozenset(map(str, groups)), self._clock()
        else:
            log.warning("JupyterHub does not take this server's token for the user's: their groups are not known")
            self._groups = None

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_LOOK)
            try:
                await self.look()
            except Exception:
                # The root of a task. The groups soon expire, and then count as unknown.
                log.exception("asking JupyterHub for groups failed")

    async def aclose(self) -> None:
        """Stop asking."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
