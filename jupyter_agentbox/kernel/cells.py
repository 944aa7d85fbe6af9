"""Which cell is running, and which cell a piece of code belongs to: in tasks and in threads that outlive it too.

A task, and a thread that was given its caller's context, carry their cell in a context variable. Another thread belongs
to the cell in whose time it was started. A pool's threads serve whichever cell runs.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final
from weakref import WeakKeyDictionary

_VSCODE: Final = "vscode-notebook-cell"


@dataclass(frozen=True, slots=True)
class Cell:
    """The request to execute a piece of code.

    Parameters
    ----------
    parent : dict
        The ``execute_request``; messages with this parent belong to it. Empty if there is none.
    """

    parent: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The id of the request; empty if there is none."""
        return str(self.parent.get("header", {}).get("msg_id", ""))

    @property
    def cell_id(self) -> str | None:
        """The notebook cell's id, where the front end tells it."""
        found = self.parent.get("metadata", {}).get("cellId")
        return found if isinstance(found, str) else None

    @property
    def shows_widgets(self) -> bool:
        """Whether the front end is a page that can have the lab extension: JupyterLab or Notebook 7."""
        return self.cell_id is not None and not self.cell_id.startswith(_VSCODE)


_current: ContextVar[Cell | None] = ContextVar("jupyter_agentbox_cell", default=None)
#: Whether this code runs within a cell as if it were one.
_is_within: ContextVar[bool] = ContextVar("jupyter_agentbox_within_cell", default=False)


class Cells:
    """Follows the cells of one kernel.

    Parameters
    ----------
    parent : callable
        Returns the parent message of the shell channel: ``kernel.get_parent("shell")``.
    """

    def __init__(self, parent: Callable[[], Mapping[str, Any]]) -> None:
        self._parent = parent
        self._lock = threading.Lock()
        self._running: dict[str, Cell] = {}
        self._threads: WeakKeyDictionary[threading.Thread, Cell] = WeakKeyDictionary()
        self._last = Cell()

    @property
    def is_within(self) -> bool:
        """Whether the calling code runs within a cell as if it were one: its start and end are not the cell's."""
        return _is_within.get()

    @contextmanager
    def within(self) -> Iterator[None]:
        """Run code within a cell as if it were one."""
        token = _is_within.set(True)
        try:
            yield
        finally:
            _is_within.reset(token)

    def started(self) -> None:
        """Note that a cell starts, in the context that will run it."""
        cell = Cell(self._parent())
        self._place_threads(self._last)
        _current.set(cell)
        with self._lock:
            self._last = cell
            self._running[cell.key] = cell

    def ended(self) -> Cell:
        """Note that the cell ended, before the kernel says that it is idle; return the cell."""
        cell = Cell(self._parent())
        self._place_threads(cell)
        _current.set(None)
        with self._lock:
            self._running.pop(cell.key, None)
        return cell

    def current(self) -> Cell:
        """Return the cell that the calling code belongs to."""
        cell = _current.get()
        if cell is not None:
            return cell
        thread = threading.current_thread()
        if thread is not threading.main_thread() and thread not in _pool_threads():
            cell = self._threads.get(thread)
        return cell if cell is not None else Cell(self._parent())

    def while_running(self, act: Callable[[Cell], None]) -> None:
        """Call `act` with the cell that runs; not at all if none does. No cell ends meanwhile."""
        with self._lock:
            if self._running:
                act(next(reversed(self._running.values())))

    def _place_threads(self, cell: Cell) -> None:
        for thread in threading.enumerate():
            if thread not in self._threads and thread is not threading.main_thread():
                self._threads[thread] = cell


def _pool_threads() -> Mapping[Any, Any]:
    module = sys.modules.get("concurrent.futures.thread")
    queues: Mapping[Any, Any] = getattr(module, "_threads_queues", {})
    return queues
