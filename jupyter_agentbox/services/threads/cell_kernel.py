"""`CellKernel`: the kernel of a running `%%agent` cell, for the agent's loop.

The kernel runs the code under review, so it decides nothing: code is sent to it once it is approved and stored as
running, and its answers are text for the model.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Final, Protocol
from uuid import uuid4

from jupyter_agentbox.agents.threads.call_log import CallLog
from jupyter_agentbox.agents.threads.catalog import McpCatalog
from jupyter_agentbox.agents.threads.ports import ApprovalAsked, Catalog, CodeEnded, KernelEvent
from jupyter_agentbox.analysis.findings import Analysis, AnalysisOutcome
from jupyter_agentbox.core.approvals import ApprovalRequest, Status, comment_for
from jupyter_agentbox.core.calls import JsonObject, JsonValue, Origin, ToolCall, TurnRef
from jupyter_agentbox.core.ports import ToolCatalog
from jupyter_agentbox.core.threads import ItemStatus
from jupyter_agentbox.core.tools import ToolResult
from jupyter_agentbox.exceptions import (
    AgentBoxError,
    ApprovalCancelledError,
    ApprovalExpiredError,
    ThreadError,
    ToolCallInterruptedError,
    ToolCallRejectedError,
)
from jupyter_agentbox.protocol.messages import MAX_CODE_TEXT, CodeRan, GetVariables, RunCode
from jupyter_agentbox.protocol.notebook import NOTEBOOK_SERVER, RUN_CODE_TOOL
from jupyter_agentbox.services.approvals.decisions import DecisionManager
from jupyter_agentbox.services.approvals.manager import ApprovalManager
from jupyter_agentbox.services.calls.manager import CallManager
from jupyter_agentbox.services.calls.run_code import RunCodeTool
from jupyter_agentbox.services.kernel_connections.agent_cells import TurnCell

from .cell_approval import CellApproval
from .turn_requests import TurnRequests

#: How long a kernel may take to list its variables, in seconds.
_VARIABLES: Final = 30.0
#: How long interrupted code may take to end, in seconds; then the turn ends without it.
_INTERRUPT: Final = 5.0
_MOST_IMAGES: Final = 10_000
_STATUSES: Final = {
    "completed": ItemStatus.COMPLETED,
    "failed": ItemStatus.FAILED,
    "interrupted": ItemStatus.INTERRUPTED,
}


class Analyzer(Protocol):
    """Analyzes code before it runs."""

    async def analyze(self, code: str) -> Analysis:
        """Return the findings in a piece of code."""

    async def preload(self) -> None:
        """Load what it needs, so that the first analysis is fast."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellServices:
    """The services that cells' kernels use.

    Parameters
    ----------
    calls : CallManager
        Asks and records.
    approvals : ApprovalManager
        Holds the requests.
    decisions : DecisionManager
        Decides requests.
    requests : TurnRequests
        Reports changes of requests.
    catalog : ToolCatalog
        The tools that code may call.
    analyzer : Analyzer
        Analyzes code.
    interrupt : callable
        Interrupts a kernel, given its id.
    """

    calls: CallManager
    approvals: ApprovalManager
    decisions: DecisionManager
    requests: TurnRequests
    catalog: ToolCatalog
    analyzer: Analyzer
    interrupt: Callable[[str], Awaitable[None]]


