"""Where the cards of a cell's calls go: one output for many, so that the cell's results are not behind its cards."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from typing import Any, Final

from jupyter_agentbox.core.text import one_line
from jupyter_agentbox.protocol.messages import CARD_MIME_TYPE

from .cells import Cell
from .transport import Transport

#: An output is sent anew with each change: of more calls than these, the next ones have another.
MOST_CALLS: Final = 100
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
    """

    def __init__(self, transport: Transport, cell: Cell) -> None:
        self._transport = transport
        self._cell = cell
        # Publishing flushes what the cell has in the place of stdout, which may be code that calls a tool.
        self._lock = threading.RLock()
        self._rows: dict[str, tuple[str, str]] = {}

    @property
    def is_full(self) -> bool:
        """Whether no other call goes into it."""
        return len(self._rows) >= MOST_CALLS

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


class CallOutputs:
    """Knows the output of each cell's run.

    Parameters
    ----------
    transport : Transport
        Publishes them.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
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
                output = self._by_cell[cell.key] = self.alone(cell)
            self._by_cell.move_to_end(cell.key)
            while len(self._by_cell) > _MOST_CELLS:
                self._by_cell.popitem(last=False)
            return output

    def alone(self, cell: Cell) -> CallOutput:
        """Return an output for one call."""
        return CallOutput(self._transport, cell)

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
