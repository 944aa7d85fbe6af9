"""Generate, analyze, ask, run; on an error, again with that error, up to a limit."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from jupyter_agentbox.analysis.findings import Analysis
from jupyter_agentbox.exceptions import AgentBoxError, CodeGeneratorConfigurationError

from .expected_results import problem_of
from .generators import CodeGenerator
from .ports import Analyzer, CodeRunner, Execution
from .requests import CodeRequest
from .results import Attempt, AttemptError, CodeResult, CodeStatus, Stage, latest_errors, step

log = logging.getLogger(__name__)


class CodePipeline:
    """Processes one request for code to its end.

    Parameters
    ----------
    generator : CodeGenerator
        Generates the code.
    analyzer : Analyzer
        Analyzes it.
    on_status : callable
        Called with each new status.
    """

    def __init__(
        self,
        *,
        generator: CodeGenerator,
        analyzer: Analyzer,
        on_status: Callable[[CodeStatus], None] = lambda _: None,
    ) -> None:
        self._generator = generator
        self._analyzer = analyzer
        self._on_status = on_status
        self._status: CodeStatus | None = None
        self._attempts: list[Attempt] = []

    async def run(self, request: CodeRequest, runner: CodeRunner) -> CodeResult:
        """Process a request and return its result.

        Parameters
        ----------
        request : CodeRequest
            The task for which code is generated.
        runner : CodeRunner
            Requests approval, and runs approved code.
        """
        for number in range(1, request.max_attempts + 1):
            attempt = await self._attempt(number, request, runner)
            self._attempts.append(attempt)
            if not attempt.may_be_repeated:
                break
        return self._end(self._attempts[-1].status)

    def cancel(self) -> CodeResult:
        """Return the result of a cancelled request, or its earlier result if it had already ended."""
        if self._status is not None and self._status.is_final:
            return self._end(self._status)
        number = len(self._attempts) + 1
        error = AttemptError(stage=Stage.APPROVAL, message="it was cancelled", attempt=number)
        self._attempts.append(Attempt(number=number, status=CodeStatus.CANCELLED, error=error))
        return self._end(CodeStatus.CANCELLED)

    def _end(self, status: CodeStatus) -> CodeResult:
        self._become(status)
        return CodeResult(attempts=tuple(self._attempts))

    async def _attempt(self, number: int, request: CodeRequest, runner: CodeRunner) -> Attempt:
        self._become(CodeStatus.GENERATING)
        attempt = Attempt(number=number, status=CodeStatus.FAILED)
        try:
            code = await self._generator.generate_code(request, latest_errors(self._attempts))
        except CodeGeneratorConfigurationError as error:
            return _failed(attempt, Stage.CONFIGURATION, str(error))
        except Exception as error:  # noqa: BLE001  # its text may have a key or a prompt, which no log may
            # A boundary: the generator is not ours. Any exception is an attempt without code.
            log.warning("attempt %d: the code generator raised %s", number, type(error).__name__)
            return _failed(attempt, Stage.GENERATION, f"{type(error).__name__}: {error}")
        if not _is_code(code):
            return _failed(attempt, Stage.GENERATION, "the code generator returned no code")
        return await self._approve_and_run(replace(attempt, code=code, metadata=self._metadata()), request, runner)

    async def _approve_and_run(self, attempt: Attempt, request: CodeRequest, runner: CodeRunner) -> Attempt:
        self._become(CodeStatus.ANALYSING)
        analysis: Analysis = await self._analyzer.analyze(attempt.code)
        attempt = replace(attempt, findings=analysis.findings)
        if (finding := analysis.syntax_error) is not None:
            return _failed(attempt, Stage.ANALYSIS, f"{finding.message} (line {finding.line})")
        try:
            execution = await runner.run(attempt.code, analysis, on_waiting=self._waits)
        except AgentBoxError as error:
            return _failed(attempt, Stage.CONFIGURATION, str(error))
        return _ended(attempt, execution, request)

    def _metadata(self) -> Mapping[str, Any]:
        tell = getattr(self._generator, "get_generation_metadata", None)
        try:
            metadata = tell() if callable(tell) else {}
            return dict(metadata or {})
        except Exception as error:  # noqa: BLE001  # its text may have a key or a prompt, which no log may
            # A boundary: the generator's metadata must not invalidate its code.
            log.warning("the code generator's metadata cannot be read: %s", type(error).__name__)
            return {}

    def _waits(self, is_waiting: bool) -> None:
        self._become(CodeStatus.WAITING if is_waiting else CodeStatus.RUNNING)

    def _become(self, status: CodeStatus) -> None:
        if self._status is not None and status is not self._status:
            step(self._status, status)
        self._status = status
        self._on_status(status)


def _is_code(value: object) -> bool:
    """Whether a generator, which is not ours, returned text that is not blank."""
    return isinstance(value, str) and bool(value.strip())


def _failed(attempt: Attempt, stage: Stage, message: str) -> Attempt:
    error = AttemptError(stage=stage, message=message, attempt=attempt.number, code=attempt.code)
    return replace(attempt, status=CodeStatus.FAILED, error=error)


def _ended(attempt: Attempt, execution: Execution, request: CodeRequest) -> Attempt:
    ran = execution.approved_code
    attempt = replace(
        attempt,
        status=execution.status,
        approved_code=ran,
        findings=attempt.findings if execution.analysis is None else execution.analysis.findings,
        request_id=execution.request_id,
        text=execution.text,
        outputs=execution.outputs,
        figures=execution.figures,
    )
    if execution.status is CodeStatus.SUCCEEDED:
        problem = execution.error or problem_of(execution.results, request.expected_results)
        if not problem:
            return replace(attempt, results=execution.results)
        stage, status = Stage.RESULTS, CodeStatus.FAILED
    else:
        problem, status = execution.error, execution.status
        stage = Stage.EXECUTION if ran is not None else Stage.APPROVAL
    code = ran if ran is not None else attempt.code
    error = AttemptError(stage=stage, message=problem, attempt=attempt.number, code=code)
    return replace(attempt, status=status, error=error)
