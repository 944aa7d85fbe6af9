"""`CallLog`: the calls of one piece of code, as events for its turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from jupyter_agentbox.core.approvals import ApprovalRequest, OutcomeState, Status
from jupyter_agentbox.core.threads import ItemStatus

from .ports import ToolCallBegan, ToolCallEnded

_REFUSED: Final = {
    Status.REJECTED: ItemStatus.DECLINED,
    Status.EXPIRED: ItemStatus.DECLINED,
    Status.CANCELLED: ItemStatus.INTERRUPTED,
    Status.ORPHANED: ItemStatus.INTERRUPTED,
}
_ENDED: Final = {
    OutcomeState.SUCCEEDED: ItemStatus.COMPLETED,
    OutcomeState.FAILED: ItemStatus.FAILED,
    OutcomeState.CANCELLED: ItemStatus.INTERRUPTED,
}


class CallLog:
    """Follows the requests of calls, and reports which calls began and ended.

    It is called for each change of a request, and once for each that is still open when the code has ended.
    """

    def __init__(self) -> None:
        self._began: set[str] = set()
        self._open: dict[str, None] = {}

    @property
    def open(self) -> Sequence[str]:
        """The ids of the requests whose end is not yet known."""
        return list(self._open)

    def changed(self, request: ApprovalRequest) -> Sequence[ToolCallBegan | ToolCallEnded]:
        """Return a call's new events: that it began, unless a person is asked first, and that it ended."""
        events: list[ToolCallBegan | ToolCallEnded] = []
        if request.id not in self._began:
            self._began.add(request.id)
            self._open[request.id] = None
            if request.status is not Status.PENDING:  # otherwise the pending request announces the call
                call = request.call
                events.append(ToolCallBegan(request_id=request.id, server=call.server, tool=call.tool))
        status = status_of(request)
        if status is not ItemStatus.IN_PROGRESS and request.id in self._open:
            del self._open[request.id]
            events.append(ToolCallEnded(request_id=request.id, status=status))
        return events


def status_of(request: ApprovalRequest) -> ItemStatus:
    """Return the status of a call so far, as an item of a turn."""
    if request.status in _REFUSED:
        return _REFUSED[request.status]
    state = request.outcome_state
    if state is OutcomeState.FAILED and request.has_not_run:
        return ItemStatus.DECLINED
    return ItemStatus.IN_PROGRESS if state is None else _ENDED.get(state, ItemStatus.IN_PROGRESS)
