"""Asks about code before it runs, and then runs it: what a `CodeExecutor` does that approves code, too."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from typing import Any, Final

from jupyter_agentbox.analysis.findings import Analysis
from jupyter_agentbox.core.approvals import Answer
from jupyter_agentbox.core.approvals import ApprovalRequest as StoredRequest
from jupyter_agentbox.core.calls import Origin, ToolCall, TurnRef
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.tools import ToolResult
from jupyter_agentbox.exceptions import InvalidTransitionError
from jupyter_agentbox.protocol.notebook import NOTEBOOK_SERVER, RUN_CODE_TOOL
from jupyter_agentbox.services.calls.run_code import RunCodeTool

from .backend import LocalBackend
from .requests import ApprovalRequest
from .results import CodeExecutionError, CodeExecutionResult

#: Runs a cell and yields what happens, as `CodeExecutor.stream` does.
RunCell = Callable[[str], AsyncGenerator[Any]]

_END: Final = object()


class AskedCode:
    """Code that waits for a decision and then runs.

    Parameters
    ----------
    backend : LocalBackend
        Decides, and records.
    run_cell : callable
        Runs the code once it is approved.
    analysis : Analysis, optional
        What was found in the code. It makes the policy stricter, and whoever decides sees it.

    Attributes
    ----------
    request_id : str or None
        The request, once the code runs.
    """

    def __init__(self, backend: LocalBackend, run_cell: RunCell, analysis: Analysis | None = None) -> None:
        self.request_id: str | None = None
        self._backend = backend
        self._run_cell = run_cell
        self._tool = RunCodeTool(self._run, analysis)
        self._items: asyncio.Queue[Any] = asyncio.Queue()
        self._failure: Exception | None = None
        self._request: ApprovalRequest | None = None
        self._is_cancelled = False
        self._task: asyncio.Task[None] | None = None

    def cancel(self) -> None:
        """Withdraw the request before the code runs: `stream` ends without a result and without an error."""
        self._is_cancelled = True
        if self._task is not None:
            self._task.cancel()

    async def stream(
        self, code: str, *, kernel_id: str, isolation: Isolation, turn: TurnRef | None
    ) -> AsyncGenerator[Any]:
        """Ask about code, run what was approved, and yield what happens.

        Raises
        ------
        ToolCallRejectedError, ApprovalExpiredError, ApprovalCancelledError
            It was not approved; it did not run.
        CodeExecutionError, TimeoutError
            As `CodeExecutor.stream` does.
        """
        box = await self._backend.box()
        origin = Origin(
            kernel_id=kernel_id,
            thread_id=turn.thread_id if turn is not None else None,
            turn_id=turn.turn_id if turn is not None else None,
            isolation=isolation,
            askers=(self._backend.asker,),
        )
        call = ToolCall(server=NOTEBOOK_SERVER, tool=RUN_CODE_TOOL, arguments={"code": code}, origin=origin)
        self._task = asyncio.create_task(self._call(box.calls.run, call))
        try:
            while (item := await self._items.get()) is not _END:
                yield item
        finally:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait([self._task])
        if self._is_cancelled:
            return
        if self._failure is not None:
            raise self._failure

    def changed(self, stored: StoredRequest) -> None:
        """Record the request's new status."""
        if self._request is not None and self._request.id == stored.id:
            self._request.changed(stored)

    async def _call(self, run: Callable[..., Any], call: ToolCall) -> None:
        try:
            await run(call, on_waiting=self._ask, on_running=self._begin, own=self._tool, floor=self._tool.floor(call))
        except Exception as error:  # noqa: BLE001  # it is raised where the code was asked for
            self._failure = self._failure or error
        finally:
            self._items.put_nowait(_END)

    def _ask(self, stored: StoredRequest) -> None:
        self._request = ApprovalRequest(stored, self._decide)
        self._items.put_nowait(self._request)

    def _begin(self, stored: StoredRequest) -> None:
        self.request_id = stored.id

    async def _decide(
        self,
        stored: StoredRequest,
        answer: Answer,
        reason: str,
        arguments: Mapping[str, Any] | None,
        *,
        is_anybody_there: bool = True,
    ) -> None:
        if self._is_cancelled:
            raise InvalidTransitionError(
                f"request `{stored.id}` is being withdrawn: the code was cancelled", request_id=stored.id
            )
        await self._backend.decide(stored, answer, reason, arguments, is_anybody_there=is_anybody_there)

    async def _run(self, code: str) -> ToolResult:
        """Run approved code; its result is for the record."""
        text: str | None = None
        try:
            async with aclosing(self._run_cell(code)) as items:
                async for item in items:
                    self._items.put_nowait(item)
                    if isinstance(item, CodeExecutionResult):
                        text = item.text
        except (CodeExecutionError, TimeoutError) as error:
            self._failure = error
            return ToolResult(content=({"type": "text", "text": _last_line(str(error))},), is_error=True)
        return ToolResult(content=({"type": "text", "text": text or ""},))


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2]
