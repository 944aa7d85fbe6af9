"""The functions that the model may call: running code, and inspecting the environment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final

from pydantic_ai import FunctionToolset, RunContext

from jupyter_agentbox.analysis.findings import Analysis
from jupyter_agentbox.background import in_background
from jupyter_agentbox.core.calls import TurnRef
from jupyter_agentbox.core.text import counted
from jupyter_agentbox.core.threads import CodeRun, ItemStatus, ToolCallItem
from jupyter_agentbox.exceptions import AgentBoxError

from . import tool_search
from .limits import TurnLimits, shortened
from .ports import AgentKernel, ApprovalAsked, CodeEnded, PendingApproval, ToolCallBegan, ToolCallEnded
from .record import TurnRecord
from .work_clock import WorkClock

#: Maximum length of an output stored with a turn, in characters: its beginning and end. The notebook or program has
#: all.
_MOST_RECORDED: Final = 1_000_000
#: Between steps, a turn is stored when it has grown by this factor, because each time the whole of it is written.
_GROWTH: Final = 1.05


async def _keep_nothing() -> None:
    """Do nothing."""


@dataclass(slots=True, kw_only=True)
class TurnContext:
    """The context of the functions in one turn.

    Parameters
    ----------
    record : TurnRecord
        The turn.
    kernel : AgentKernel
        The kernel for the code.
    clock : WorkClock
        The turn's timeout, which can be paused.
    limits : TurnLimits
        Limits on outputs sent to the model, and on listed calls.
    keep : callable
        Stores the turn's current state; set by whatever runs the turn.
    """

    record: TurnRecord
    kernel: AgentKernel
    clock: WorkClock
    limits: TurnLimits
    keep: Callable[[], Coroutine[object, object, None]] = _keep_nothing
    _calls: dict[str, ToolCallItem] = field(default_factory=dict)
    _listed: int = 0
    _waiting: set[asyncio.Task[None]] = field(default_factory=set)
    _kept: int = 0
    _keeping: asyncio.Task[None] | None = None

    def begin_step(self) -> None:
        """Record that the model is asked: the first code in its answer is stored before it runs."""
        self._kept = 0

    async def run_code(self, code: str) -> str:
        """Run code, and return the result for the model."""
        ended = await self.run(code)
        return self._report(ended, is_edited=ended.code != code)

    async def run(self, code: str, analysis: Analysis | None = None) -> CodeEnded:
        """Run code as an item of the turn, and return how it ended.

        Parameters
        ----------
        code : str
            The code.
        analysis : Analysis, optional
            The findings in the code. They make the policy stricter, and reviewers see them.
        """
        item = CodeRun(id=self.record.new_id(), code=code, status=ItemStatus.IN_PROGRESS)
        self.record.start(item)
        await self._keep_if_grown()
        turn = TurnRef(thread_id=self.record.turn.thread_id, turn_id=self.record.turn.id)
        running = self.kernel.run(code, turn=turn, analysis=analysis)
        async with aclosing(running) as events:
            async for event in events:
                match event:
                    case ApprovalAsked(request=request) if request.server_name == "notebook":
                        item = replace(item, request_id=request.id)
                        self.record.change(item)
                        self._keeping = in_background(self.keep(), what="keeping a turn that waits for a person")
                        self._ask(item.id, request)
                    case ApprovalAsked(request=request):
                        asked = self._start_call(request.id, request.server_name, request.tool_name)
                        self._ask(asked or item.id, request)
                    case ToolCallBegan(request_id=request_id, server=server, tool=tool):
                        self._start_call(request_id, server, tool)
                    case ToolCallEnded():
                        self._end_call(event)
                    case CodeEnded():
                        item = replace(
                            item,
                            code=event.code,
                            status=event.status,
                            text=shortened(event.text, _MOST_RECORDED),
                            error=shortened(event.error, _MOST_RECORDED),
                            request_id=event.request_id or item.request_id,
                        )
                        self.record.complete(item)
                        return event
        raise AgentBoxError("the kernel ended without giving a reason")

    async def _keep_if_grown(self) -> None:
        """Store the turn before code runs, if it has grown: a model's answer can have thousands of pieces of code."""
        count = len(self.record.turn.items)
        if count >= _GROWTH * self._kept:
            self._kept = count
            await self.keep()

    def _ask(self, item_id: str, request: PendingApproval) -> None:
        waiting = asyncio.create_task(self._await_decision(request))
        self._waiting.add(waiting)
        waiting.add_done_callback(self._waiting.discard)
        self.record.ask(item_id, request)

    async def _await_decision(self, request: PendingApproval) -> None:
        """Pause the turn's timeout while a decision is pending."""
        with self.clock.standing_still():
            await request.response()

    def close(self) -> None:
        """Stop waiting, because the turn ends."""
        for waiting in self._waiting:
            waiting.cancel()

    def _start_call(self, request_id: str, server: str, tool: str) -> str | None:
        """Add an item for a call and return its id; beyond the limit, calls are only in the approval store."""
        self._listed += 1
        if self._listed > self.limits.calls:
            if self._listed == self.limits.calls + 1:
                self.record.notice("calls", f"Only the first {self.limits.calls:,} tool calls of this turn are listed.")
            return None
        item = ToolCallItem(
            id=self.record.new_id(),
            server=server,
            tool=tool,
            request_id=request_id,
            status=ItemStatus.IN_PROGRESS,
        )
        self._calls[request_id] = item
        self.record.start(item)
        return item.id

    def _end_call(self, event: ToolCallEnded) -> None:
        item = self._calls.pop(event.request_id, None)
        if item is not None:
            self.record.complete(replace(item, status=event.status))

    def _report(self, ended: CodeEnded, *, is_edited: bool) -> str:
        if ended.status is ItemStatus.DECLINED:
            return f"The code did not run: {ended.error}"
        parts = [shortened(ended.text, self.limits.output_characters)] if ended.text else []
        if is_edited:
            parts.insert(0, f"A person edited the code before it ran. This ran:\n{ended.code}\nIts output:")
        if ended.comment:
            parts.insert(0, f"The person who allowed the code says: {ended.comment}")
        if ended.images:
            parts.append(f"({counted(ended.images, 'image was', 'images were')} displayed to the person)")
        if ended.error:
            parts.append(shortened(ended.error, self.limits.output_characters))
        return "\n".join(parts) or "(no output)"


