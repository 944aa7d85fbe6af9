"""Records and announces unexpected ends of kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.kernel_exits import KernelExit
from jupyter_agentbox.core.ports import Clock, Ids, NotebookFinder
from jupyter_agentbox.core.times import json_time

#: How many kernels' ends are kept: a page asks as soon as it is notified.
MOST_KEPT: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedExit:
    """A recorded end of a kernel.

    Parameters
    ----------
    id : str
        Distinguishes ends of the same kernel.
    at : datetime
        When the server noticed it.
    end : KernelExit
        Why it ended.
    notebook_path : str or None
        The kernel's document, relative to the server's root.
    """

    id: str
    at: datetime
    end: KernelExit
    notebook_path: str | None

    def to_json(self) -> JsonObject:
        """Return it as the REST API sends it."""
        return {
            "id": self.id,
            "at": json_time(self.at),
            "reason": self.end.reason,
            "limit": self.end.limit,
            "most": self.end.most,
            "signal": self.end.signal,
            "status": self.end.status,
            "notebook_path": self.notebook_path,
        }


class KernelExitManager:
    """Keeps each kernel's last unexpected end. Implements the bridge's `ExitListener`.

    Parameters
    ----------
    notebooks : NotebookFinder
        Looks up a kernel's document.
    announce : callable
        Notifies pages that a kernel ended.
    clock : Clock
        Source of the time.
    ids : Ids
        Generates ids of ends.
    """

    def __init__(self, *, notebooks: NotebookFinder, announce: Callable[[str], None], clock: Clock, ids: Ids) -> None:
        self._notebooks = notebooks
        self._announce = announce
        self._clock = clock
        self._ids = ids
        self._kernel_exits: dict[str, RecordedExit] = {}

    def last_of(self, kernel_id: str) -> RecordedExit | None:
        """Return the kernel's last unexpected end, if any."""
        return self._kernel_exits.get(kernel_id)

    async def kernel_ended(self, kernel_id: str, end: KernelExit) -> None:
        """Record why a kernel ended, and announce it."""
        at, path = self._clock.now(), await self._notebooks.path_of(kernel_id)
        before = self._kernel_exits.pop(kernel_id, None)
        if path is None and before is not None:
            # Jupyter forgets the session of a kernel that it does not restart.
            path = before.notebook_path
        self._kernel_exits[kernel_id] = RecordedExit(id=self._ids.new(), at=at, end=end, notebook_path=path)
        if len(self._kernel_exits) > MOST_KEPT:
            del self._kernel_exits[next(iter(self._kernel_exits))]
        self._announce(kernel_id)
