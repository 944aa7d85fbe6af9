"""Recording of changes to rules, MCP servers and grants, made over the REST API or in files."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Protocol

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.changes import WHOEVER, Change, Facts, change_record
from jupyter_agentbox.core.ports import Clock, Ids
from jupyter_agentbox.core.reviewers import Reviewer
from jupyter_agentbox.exceptions import StorageError

log = logging.getLogger(__name__)


class RecordStore(Protocol):
    """Storage of records."""

    async def add(self, request: ApprovalRequest) -> bool:
        """Store a record."""


class ChangeRecorder:
    """Detects changes, and records who made them.

    Parameters
    ----------
    store : RecordStore
        Stores the records, beside those of calls.
    clock : Clock
        Source of the time.
    ids : Ids
        Generates record ids.
    look : callable
        Returns the state that is watched for changes.
    """

    def __init__(self, *, store: RecordStore, clock: Clock, ids: Ids, look: Callable[[], Facts]) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._look = look
        self._known: Facts | None = None
        self._is_looking = False
        self._author = WHOEVER
        self._turn = asyncio.Lock()
        self._keeping: set[asyncio.Task[bool]] = set()

    def start(self) -> None:
        """Take the current state as the baseline."""
        self._known = self._look()

    def notice(self) -> None:
        """Record, in the background, changes since the last look."""
        if (before := self._known) is None or (now := self._look_again()) is None:
            return
        for change, about in now.changes_since(before):
            self._keep(change, about, self._author)

    @asynccontextmanager
    async def by(self, reviewer: Reviewer) -> AsyncIterator[None]:
        """Record changes within the context as made by this person; stored on exit. One context at a time.

        Raises
        ------
        StorageError
            The changes could not be recorded.
        """
        async with self._turn:
            self.notice()
            self._author = reviewer
            try:
                yield
                self.notice()
            finally:
                self._author = WHOEVER
        await self._all_kept()

    @contextmanager
    def recorded_elsewhere(self) -> Iterator[None]:
        """Skip changes within the context: a call's record covers them."""
        self.notice()
        try:
            yield
        finally:
            self._look_again()

    async def note(self, change: Change, about: JsonObject, *, by: Reviewer) -> None:
        """Record a person's action that comparing states does not show.

        Raises
        ------
        StorageError
            It could not be recorded.
        """
        self._keep(change, about, by)
        await self._all_kept()

    async def aclose(self) -> None:
        """Wait until everything is stored."""
        self._known = None
        await asyncio.gather(*self._keeping, return_exceptions=True)

    def _look_again(self) -> Facts | None:
        """Return the current state, as the new baseline; ``None`` within another look, or before the first.

        A look reads files, whose reader may announce that they have changed.
        """
        if self._known is None or self._is_looking:
            return None
        self._is_looking = True
        try:
            self._known = self._look()
        finally:
            self._is_looking = False
        return self._known

    def _keep(self, change: Change, about: JsonObject, by: Reviewer) -> None:
        record = change_record(change, about, by=by, at=self._clock.now(), id=self._ids.new())
        log.info("jupyter_agentbox: %s by %s", change.value, by.in_words)
        task = asyncio.create_task(self._store.add(record), name=f"recording {change.value}")
        self._keeping.add(task)
        task.add_done_callback(self._kept)

    def _kept(self, task: asyncio.Task[bool]) -> None:
        self._keeping.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s failed: %s", task.get_name(), error)

    async def _all_kept(self) -> None:
        results = await asyncio.gather(*self._keeping, return_exceptions=True)
        if error := next((one for one in results if isinstance(one, Exception)), None):
            raise StorageError(f"the change was made, and could not be recorded: {error}") from error
