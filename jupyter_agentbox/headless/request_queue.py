"""The pending requests of an executor's kernel, and the cell whose reader has each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jupyter_agentbox.core.approvals import Answer, Status
from jupyter_agentbox.core.approvals import ApprovalRequest as StoredRequest
from jupyter_agentbox.core.site_policy import Feature
from jupyter_agentbox.exceptions import InvalidTransitionError

from .execution_queue import Execution
from .requests import ApprovalRequest, Decide


class RequestQueue:
    """Passes each request to the reader of a cell, once; unread ones go to the next cell's reader.

    Parameters
    ----------
    decide : callable
        Answers a request.
    is_locked : callable
        Whether the site has turned a feature off.
    """

    def __init__(self, decide: Decide, is_locked: Callable[[Feature], bool]) -> None:
        self._decide = decide
        self._is_locked = is_locked
        self._open: dict[str, ApprovalRequest] = {}
        self._cells: dict[str, Execution] = {}

    def __len__(self) -> int:
        """Return the number of pending requests."""
        return len(self._open)

    def changed(self, stored: StoredRequest, current: Execution | None) -> None:
        """Record a new or changed request.

        Parameters
        ----------
        stored : jupyter_agentbox.core.approvals.ApprovalRequest
            The request in the approval store.
        current : Execution or None
            The cell that runs.
        """
        known = self._open.get(stored.id)
        if known is None and stored.status is Status.PENDING:
            self._open[stored.id] = ApprovalRequest(stored, self._decide_if_wanted, self._is_locked)
            if current is not None and current.is_read:
                self._hand(stored.id, current)
        elif known is not None and stored.status.is_final:
            del self._open[stored.id]
            self._cells.pop(stored.id, None)
            known.changed(stored)

    def hand_over(self, cell: Execution) -> None:
        """Pass the requests that no reader has to the reader of a cell."""
        for id in [id for id in self._open if id not in self._cells]:
            self._hand(id, cell)

    def take_back(self, cell: Execution) -> None:
        """Keep the requests that this cell's reader will not read for another cell."""
        while cell.has_items:
            if isinstance(item := cell.take(), ApprovalRequest):
                self._cells.pop(item.id, None)

    def _hand(self, id: str, cell: Execution) -> None:
        self._cells[id] = cell
        cell.put(self._open[id])

    async def _decide_if_wanted(
        self,
        stored: StoredRequest,
        answer: Answer,
        reason: str,
        arguments: Mapping[str, Any] | None,
        *,
        is_anybody_there: bool = True,
    ) -> None:
        cell = self._cells.get(stored.id)
        if cell is not None and cell.is_being_withdrawn:
            raise InvalidTransitionError(
                f"request `{stored.id}` is being withdrawn: its cell was cancelled", request_id=stored.id
            )
        await self._decide(stored, answer, reason, arguments, is_anybody_there=is_anybody_there)
