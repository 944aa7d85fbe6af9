"""Records and announces why a kernel ended without being asked to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.kernel_exits import KernelExit
from jupyter_agentbox.core.ports import Clock, Ids, NotebookFinder
from jupyter_agentbox.core.times import json_time

#: How many kernels' ends are kept: a page asks when it is told, which is at once.
MOST_KEPT: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedExit:
    """A kernel's end, and which one it was.

    Parameters
    ----------
    id : str
        Tells one end from the next of the same kernel.
    at : datetime
        When the server noticed it.
    end : KernelEnd
        Why it ended.
    notebook_path : str or None
        The kernel's document, relative to the server's root.
    """

    id: str
    at: datetime
    end: KernelExit
    notebook_path: str | None

    def to_json(self) -> JsonObject:
        """Return it as the REST API says it."""
        return {
            "id": self.id,
            "at": json_time(self.at),
            "reason": self.end.reason,
            "limit": self.end.limit,
            "notebook_path": self.notebook_path,
        }


class KernelExitManager:
    """Keeps each kernel's last end. Implements the bridge's `ExitListener`.

    Parameters
    ----------
    notebooks : NotebookFinder
        Knows which document a kernel belongs to.
    announce : callable
        Tells pages that a kernel ended.
    clock : Clock
        Says when it ended.
    ids : Ids
        Tell one end from another.
    """

    def __init__(self, *, notebooks: NotebookFinder, announce: Callable[[str], None], clock: Clock, ids: Ids) -> None:
        self._notebooks = notebooks
        self._announce = announce
        self._clock = clock
        self._ids = ids
        self._kernel_exits: dict[str, RecordedExit] = {}

    def last_of(self, kernel_id: str) -> RecordedExit | None:
        """Return the kernel's last unexpected end; ``None`` if there was none."""
        return self._kernel_exits.get(kernel_id)

    async def kernel_ended(self, kernel_id: str, end: KernelExit) -> None:
        """Keep why a kernel ended, and announce it."""
        at, path = self._clock.now(), await self._notebooks.path_of(kernel_id)
        before = self._kernel_exits.pop(kernel_id, None)
        if path is None and before is not None:
            # Jupyter forgets the session of a kernel that it does not start again.
            path = before.notebook_path
        self._kernel_exits[kernel_id] = RecordedExit(id=self._ids.new(), at=at, end=end, notebook_path=path)
        if len(self._kernel_exits) > MOST_KEPT:
            del self._kernel_exits[next(iter(self._kernel_exits))]
        self._announce(kernel_id)
