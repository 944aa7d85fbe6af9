"""A running kernel: runs its cells in turn, and passes each cell's requests to its reader."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

from jupyter_agentbox.core.approvals import ApprovalRequest as StoredRequest

from .backend import LocalBackend
from .deadline import PausableDeadline
from .execution_queue import Execution, ExecutionQueue
from .local_kernel import LocalKernel
from .questions import OpenQuestions
from .reports import Report, ServerLogMessage, ToolProgress
from .requests import ApprovalRequest
from .results import CodeExecutionChunk, CodeExecutionError, CodeExecutionResult, OutputMessage

#: What a cell yields to who runs it.
Item = ApprovalRequest | CodeExecutionChunk | CodeExecutionResult | ToolProgress | ServerLogMessage


@dataclass(slots=True)
class _End:
    """Marks the end of an execution's items."""


_CANCELLED: Final = _End()
_OVER: Final = _End()


class RunningKernel:
    """A kernel with its cells and the backend that decides their calls.

    Parameters
    ----------
    kernel : LocalKernel
        Runs the code.
    turns : ExecutionQueue
        Its cells.
    backend : LocalBackend
        Decides, and runs what was allowed.
    questions : OpenQuestions
        Servers' questions that wait for an answer. Meanwhile a cell's time stands still, as while a request waits.
    """

    def __init__(
        self, *, kernel: LocalKernel, turns: ExecutionQueue, backend: LocalBackend, questions: OpenQuestions
    ) -> None:
        self.kernel = kernel
        self.turns = turns
        self.backend = backend
        self._questions = questions
        self._budget: PausableDeadline | None = None
        self._withdrawals: set[asyncio.Task[None]] = set()

    async def run(
        self,
        code: str,
        *,
        timeout: float | None,
        chunks: bool,
        progress: bool,
        calls: bool = False,
        outputs: bool = False,
    ) -> AsyncGenerator[Any]:
        """Run a cell and yield what happens, as `CodeExecutor.stream` does.

        Parameters
        ----------
        code : str
            The cell.
        timeout : float or None
            Seconds that it may run; ``None`` for ever.
        chunks, progress, calls, outputs : bool
            Whether to yield text as it comes, what tools and servers say, each call's request when it changes, and
            outputs as the kernel sends them.

        Raises
        ------
        CodeExecutionError, TimeoutError, RuntimeError
            As `CodeExecutor.stream` does.
        """
        turn = await self.turns.begin(code)
        turn.wants_reports, turn.wants_calls, turn.wants_outputs = progress, calls, outputs
        budget = self._budget = PausableDeadline(timeout)
        self._hand_over()
        is_over = False
        try:
            async for item in _before_deadline(self.turns.items(turn, budget.deadline)):
                is_over = item is _OVER
                if is_over or item is _CANCELLED:
                    break
                if isinstance(item, ApprovalRequest | StoredRequest | OutputMessage | ToolProgress | ServerLogMessage):
                    yield item
                elif chunks and isinstance(item, str):
                    yield CodeExecutionChunk(text=item)
        finally:
            is_cancelled = turn.ending is not None
            has_ended = await self._leave(turn)
        if is_over:
            raise TimeoutError(budget.exceeded(self.turns.resists()))
        if not has_ended:
            raise CodeExecutionError(self.turns.resists() or "")
        if is_cancelled:
            return
        yield await self.turns.finish(turn)

    def cancel(self, turn: Execution) -> None:
        """Interrupt a cell and withdraw its requests: its reader gets no result and no error."""
        if not turn.ended.is_set():
            turn.put(_CANCELLED)
            self._begin_ending(turn)

    def request_changed(self, stored: StoredRequest) -> None:
        """Pass a call's request in its current state to the running cell."""
        current = self.turns.current
        self.backend.requests.changed(stored, current)
        if current is not None and current.wants_calls and current.is_read:
            current.put(stored)
        self.pace()

    def report(self, report: Report) -> None:
        """Pass a report of a tool or server to the running cell."""
        if self.turns.current is not None:
            self.turns.current.report(report)

    def pace(self) -> None:
        """Pause the cell's clock while a request or a question waits."""
        if self._budget is None:
            return
        is_waiting = len(self.backend.requests) > 0 or len(self._questions) > 0
        has_changed = self._budget.pause() if is_waiting else self._budget.resume()
        if has_changed and self.turns.current is not None:
            self.turns.current.wake()

    async def _leave(self, turn: Execution) -> bool:
        """Stop reading an execution, and end it; return whether it has ended."""
        self.backend.requests.take_back(turn)
        if not turn.ended.is_set():
            self._begin_ending(turn)
        return await self.turns.end(turn)

    def _begin_ending(self, turn: Execution) -> None:
        """Interrupt an execution's code and withdraw its requests, in tasks that no caller's cancellation stops."""
        if turn.ending is None:
            self.turns.begin_ending(turn)
            withdrawal = asyncio.ensure_future(self._withdraw(turn))
            self._withdrawals.add(withdrawal)
            withdrawal.add_done_callback(self._withdrawals.discard)

    async def _withdraw(self, turn: Execution) -> None:
        # The kernel says what it withdraws before it says that the code has ended. What is left then is of code that
        # outlives its cell, and can be decided.
        await turn.ended.wait()
        await self.backend.withdrawn()
        turn.is_withdrawn = True
        self._hand_over(done=asyncio.current_task())

    def _hand_over(self, *, done: asyncio.Task[None] | None = None) -> None:
        """Pass the requests that no reader has to the running execution, unless some may be about to be withdrawn."""
        turn = self.turns.current
        if turn is not None and turn.is_read and not self._withdrawals - {done}:
            self.backend.requests.hand_over(turn)
        self.pace()


async def _before_deadline(items: AsyncIterator[object]) -> AsyncIterator[object]:
    """Yield the items, and `_OVER` when the time limit is reached."""
    try:
        async for item in items:
            yield item
    except TimeoutError:
        yield _OVER
