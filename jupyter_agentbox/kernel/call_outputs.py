"""Where the cards of a cell's calls go: one output for many, so that the cell's results are not behind its cards.

An output is published as a whole. While it has few lines that happens with each change; one with many is published some
times a second, or a thousand calls that end together would send, and have each page read, a hundred thousand lines.
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
from .later import Later, Timer, in_a_thread
from .transport import Transport

log = logging.getLogger(__name__)

#: An output is sent anew with each change: of more calls than these, the next ones have another.
MOST_CALLS: Final = 100
#: An output of so many calls is published at once when it changes, a longer one within so many seconds. Only of so many
#: has each call a widget.
FEW_CALLS: Final = 10
PUBLISHED_WITHIN: Final = 0.1
#: Characters of a call's line where it is one of several.
_ROW: Final = 300
#: Of how many runs of cells the output is remembered. A cell that calls again after so many others begins a new one.
_MOST_CELLS: Final = 20


class CallOutput:
    """An output that names the requests of one or more calls, with a line of text for each.

    Parameters
    ----------
    transport : Transport
        Publishes it.
    cell : Cell
        Where it belongs.
    changed : ChangedOutputs, optional
        Has it published when it has many lines. Without it, that happens at once.
    """

    def __init__(self, transport: Transport, cell: Cell, changed: ChangedOutputs | None = None) -> None:
        self._transport = transport
        self._cell = cell
        self._changed = changed
        # Publishing flushes what the cell has in the place of stdout, which may be code that calls a tool.
        self._lock = threading.RLock()
        self._rows: dict[str, tuple[str, str]] = {}

    @property
    def is_full(self) -> bool:
        """Whether no other call goes into it."""
        return len(self._rows) >= MOST_CALLS

    @property
    def has_few(self) -> bool:
        """Whether it has so few calls that each is treated as if it were alone."""
        return len(self._rows) <= FEW_CALLS

    def put(self, request_id: str, plain: str, markup: str) -> None:
        """Say something of a call, in the place of what was said of it before.

        Parameters
        ----------
        request_id : str
            The call's request.
        plain, markup : str
            What is said, as text and as HTML.
        """
        with self._lock:  # calls of other threads of the cell come at the same time
            kind = "update_display_data" if self._rows else "display_data"
            self._rows[request_id] = plain, markup
            if self._changed is not None and not self.has_few:
                self._changed.add(self)
            else:
                self._publish(kind)

    def publish(self) -> None:
        """Publish it as it is now."""
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
    """Outputs that changed since they were published. They are published together, a moment after the first change.

    Parameters
    ----------
    later : callable
        Does something after a time, in any thread.
    """

    def __init__(self, later: Later) -> None:
        self._later = later
        self._lock = threading.Lock()
        self._publishing = threading.Lock()
        self._outputs: dict[CallOutput, None] = {}
        self._timer: Timer | None = None

    def add(self, output: CallOutput) -> None:
        """Have an output published soon."""
        with self._lock:
            self._outputs[output] = None
            if self._timer is None:
                self._timer = self._later(PUBLISHED_WITHIN, self._publish_in_time)

    def publish(self) -> None:
        """Publish them now. When this returns it is done, also what another thread had begun."""
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
    """Knows the output of each cell's run.

    Parameters
    ----------
    transport : Transport
        Publishes them.
    later : callable, optional
        Does something after a time, in any thread.
    """

    def __init__(self, transport: Transport, *, later: Later = in_a_thread) -> None:
        self._transport = transport
        self._changed = ChangedOutputs(later)
        self._lock = threading.Lock()
        self._by_cell: OrderedDict[str, CallOutput] = OrderedDict()

    def of(self, cell: Cell) -> CallOutput:
        """Return the output for the next call of a cell: the one it has, where a page shows that it changes."""
        # Others, like a terminal, print what is displayed, and do not show what becomes of it.
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
        """Return an output for one call."""
        return CallOutput(self._transport, cell)

    def publish(self) -> None:
        """Publish now what changed: who follows a cell stops when it has ended."""
        self._changed.publish()

    def forget(self) -> None:
        """Have each cell begin a new output, because those that there are may have been cleared."""
        with self._lock:
            self._by_cell.clear()


def _is_captured(cell: Cell) -> bool:
    """Whether code is in ``with Output():`` of ipywidgets, which shows what is displayed, and no change of it."""
    widgets = sys.modules.get("ipywidgets.widgets.widget")
    outputs = sys.modules.get("ipywidgets.widgets.widget_output")
    if widgets is None or outputs is None:
        return False
    known = list(getattr(widgets, "_instances", {}).values())
    return any(widget.msg_id == cell.key for widget in known if isinstance(widget, outputs.Output))
