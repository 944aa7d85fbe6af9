"""An executor's kernel, cleared of earlier code's names and checked before each piece of code."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias

from jupyter_agentbox.analysis.findings import Analysis
from jupyter_agentbox.core.approvals import Status
from jupyter_agentbox.exceptions import AgentBoxError
from jupyter_agentbox.protocol.notebook import RESULTS_MIME_TYPE

from .executor import CodeExecutor
from .requests import ApprovalRequest
from .results import CodeExecutionError, CodeExecutionResult

_MODULE: Final = "__import__('jupyter_agentbox.kernel.code_results', fromlist=['begin'])"
_BEGIN: Final = f"{_MODULE}.begin()"
_PUBLISH: Final = f"{_MODULE}.publish()"
#: Seconds that our own code may run in the kernel.
_OWN_SECONDS: Final = 60.0

#: What happens while code is on its way.
Items: TypeAlias = AsyncGenerator[Any]
#: Runs code that was approved.
RunCell: TypeAlias = Callable[[str], Items]


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """The `results` that a piece of code set.

    Parameters
    ----------
    type : str or None
        The name of its type; ``None`` if there is no such name.
    results : object
        Its value as JSON, if it is a dictionary.
    """

    type: str | None = None
    results: Any = None

    @property
    def problem(self) -> str:
        """The problem with it; empty if there is none."""
        if self.type is None:
            return "NameError: the code left no dictionary `results`"
        return "" if isinstance(self.results, dict) else f"TypeError: `results` must be a dict, not {self.type}"


class CodeKernel:
    """The kernel in which one service's pieces of code run in turn.

    Parameters
    ----------
    executor : CodeExecutor
        Has the kernel.
    started : callable
        Waits until the executor has started.
    timeout : float or None
        Seconds that a piece of code may run, without the time that decisions take.
    always_fresh : bool
        Whether each piece of code gets a kernel of its own. Else one does that follows code which did not end well.
    """

    def __init__(
        self,
        executor: CodeExecutor,
        started: Callable[[], Awaitable[None]],
        *,
        timeout: float | None,
        always_fresh: bool = False,
    ) -> None:
        self._executor = executor
        self._started = started
        self._timeout = timeout
        self._always_fresh = always_fresh
        self._has_run = False
        self._is_whole = True
        self.left = Left()

    async def prepare(self) -> None:
        """Make sure that the kernel can run another piece of code.

        Raises
        ------
        AgentBoxError
            If none starts.
        """
        try:
            await self._started()
            if not self._is_whole or (self._has_run and self._always_fresh):
                await self._executor.reset()
                self._has_run, self._is_whole = False, True
        except (CodeExecutionError, TimeoutError) as error:
            raise AgentBoxError(f"no kernel could be started: {error}") from error

    def ask(self, code: str, analysis: Analysis, run_cell: RunCell, on_end: Callable[[str | None], None]) -> Items:
        """Request approval of code, have `run_cell` run the approved code, and yield what happens."""
        return self._executor.ask_first(code, run_cell, analysis=analysis, on_end=on_end)

    async def run(self, code: str) -> Items:
        """Run approved code, and yield its requests and its result; afterwards, `left` has the `results` that it set.

        Raises
        ------
        CodeExecutionError, TimeoutError
            It raised an error, or ran too long. The next piece of code gets another kernel.
        """
        had_run, self._has_run, self._is_whole, self.left = self._has_run, True, False, Left()
        if had_run:
            async for item in self._executor.stream(_BEGIN, timeout=_OWN_SECONDS):
                if isinstance(item, ApprovalRequest):
                    yield item
        has_ended = False
        async for item in self._executor.stream(code, timeout=self._timeout):
            has_ended = isinstance(item, CodeExecutionResult)
            yield item
        if not has_ended:
            return  # it was cancelled
        async for item in self._executor.stream(_PUBLISH, timeout=_OWN_SECONDS):
            if isinstance(item, CodeExecutionResult):
                self.left = _left(item)
            else:
                yield item
        self._is_whole = True

    async def refused_call(self, since: datetime) -> Status | None:
        """Return the error of the latest call that was refused since then; ``None`` if none was."""
        refused = await self._executor.refused_calls(since)
        return refused[0].status if refused else None


def _left(told: CodeExecutionResult) -> Left:
    """Parse the kernel's reply. The kernel runs arbitrary code, so it can contain anything."""
    answer = next((each[RESULTS_MIME_TYPE] for each in told.mime_bundles if RESULTS_MIME_TYPE in each), None)
    if not isinstance(answer, dict) or not isinstance(answer.get("type"), str | None):
        return Left()
    return Left(type=answer.get("type"), results=answer.get("results"))
