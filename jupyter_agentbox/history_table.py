"""Records of calls as a table in a terminal, grouped by day, one line each."""

from __future__ import annotations

import shutil
from datetime import date

from jupyter_agentbox.core.approvals import ApprovalRequest, OutcomeState, Status
from jupyter_agentbox.core.audit_search import decided_by, record_to_json, seconds_of
from jupyter_agentbox.core.changes import is_change
from jupyter_agentbox.core.text import one_line

_DECIDED = {
    Status.PENDING: "waiting",
    Status.APPROVED: "allowed",
    Status.REJECTED: "rejected",
    Status.EXPIRED: "expired",
    Status.CANCELLED: "withdrawn",
    Status.ORPHANED: "kernel ended",
}
_ENDED = {
    OutcomeState.RUNNING: "running",
    OutcomeState.SUCCEEDED: "",
    OutcomeState.FAILED: "failed",
    OutcomeState.CANCELLED: "cut off",
}
#: The width in columns if the terminal's width is unknown.
_WIDTH = 120
_TIME, _RESULT = 8, 22


class HistoryTable:
    """Writes records, newest first. No text in them can control the terminal.

    Parameters
    ----------
    width : int
        Columns of the terminal.
    """

    def __init__(self, width: int) -> None:
        rest = max(width, 60) - _TIME - _RESULT - 8
        self._who = min(28, rest // 4)
        self._notebook = min(24, rest // 5)
        self._call = rest - self._who - self._notebook
        self._day: date | None = None

    @classmethod
    def of_terminal(cls) -> HistoryTable:
        """Return a table as wide as the terminal."""
        return cls(shutil.get_terminal_size((_WIDTH, 24)).columns)

    def line(self, request: ApprovalRequest) -> str:
        """Return a record's line, preceded by a line with the day for the first record of a day."""
        at = request.created_at.astimezone()
        heading = "" if at.date() == self._day else f"{at:%A, %Y-%m-%d}\n"
        self._day = at.date()
        call = f"{request.call.server}.{record_to_json(request)['signature']}"
        notebook = (request.call.origin.notebook_path or "").rpartition("/")[2]
        cells = [
            f"{at:%H:%M:%S}",
            _cell(call, self._call),
            _cell(_result(request), _RESULT),
            _cell(decided_by(request), self._who),
            _cell(notebook, self._notebook),
        ]
        return f"{heading}{'  '.join(cells).rstrip()}\n{self._reason(request)}"

    def _reason(self, request: ApprovalRequest) -> str:
        """Return the reason of the decision on a line of its own; empty if there is none."""
        reason = request.decision.reason if request.decision is not None else ""
        return f"{' ' * (_TIME + 2)}“{one_line(reason, self._call + _RESULT)}”\n" if reason else ""


def _result(request: ApprovalRequest) -> str:
    if is_change(request.call):
        return "done"  # nobody was asked, and it took no time
    decided = _DECIDED[request.status]
    if request.status is not Status.APPROVED or request.outcome is None:
        return decided
    if request.has_not_run:
        return f"{decided}, not run"
    seconds = seconds_of(request)
    words = [decided, _ENDED[request.outcome.state], f"{seconds:.1f} s" if seconds is not None else ""]
    return ", ".join(word for word in words if word)


def _cell(text: str, width: int) -> str:
    return one_line(text, width).ljust(width)