@cache
def make_toolset() -> FunctionToolset[TurnContext]:
    """Return the functions that the model may call. Their docstrings are what it is told of them."""
    toolset: FunctionToolset[TurnContext] = FunctionToolset(sequential=True, max_retries=3)

    @toolset.tool
    async def run_code(context: RunContext[TurnContext], code: str) -> str:
        """Run Python in the person's kernel, after approval, and return what it printed, displayed and returned.

        Args:
            context: The turn.
            code: The code of one notebook cell.
        """
        return await context.deps.run_code(code)

    @toolset.tool
    async def list_variables(context: RunContext[TurnContext]) -> str:
        """Return the names, types and shapes of the variables in the person's namespace; no values."""
        return await context.deps.kernel.variables()

    @toolset.tool
    async def search_tools(context: RunContext[TurnContext], query: str) -> str:
        """Find tools of MCP servers by words: names and a line each. An empty query gives the servers.

        Args:
            context: The turn.
            query: Words of what the tool should do.
        """
        return await tool_search.search_tools(await context.deps.kernel.catalog(), query)

    @toolset.tool
    async def describe_tool(context: RunContext[TurnContext], server: str, tool: str) -> str:
        """Return how one tool is called from Python: its signature and description.

        Args:
            context: The turn.
            server: The server's name.
            tool: The tool's name.
        """
        try:
            text = await (await context.deps.kernel.catalog()).documentation(server, tool)
        except AgentBoxError as error:
            return str(error)
        return shortened(text, context.deps.limits.output_characters)

    @toolset.tool
    async def read_cells(context: RunContext[TurnContext]) -> str:
        """Return the source of the notebook's cells, if the person allowed it."""
        cells = await context.deps.kernel.cells()
        if cells is None:
            return "The person did not share the notebook's cells."
        return shortened(cells, context.deps.limits.output_characters)

    return toolset
