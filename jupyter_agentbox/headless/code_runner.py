"""Requests approval of a piece of code, runs the approved code, and returns the outcome."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from jupyter_agentbox.agents.ports import Analyzer, Execution, Waiting
from jupyter_agentbox.agents.results import CodeStatus
from jupyter_agentbox.analysis.findings import Analysis, AnalysisOutcome
from jupyter_agentbox.core.approvals import Status
from jupyter_agentbox.exceptions import ApprovalCancelledError, ApprovalExpiredError, ToolCallRejectedError
from jupyter_agentbox.protocol.notebook import RESULTS_MIME_TYPE

from .code_kernel import CodeKernel, Items
from .requests import ApprovalRequest
from .results import CodeExecutionError, CodeExecutionResult

#: Gets each request that waits.
OnRequest = Callable[[ApprovalRequest], None]
#: How a call of the code was refused -> what becomes of the code, if it failed.
_REFUSED: Final = {Status.REJECTED: CodeStatus.REJECTED, Status.EXPIRED: CodeStatus.EXPIRED}


class KernelCodeRunner:
    """A `CodeRunner` on a kernel.

    Parameters
    ----------
    kernel : CodeKernel
        Where the code runs.
    analyzer : Analyzer
        Looks at code that a person edited.
    on_request : callable
        Gets each request that waits: for the code, and for the calls that it makes.
    """

    def __init__(self, kernel: CodeKernel, *, analyzer: Analyzer, on_request: OnRequest) -> None:
        self._kernel = kernel
        self._analyzer = analyzer
        self._on_request = on_request

    async def run(self, code: str, analysis: Analysis, *, on_waiting: Waiting) -> Execution:
        """Request approval, and run the code if it is approved."""
        await self._kernel.prepare()
        run = _Run(self._kernel, self._analyzer, code, analysis, on_waiting)
        try:
            async with aclosing(self._kernel.ask(code, analysis, run.cell, run.ended)) as items:
                async for item in items:
                    if isinstance(item, ApprovalRequest):
                        run.waits_for(item)
                        self._on_request(item)
                    elif isinstance(item, CodeExecutionResult):
                        run.shown = item
        except ToolCallRejectedError as error:
            is_blocked = AnalysisOutcome.BLOCK in (analysis.outcome, run.analysis.outcome)
            return run.refused(CodeStatus.BLOCKED if is_blocked else CodeStatus.REJECTED, error, error.request_id)
        except ApprovalExpiredError as error:
            return run.refused(CodeStatus.EXPIRED, error, error.request_id)
        except ApprovalCancelledError as error:
            return run.refused(CodeStatus.CANCELLED, error, error.request_id)
        except CodeExecutionError as error:
            run.shown = error.result
            return run.execution(await self._status_of_failed(run), str(error))
        except TimeoutError as error:
            return run.execution(CodeStatus.FAILED, f"TimeoutError: {error}")
        finally:
            run.is_over = True
        return self._succeeded(run)

    async def _status_of_failed(self, run: _Run) -> CodeStatus:
        """Return the outcome of code that raised an error; if one of its calls was refused, that refusal."""
        refused = await self._kernel.refused_call(run.begun_at)
        return _REFUSED.get(refused, CodeStatus.FAILED) if refused is not None else CodeStatus.FAILED

    def _succeeded(self, run: _Run) -> Execution:
        if run.shown is None:
            return run.execution(CodeStatus.CANCELLED, "the code was interrupted")
        left = self._kernel.left
        return replace(run.execution(CodeStatus.SUCCEEDED, left.problem), results=left.results)


class _Run:
    """The progress of one piece of code: pending requests, the code that ran, its output."""

    def __init__(
        self, kernel: CodeKernel, analyzer: Analyzer, code: str, analysis: Analysis, on_waiting: Waiting
    ) -> None:
        self.analysis = analysis
        self.shown: CodeExecutionResult | None = None
        self.begun_at = datetime.now(UTC)
        self.is_over = False
        self._kernel = kernel
        self._analyzer = analyzer
        self._code = code
        self._on_waiting = on_waiting
        self._approved_code: str | None = None
        self._request_id: str | None = None
        self._pending: set[str] = set()

    async def cell(self, code: str) -> Items:
        """Run the code as approved, and yield what happens."""
        if code != self._code:
            await self._look_at(code)
        self._approved_code = code
        self._pending.clear()
        self._on_waiting(False)
        async with aclosing(self._kernel.run(code)) as items:
            async for item in items:
                yield item

    def ended(self, request_id: str | None) -> None:
        """Return the request's id, if the code ran."""
        self._request_id = request_id

    def waits_for(self, request: ApprovalRequest) -> None:
        """Report a pending request until it is decided."""
        self._pending.add(request.id)
        self._on_waiting(True)
        request.on_decision(lambda is_accepted: self._decided(request.id, is_accepted))

    def execution(self, status: CodeStatus, error: str) -> Execution:
        """Return the outcome of code that ran."""
        ran = Execution(
            status=status,
            error=error,
            request_id=self._request_id,
            approved_code=self._approved_code,
            analysis=self.analysis,
        )
        return ran if self.shown is None else _with_outputs(ran, self.shown)

    def refused(self, status: CodeStatus, error: Exception, request_id: str | None) -> Execution:
        """Return the outcome of code that did not run."""
        return Execution(status=status, error=str(error), request_id=request_id, analysis=self.analysis)

    async def _look_at(self, code: str) -> None:
        """Analyze code that a person edited. Their approval does not lift what the table of findings blocks."""
        self.analysis = await self._analyzer.analyze(code)
        if self.analysis.outcome is AnalysisOutcome.BLOCK:
            raise ToolCallRejectedError("the static analysis blocked the edited code; it did not run")

    def _decided(self, request_id: str, is_accepted: bool) -> None:
        was_pending = request_id in self._pending
        self._pending.discard(request_id)
        has_begun = self._approved_code is not None
        if was_pending and not self._pending and not self.is_over and (is_accepted or has_begun):
            self._on_waiting(False)


def _with_outputs(ran: Execution, shown: CodeExecutionResult) -> Execution:
    text = ({"text/plain": shown.text},) if shown.text else ()
    # What the code itself shows as its results is not what it left.
    bundles = tuple(bundle for bundle in shown.mime_bundles if RESULTS_MIME_TYPE not in bundle)
    return replace(ran, text=shown.text, outputs=(*text, *bundles), figures=tuple(shown.images))
