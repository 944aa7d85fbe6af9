"""Outputs with the cards of a cell's calls: one for many calls, so that the cards do not hide the cell's results.

An output is published as a whole: with few lines, at each change; with many, a few times per second, because otherwise
a thousand calls that end together would make every page read a hundred thousand lines.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections import OrderedDict
from typing import Any, Final

from jupyter_agentbox.core.text import one_line
from jupyter_agentbox.protocol.messages import CARD_MIME_TYPE

from .cells import Cell
from .timers import Later, Timer, in_a_thread
from .transport import Transport

log = logging.getLogger(__name__)

#: Maximum number of calls per output, because it is resent with each change.
MOST_CALLS: Final = 100
#: An output with up to this many calls is published at once when it changes, and has a widget per call; a longer one
#: is published within the interval below, in seconds.
FEW_CALLS: Final = 10
PUBLISHED_WITHIN: Final = 0.1
#: Maximum length of a call's line among several, in characters.
_ROW: Final = 300
#: How many cell runs' outputs are remembered. A cell that makes a call after that starts a new output.
_MOST_CELLS: Final = 20


class CallOutput:
    """An output with a line of text for each of one or more calls' requests.

    Parameters
    ----------
    transport : Transport
        Publishes the output.
    cell : Cell
        The cell for the output.
    changed : ChangedOutputs, optional
        Publishes it later if it has many lines. Without it, changes are published at once.
    """

    def __init__(self, transport: Transport, cell: Cell, changed: ChangedOutputs | None = None) -> None:
        self._transport = transport
        self._cell = cell
        self._changed = changed
        # Reentrant: publishing flushes the cell's stdout replacement, which may be code that calls a tool.
        self._lock = threading.RLock()
        self._rows: dict[str, tuple[str, str]] = {}

    @property
    def is_full(self) -> bool:
        """Whether it takes no further calls."""
        return len(self._rows) >= MOST_CALLS

    @property
    def has_few(self) -> bool:
        """Whether it has few enough calls for each to be handled individually."""
        return len(self._rows) <= FEW_CALLS

    def put(self, request_id: str, plain: str, markup: str) -> None:
        """Set the line of a call.

        Parameters
        ----------
        request_id : str
            The call's approval request.
        plain, markup : str
            The line, as text and as HTML.
        """
        with self._lock:  # other threads of the cell may make calls concurrently
            kind = "update_display_data" if self._rows else "display_data"
            self._rows[request_id] = plain, markup
            if self._changed is not None and not self.has_few:
                self._changed.add(self)
            else:
                self._publish(kind)

    def publish(self) -> None:
        """Publish the output in its current state."""
        with self._lock:
            self._publish("update_display_data")

    def _publish(self, kind: str) -> None:
        transient = {"display_id": f"agentbox-{next(iter(self._rows))}"}
        content = {"data": self._data(), "metadata": {}, "transient": transient}
        self._transport.publish(kind, content, self._cell)

    def _data(self) -> dict[str, Any]:
        ids = list(self._rows)
        several = {"request_ids": ids} if len(ids) > 1 else {}
        lines = [plain if len(ids) == 1 else one_line(plain, _ROW) for plain, _ in self._rows.values()]
        return {
            CARD_MIME_TYPE: {"request_id": ids[0], **several},
            "text/html": "".join(f"<div>{markup}</div>" for _, markup in self._rows.values()),
            "text/plain": "\n".join(lines),
        }


class ChangedOutputs:
    """Changed outputs, published together shortly after the first change.

    Parameters
    ----------
    later : callable
        Calls a function after a delay, in any thread.
    """

    def __init__(self, later: Later) -> None:
        self._later = later
        self._lock = threading.Lock()
        self._publishing = threading.Lock()
        self._outputs: dict[CallOutput, None] = {}
        self._timer: Timer | None = None

    def add(self, output: CallOutput) -> None:
        """Add an output to be published soon."""
        with self._lock:
            self._outputs[output] = None
            if self._timer is None:
                self._timer = self._later(PUBLISHED_WITHIN, self._publish_in_time)

    def publish(self) -> None:
        """Publish them now. On return, outputs that another thread was publishing are done, too."""
        with self._publishing:
            with self._lock:
                outputs, self._outputs = self._outputs, {}
                timer, self._timer = self._timer, None
            if timer is not None:
                timer.cancel()
            for output in outputs:
                output.publish()

    def _publish_in_time(self) -> None:
        try:
            self.publish()
        except Exception:  # the root of a thread, whose errors would be printed in a cell
            log.warning("outputs of tool calls could not be published", exc_info=True)


class CallOutputs:
    """Holds the current output of each cell run.

    Parameters
    ----------
    transport : Transport
        Publishes the outputs.
    later : callable, optional
        Calls a function after a delay, in any thread.
    """

    def __init__(self, transport: Transport, *, later: Later = in_a_thread) -> None:
        self._transport = transport
        self._changed = ChangedOutputs(later)
        self._lock = threading.Lock()
        self._by_cell: OrderedDict[str, CallOutput] = OrderedDict()

    def of(self, cell: Cell) -> CallOutput:
        """Return the output for a cell's next call: the existing one, if the front end shows updates."""
        # Others, such as terminals, print displayed outputs and do not show their updates.
        if not cell.key or not cell.shows_widgets or _is_captured(cell):
            return self.alone(cell)
        with self._lock:
            output = self._by_cell.get(cell.key)
            if output is None or output.is_full:
                output = self._by_cell[cell.key] = CallOutput(self._transport, cell, self._changed)
            self._by_cell.move_to_end(cell.key)
            while len(self._by_cell) > _MOST_CELLS:
                self._by_cell.popitem(last=False)
            return output

    def alone(self, cell: Cell) -> CallOutput:
        """Return an output for a single call."""
        return CallOutput(self._transport, cell)

    def publish(self) -> None:
        """Publish changes now: a client stops following a cell once it has ended."""
        self._changed.publish()

    def forget(self) -> None:
        """Start new outputs for all cells, because the existing ones may have been cleared."""
        with self._lock:
            self._by_cell.clear()


def _is_captured(cell: Cell) -> bool:
    """Whether code is in ``with Output():`` of ipywidgets, which shows displays but not their updates."""
    widgets = sys.modules.get("ipywidgets.widgets.widget")
    outputs = sys.modules.get("ipywidgets.widgets.widget_output")
    if widgets is None or outputs is None:
        return False
    known = list(getattr(widgets, "_instances", {}).values())
    return any(widget.msg_id == cell.key for widget in known if isinstance(widget, outputs.Output))
