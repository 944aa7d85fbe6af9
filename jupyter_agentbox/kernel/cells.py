"""Tracks the running cell, and the cell that code belongs to, including tasks and threads that outlive it.

Tasks, and threads that inherit their caller's context, carry their cell in a context variable. Another thread belongs
to the cell that was running when it was started. Threads of a pool belong to whichever cell is running.
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
    """A request to execute code.

    Parameters
    ----------
    parent : dict
        The ``execute_request``, which is the parent of the cell's messages. Empty if there is none.
    """

    parent: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The request's id; empty if there is none."""
        return str(self.parent.get("header", {}).get("msg_id", ""))

    @property
    def cell_id(self) -> str | None:
        """The notebook cell's id, if the front end sends it."""
        found = self.parent.get("metadata", {}).get("cellId")
        return found if isinstance(found, str) else None

    @property
    def shows_widgets(self) -> bool:
        """Whether the front end can have the lab extension: JupyterLab or Notebook 7."""
        return self.cell_id is not None and not self.cell_id.startswith(_VSCODE)


_current: ContextVar[Cell | None] = ContextVar("jupyter_agentbox_cell", default=None)
#: Whether this code runs within a cell as if it were a cell itself.
_is_within: ContextVar[bool] = ContextVar("jupyter_agentbox_within_cell", default=False)


class Cells:
    """Tracks the cells of one kernel.

    Parameters
    ----------
    parent : callable
        Returns the shell channel's parent message: ``kernel.get_parent("shell")``.
    """

    def __init__(self, parent: Callable[[], Mapping[str, Any]]) -> None:
        self._parent = parent
        self._lock = threading.Lock()
        self._running: dict[str, Cell] = {}
        self._threads: WeakKeyDictionary[threading.Thread, Cell] = WeakKeyDictionary()
        self._last = Cell()

    @property
    def is_within(self) -> bool:
        """Whether the calling code runs within a cell, so that its start and end are not the cell's."""
        return _is_within.get()

    @contextmanager
    def within(self) -> Iterator[None]:
        """Run code within a cell as if it were a cell itself."""
        token = _is_within.set(True)
        try:
            yield
        finally:
            _is_within.reset(token)

    def started(self) -> None:
        """Record that a cell starts, in the context that will run it."""
        cell = Cell(self._parent())
        self._place_threads(self._last)
        _current.set(cell)
        with self._lock:
            self._last = cell
            self._running[cell.key] = cell

    def ended(self) -> Cell:
        """Record that the cell ended, before the kernel becomes idle; return the cell."""
        cell = Cell(self._parent())
        self._place_threads(cell)
        _current.set(None)
        with self._lock:
            self._running.pop(cell.key, None)
        return cell

    def current(self) -> Cell:
        """Return the cell of the calling code."""
        cell = _current.get()
        if cell is not None:
            return cell
        thread = threading.current_thread()
        if thread is not threading.main_thread() and thread not in _pool_threads():
            cell = self._threads.get(thread)
        return cell if cell is not None else Cell(self._parent())

    def while_running(self, act: Callable[[Cell], None]) -> None:
        """Call `act` with the running cell, if any, which cannot end meanwhile."""
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