class CellKernel:
    """An `AgentKernel` for the kernel of a cell.

    Parameters
    ----------
    cell : TurnCell
        The cell.
    message_id : str
        The id of its `StartTurn`.
    services : CellServices
        The services it uses.
    read_cells : callable
        Returns the notebook's cells as text; ``None`` if the person did not allow that.
    before_run : callable
        Awaited before code is sent, so that earlier events are shown first.

    Attributes
    ----------
    has_left : bool
        Whether the cell has ended.
    """

    def __init__(
        self,
        cell: TurnCell,
        message_id: str,
        *,
        services: CellServices,
        read_cells: Callable[[], Awaitable[str | None]],
        before_run: Callable[[], Awaitable[None]],
    ) -> None:
        self._cell = cell
        self._message_id = message_id
        self._services = services
        self._read_cells = read_cells
        self._before_run = before_run
        self._answers: dict[str, asyncio.Future[JsonObject]] = {}
        self._calls = _TurnCalls(services)
        self._run: _CodeRun | None = None
        self._unread: list[KernelEvent] = []
        self._following = ExitStack()
        self._is_following = False
        self.has_left = False

    def leave(self) -> None:
        """Record that the cell has ended: nothing in the kernel may be interrupted any more."""
        self.has_left = True
        self._following.close()

    def code_ran(self, message: CodeRan) -> None:
        """Handle the kernel's report on code; unexpected ones are dropped."""
        answer = self._answers.get(message.run_id)
        if answer is not None and not answer.done():
            answer.set_result(message.content)

    async def run(self, code: str, *, turn: TurnRef, analysis: Analysis | None = None) -> AsyncGenerator[KernelEvent]:
        """Request approval of code and run it."""
        analysis = analysis or await self._services.analyzer.analyze(code)
        run = self._run = _CodeRun(self, self._services, self._call(code, turn), analysis)
        self._follow(turn.turn_id)
        while self._unread:
            run.events.put_nowait(self._unread.pop(0))
        task = asyncio.create_task(run.work(self._calls))
        try:
            while (event := await run.events.get()) is not None:
                yield event
            await task
        finally:
            self._run = None
            task.cancel()
            await asyncio.wait([task])

    async def execute(self, code: str, request_id: str | None) -> JsonObject:
        """Run approved code in the cell; return the kernel's report."""
        await self._before_run()
        run_id = uuid4().hex
        try:
            return await self._ask(
                run_id, RunCode(id=self._message_id, run_id=run_id, code=code, request_id=request_id)
            )
        except asyncio.CancelledError:
            await asyncio.shield(self._interrupt(run_id))
            raise
        finally:
            self._answers.pop(run_id, None)

    async def variables(self) -> str:
        """Return the names, types and shapes of the variables."""
        run_id = uuid4().hex
        try:
            async with asyncio.timeout(_VARIABLES):
                content = await self._ask(run_id, GetVariables(id=self._message_id, run_id=run_id))
        except TimeoutError:
            return "The kernel does not answer."
        finally:
            self._answers.pop(run_id, None)
        return _text(content.get("text"))

    async def catalog(self) -> Catalog:
        """Return the tools of the server's MCP servers."""
        return McpCatalog(self._services.catalog)

    async def cells(self) -> str | None:
        """Return the notebook's cells, if the person allowed that."""
        return await self._read_cells()

    def _follow(self, turn_id: str) -> None:
        """Follow the turn's requests until the cell ends: a call may outlast the code that made it."""
        if not self._is_following:
            self._is_following = True
            self._following.enter_context(self._services.requests.of_turn(turn_id, self._request_changed))

    def _request_changed(self, stored: ApprovalRequest) -> None:
        run = self._run
        if stored.call.server == NOTEBOOK_SERVER:
            if run is not None:
                run.changed(stored)
            return
        for event in self._calls.changed(stored):
            if run is not None:
                run.events.put_nowait(event)
            else:
                self._unread.append(event)

    def _call(self, code: str, turn: TurnRef) -> ToolCall:
        cell = self._cell
        origin = Origin(
            kernel_id=cell.kernel_id,
            notebook_path=cell.notebook_path,
            cell_id=cell.cell_id,
            thread_id=turn.thread_id,
            turn_id=turn.turn_id,
            isolation=cell.isolation,
            has_own_settings=cell.has_own_settings,
            askers=cell.askers,
        )
        return ToolCall(server=NOTEBOOK_SERVER, tool=RUN_CODE_TOOL, arguments={"code": code}, origin=origin)

    async def _ask(self, run_id: str, message: RunCode | GetVariables) -> JsonObject:
        if self.has_left:
            raise ThreadError("the `%%agent` cell of this turn has ended")
        answer = self._answers[run_id] = asyncio.get_running_loop().create_future()
        self._cell.send(message)
        return await asyncio.shield(answer)

    async def _interrupt(self, run_id: str) -> None:
        """Interrupt the code of a turn that ends; wait briefly for its end."""
        answer = self._answers.get(run_id)
        if self.has_left or answer is None or answer.done():
            return
        await self._services.interrupt(self._cell.kernel_id)
        await asyncio.wait([answer], timeout=_INTERRUPT)


