"""The kernel of an agent's thread: a `CodeExecutor` that also requires approval of code."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any, Final

from jupyter_agentbox.agents.threads.call_log import CallLog
from jupyter_agentbox.agents.threads.catalog import McpCatalog
from jupyter_agentbox.agents.threads.ports import ApprovalAsked, Catalog, CodeEnded, KernelEvent
from jupyter_agentbox.analysis.findings import Analysis
from jupyter_agentbox.core.approvals import ApprovalRequest as StoredRequest
from jupyter_agentbox.core.calls import TurnRef
from jupyter_agentbox.core.terminal import final_text
from jupyter_agentbox.core.threads import ItemStatus
from jupyter_agentbox.exceptions import (
    AgentBoxError,
    ApprovalCancelledError,
    ApprovalExpiredError,
    ToolCallRejectedError,
)

from .executor import CodeExecutor
from .requests import ApprovalRequest
from .results import CodeExecutionError, CodeExecutionResult

#: Message to the model when code has ended its kernel.
_LOST: Final = "The kernel is gone, with all variables. The next code runs in a new one."


class ExecutorKernel:
    """An `AgentKernel` on a `CodeExecutor`.

    Parameters
    ----------
    executor : CodeExecutor
        Approves and runs the code.
    """

    def __init__(self, executor: CodeExecutor) -> None:
        self._executor = executor
        self._turn: TurnRef | None = None
        self._calls = CallLog()

    async def stop(self) -> None:
        """Stop the executor's kernel."""
        await self._executor.stop()

    async def run(self, code: str, *, turn: TurnRef, analysis: Analysis | None = None) -> AsyncGenerator[KernelEvent]:
        """Request approval of code and run it."""
        self._executor.agent_turn = turn
        await self._have_a_kernel()
        self._follow(turn)
        ran = _Ran(code)
        ended = CodeEnded(code=code, status=ItemStatus.INTERRUPTED, error="it was interrupted")
        asking = self._executor.ask_first(code, partial(self._run_approved, ran), analysis=analysis, on_end=ran.ended)
        try:
            async with aclosing(asking) as items:
                async for item in items:
                    if isinstance(item, ApprovalRequest):
                        yield ApprovalAsked(request=item)
                    elif isinstance(item, StoredRequest):
                        for event in self._changed(item):
                            yield event
                    elif isinstance(item, CodeExecutionResult):
                        ended = CodeEnded(
                            code=code,
                            status=ItemStatus.COMPLETED,
                            text=final_text(item.text or ""),
                            images=len(item.images),
                        )
        except CodeExecutionError as error:
            text = error.result.text if error.result is not None else None
            lost = "" if self._executor.is_usable else f"\n{_LOST}"
            ended = CodeEnded(code=code, status=ItemStatus.FAILED, text=final_text(text or ""), error=f"{error}{lost}")
        except (ToolCallRejectedError, ApprovalExpiredError, ApprovalCancelledError) as error:
            ran.request_id = error.request_id
            was_withdrawn = isinstance(error, ApprovalCancelledError)
            status = ItemStatus.INTERRUPTED if was_withdrawn else ItemStatus.DECLINED
            ended = CodeEnded(code=code, status=status, error=str(error))
        for request_id in self._calls.open:  # its end may not be stored yet
            for event in self._changed(await self._executor.request(request_id)):
                yield event
        yield replace(ended, code=ran.code, request_id=ran.request_id)

    def _follow(self, turn: TurnRef) -> None:
        """Use one log for all code of a turn: a call may outlast the code that made it."""
        if turn != self._turn:
            self._turn, self._calls = turn, CallLog()

    def _changed(self, request: StoredRequest) -> Sequence[KernelEvent]:
        """Return the new events of a call of this turn; calls of earlier turns may change meanwhile."""
        is_of_turn = self._turn is not None and request.call.origin.turn_id == self._turn.turn_id
        return self._calls.changed(request) if is_of_turn else ()

    async def _have_a_kernel(self) -> None:
        """Start another kernel if the last one has ended or is no longer usable.

        Raises
        ------
        AgentBoxError
            No kernel starts.
        """
        if self._executor.is_usable:
            return
        try:
            await self._executor.reset()
        except (CodeExecutionError, TimeoutError) as error:
            raise AgentBoxError(f"the agent's kernel could not be started: {error}") from error

    async def _run_approved(self, ran: _Ran, code: str) -> AsyncGenerator[Any]:
        ran.code = code
        async with aclosing(self._executor.run_approved(code)) as items:
            async for item in items:
                yield item

    async def variables(self) -> str:
        """Return the names, types and shapes of the variables."""
        try:
            await self._have_a_kernel()
            return await self._executor.variables()
        except (CodeExecutionError, TimeoutError) as error:
            return f"The variables cannot be listed: {error}"

    async def catalog(self) -> Catalog:
        """Return the tools of the executor's MCP servers."""
        return McpCatalog(await self._executor.servers())

    async def cells(self) -> str | None:
        """Return ``None``: there is no notebook."""
        return None


class _Ran:
    """The code as it ran, possibly edited by a person."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.request_id: str | None = None

    def ended(self, request_id: str | None) -> None:
        self.request_id = request_id
