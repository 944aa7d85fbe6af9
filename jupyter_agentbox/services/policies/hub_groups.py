"""In which groups of JupyterHub the user is whose server this is, as the Hub says by the server's own token."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from jupyter_agentbox.exceptions import UnknownReviewerError

log = logging.getLogger(__name__)

#: Asks the Hub who has the server's token.
Ask: TypeAlias = Callable[[], Awaitable[Mapping[str, Any] | None]]

#: Seconds between two questions, and between two looks whether a rule needs the answer.
INTERVAL: Final = 60.0
_LOOK: Final = 5.0
#: Seconds for which an answer holds while the Hub gives no other one.
HOLDS: Final = 300.0


class HubGroups:
    """Knows the groups of one user. Asks only while a rule is for groups; nothing in the environment is believed.

    Parameters
    ----------
    ask : callable or None
        Asks the Hub; ``None`` where there is none.
    are_needed : callable
        Whether a rule is for groups.
    owner : str
        The name of the user; what the Hub says of another one is not believed.
    clock : callable
        Returns seconds, monotonic.
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
        """The groups; ``None`` if the Hub has not said for too long, or there is none."""
        if self._groups is None or self._clock() - self._answered >= HOLDS:
            return None
        return self._groups

    async def start(self) -> None:
        """Ask if that is needed, and go on asking."""
        if self._ask is not None:
            await self.look()
            self._task = asyncio.create_task(self._watch(), name="asking JupyterHub for groups")

    async def look(self) -> None:
        """Ask the Hub, if a rule needs to know and the last question is not new."""
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
                # The root of a task. What is known is soon too old, and then the strict reading counts.
                log.exception("asking JupyterHub for groups failed")

    async def aclose(self) -> None:
        """Ask no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