class _TurnCalls:
    """The tool calls made by a turn's code."""

    def __init__(self, services: CellServices) -> None:
        self._services = services
        self._log = CallLog()
        self._asked: dict[str, CellApproval] = {}

    def changed(self, stored: ApprovalRequest) -> Sequence[KernelEvent]:
        """Handle a new or changed request; return the new events of its call."""
        asked = self._asked.get(stored.id)
        events: list[KernelEvent] = []
        if asked is None and stored.status is Status.PENDING:
            asked = self._asked[stored.id] = CellApproval(stored, self._services.decisions)
            events.append(ApprovalAsked(request=asked))
        elif asked is not None:
            asked.changed(stored)
        return [*events, *self._log.changed(stored)]

    async def ends(self) -> Sequence[KernelEvent]:
        """Return the ends of calls that were still being stored when the code ended."""
        stored = [await self._services.approvals.get(request_id) for request_id in self._log.open]
        return [event for one in stored for event in self._log.changed(one)]


class _CodeRun:
    """A piece of code being processed."""

    def __init__(self, kernel: CellKernel, services: CellServices, call: ToolCall, analysis: Analysis) -> None:
        self.events: asyncio.Queue[KernelEvent | None] = asyncio.Queue()
        self._kernel = kernel
        self._services = services
        self._call = call
        self._analysis = analysis
        self._code = str(call.arguments["code"])
        self._request_id: str | None = None
        self._comment = ""
        self._own: CellApproval | None = None
        self._reply: JsonObject | None = None

    async def work(self, calls: _TurnCalls) -> None:
        """Request approval, run the code, and report the outcome."""
        try:
            ended = await self._ended()
            for event in await calls.ends():
                self.events.put_nowait(event)
            self.events.put_nowait(ended)
        finally:
            self.events.put_nowait(None)

    def changed(self, stored: ApprovalRequest) -> None:
        """Handle a change of the code's own request."""
        if self._own is not None and stored.id == self._own.id:
            self._own.changed(stored)

    async def _ended(self) -> CodeEnded:
        tool = RunCodeTool(self._run, self._analysis)
        try:
            await self._services.calls.run(
                self._call,
                on_waiting=self._ask,
                on_running=self._begin,
                is_wanted=lambda: not self._kernel.has_left,
                own=tool,
                floor=tool.floor(self._call),
            )
        except (ToolCallRejectedError, ApprovalExpiredError) as error:
            return self._not_run(ItemStatus.DECLINED, error)
        except (ToolCallInterruptedError, ApprovalCancelledError) as error:
            return self._not_run(ItemStatus.INTERRUPTED, error)
        ended = read_code_ended(self._code, self._reply or {})
        return replace(ended, request_id=self._request_id, comment=self._comment)

    def _not_run(self, status: ItemStatus, error: AgentBoxError) -> CodeEnded:
        return CodeEnded(code=self._code, status=status, error=str(error), request_id=error.request_id)

    def _ask(self, stored: ApprovalRequest) -> None:
        self._own = CellApproval(stored, self._services.decisions)
        self.events.put_nowait(ApprovalAsked(request=self._own))

    def _begin(self, stored: ApprovalRequest) -> None:
        self._request_id = stored.id
        self._comment = comment_for(stored)

    async def _run(self, code: str) -> ToolResult:
        """Run approved code; return the result for the record."""
        if code != self._code:
            await self._look_at(code)
            self._code = code
        self._reply = await self._kernel.execute(code, self._request_id)
        ended = read_code_ended(code, self._reply)
        text = ended.error.strip().rpartition("\n")[2] if ended.status is not ItemStatus.COMPLETED else ended.text
        return ToolResult(content=({"type": "text", "text": text},), is_error=ended.status is not ItemStatus.COMPLETED)

    async def _look_at(self, code: str) -> None:
        """Analyze code edited by a person. They have decided, but what the settings block does not run anyway."""
        analysis = await self._services.analyzer.analyze(code)
        if analysis.outcome is AnalysisOutcome.BLOCK:
            raise ToolCallRejectedError("the static analysis blocked the edited code; it did not run")


def read_code_ended(code: str, told: JsonObject) -> CodeEnded:
    """Parse a kernel's report on code that ran, which may contain anything."""
    images = told.get("images")
    count = images if isinstance(images, int) and not isinstance(images, bool) else 0
    return CodeEnded(
        code=code,
        status=_STATUSES.get(str(told.get("status")), ItemStatus.FAILED),
        text=_text(told.get("text")),
        error=_text(told.get("error")),
        images=max(0, min(count, _MOST_IMAGES)),
    )


def _text(value: JsonValue) -> str:
    return value[:MAX_CODE_TEXT] if isinstance(value, str) else ""
