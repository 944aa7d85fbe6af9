"""`CodeService`: a task in, approved and executed code and its results out."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from jupyter_agentbox.agents.generators import CodeGenerator, create_code_generator
from jupyter_agentbox.agents.pipeline import CodePipeline
from jupyter_agentbox.agents.requests import CodeRequest
from jupyter_agentbox.agents.results import CodeResult, CodeStatus
from jupyter_agentbox.analysis.analyzer import CodeAnalyzer
from jupyter_agentbox.analysis.findings import AnalysisSettings
from jupyter_agentbox.core.policy import Policy
from jupyter_agentbox.exceptions import InvalidTransitionError

from .code_kernel import CodeKernel
from .code_runner import KernelCodeRunner
from .executor import CodeExecutor
from .requests import ApprovalRequest
from .sandbox_config import SandboxConfig

#: Decides a request: with `accept` and `reject`, or by returning whether it may run.
Approve = Callable[[ApprovalRequest], Awaitable[bool | None] | bool | None]

T = TypeVar("T")

_NOBODY: Final = "nobody could be asked: the service has no `approve`, and no rule covers this code"


class CodeRun:
    """A request for code in progress, created by `CodeService.start`.

    Attributes
    ----------
    request : CodeRequest
        The task for which code is generated.
    """

    def __init__(self, request: CodeRequest) -> None:
        self.request = request
        self._status = CodeStatus.GENERATING
        self._pending: dict[str, ApprovalRequest] = {}
        self._asked = asyncio.Event()
        self._task: asyncio.Task[CodeResult] | None = None

    @property
    def status(self) -> CodeStatus:
        """The current status; ``waiting`` while a decision is pending."""
        return self._status

    @property
    def pending(self) -> tuple[ApprovalRequest, ...]:
        """The pending approval requests, for the code or for its calls."""
        return tuple(self._pending.values())

    async def waiting(self) -> tuple[ApprovalRequest, ...]:
        """Wait for pending approval requests and return them; return none if the run ended without any."""
        if self._task is not None and not self._pending:
            asking = asyncio.ensure_future(self._asked.wait())
            await asyncio.wait([asking, self._task], return_when=asyncio.FIRST_COMPLETED)
            asking.cancel()
        return self.pending

    async def result(self) -> CodeResult:
        """Wait for the run to end and return its result. Cancelling the waiter does not cancel the run.

        Raises
        ------
        Exception
            Raised by `approve`; the run has then stopped.
        """
        if self._task is None:
            raise RuntimeError("the run was not started")
        return await asyncio.shield(self._task)

    async def cancel(self) -> None:
        """Withdraw pending requests, interrupt running code, and wait for the end, with the status ``cancelled``."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    def begin(self, task: asyncio.Task[CodeResult]) -> None:
        """Set the task that does the work."""
        self._task = task

    def become(self, status: CodeStatus) -> None:
        """Set a new status."""
        self._status = status

    def add(self, request: ApprovalRequest) -> None:
        """Add a request until it is decided."""
        self._pending[request.id] = request
        self._asked.set()
        request.on_decision(lambda _: self._forget(request))

    def _forget(self, request: ApprovalRequest) -> None:
        self._pending.pop(request.id, None)
        if not self._pending:
            self._asked.clear()


class CodeService:
    """Generate code for a task, analyze it, request approval, and run it.

    Errors are returned to the generator, which may try again, up to the request's `max_attempts`. Each piece of code
    is a request of its own, ``notebook.run_code``; a rejected, expired or blocked one is not retried. Tool calls in the
    code are requests, too.

    ::

        async with CodeService(generator=generator, approve=decide, sandbox=True) as service:
            result = await service.run(CodeRequest(user_query="…", task_objective="…"))

    Requests are processed one at a time. As a context manager the service keeps its kernel between requests, and
    clears its namespace before each piece of code; otherwise each request has a kernel of its own, which takes longer.

    Parameters
    ----------
    generator : CodeGenerator or str
        The code generator, or its name for `create_code_generator`, such as ``"model"``.
    generator_config : mapping, optional
        Configuration of a generator given by name: ``{"model": "openai:gpt-5.2"}``.
    approve : callable, optional
        A function or coroutine function called with each `ApprovalRequest`, for the code and its calls. It decides
        with `accept` and `reject`, now or later, or by returning true or false. Without it, `run` rejects what no rule
        decides, and the `CodeRun` that `start` returns lists it in `pending`.
    policy : Policy, optional
        Rules that allow, ask for or deny calls, including ``notebook.run_code``; without a rule everything asks.
    sandbox : bool
        Whether to run code in a sandbox, or not at all.
    sandbox_config : mapping, Path or str, optional
        The sandbox's settings; implies `sandbox`.
    working_dir, images_dir, mcp_config_path, database_url : optional
        As for `CodeExecutor`.
    approval_timeout : float, optional
        How long a request waits for its decision, in seconds; no limit by default.
    timeout : float, optional
        How long a piece of code may run, in seconds, not counting the time for decisions.
    analysis : AnalysisSettings, optional
        How the static analysis treats its findings.
    fresh_kernel : bool
        Whether each piece of code gets a new kernel. If not, only code that follows a failure does.

    Raises
    ------
    TypeError
        If the generator has no method `generate_code`, or `generator_config` is given without a generator's name.
    CodeGeneratorConfigurationError
        If there is no usable generator of that name. It is also a `ValueError`.
    SandboxConfigError
        If `sandbox_config` is invalid. It is also a `ValueError`.
    """

    def __init__(
        self,
        *,
        generator: CodeGenerator | str,
        generator_config: Mapping[str, Any] | None = None,
        approve: Approve | None = None,
        policy: Policy | None = None,
        sandbox: bool = False,
        sandbox_config: SandboxConfig | None = None,
        working_dir: Path | str | None = None,
        images_dir: Path | str | None = None,
        mcp_config_path: Path | str | None = None,
        database_url: str | None = None,
        approval_timeout: float | None = None,
        timeout: float | None = None,
        analysis: AnalysisSettings | None = None,
        fresh_kernel: bool = False,
    ) -> None:
        if isinstance(generator, str):
            generator = create_code_generator(generator, generator_config)
        elif generator_config is not None:
            raise TypeError("`generator_config` is for a generator that is named")
        given: object = generator  # whatever an untyped caller passes: a class has the method, too
        if isinstance(given, type) or not isinstance(given, CodeGenerator):
            raise TypeError(f"`generator` must be an object with a method `generate_code`: {generator!r:.80}")
        self._generator = generator
        self._approve = approve
        self._timeout = timeout
        self._fresh_kernel = fresh_kernel
        self._analyzer = CodeAnalyzer(analysis)
        self._make_executor: Callable[[], CodeExecutor] = partial(
            CodeExecutor,
            policy=policy,
            sandbox=sandbox,
            sandbox_config=sandbox_config,
            working_dir=working_dir,
            images_dir=images_dir,
            mcp_config_path=mcp_config_path,
            database_url=database_url,
            approval_timeout=approval_timeout,
        )
        self._make_executor()  # raise errors in the configuration now
        self._kernel: _KeptKernel | None = None
        self._turns = asyncio.Lock()
        self._busy: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        self._kernel = self._open()
        try:
            await asyncio.gather(self._kernel.started(), self._analyzer.preload())
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        kernel, self._kernel = self._kernel, None
        self._analyzer.close()
        if kernel is not None:
            await kernel.aclose()

    async def run(self, request: CodeRequest) -> CodeResult:
        """Process a request to its end. Cancelling withdraws its pending requests and interrupts its code.

        Parameters
        ----------
        request : CodeRequest
            The task for which code is generated.

        Returns
        -------
        CodeResult
            The result of every outcome; see its `status`.

        Raises
        ------
        RuntimeError
            Called from `approve` or from the generator, which would deadlock.
        Exception
            Raised by `approve`; nothing runs then.
        """
        run = self._start(request, self._approve or _refuse)
        try:
            return await run.result()
        except asyncio.CancelledError:
            await run.cancel()
            raise

    def start(self, request: CodeRequest) -> CodeRun:
        """Start a request and return at once: for programs that show its progress or decide elsewhere."""
        return self._start(request, self._approve or _leave)

    def _start(self, request: CodeRequest, approve: Approve) -> CodeRun:
        if asyncio.current_task() in self._busy:
            raise RuntimeError("a request that another one of this service waits for would wait for ever")
        run = CodeRun(request)
        run.begin(self._watched(asyncio.ensure_future(self._conduct(run, approve))))
        return run

    def _watched(self, task: asyncio.Task[T]) -> asyncio.Task[T]:
        """Remember a task that works on a request: it must not start another one of this service and wait for it."""
        self._busy.add(task)
        task.add_done_callback(self._busy.discard)
        return task

    async def _conduct(self, run: CodeRun, approve: Approve) -> CodeResult:
        pipeline = CodePipeline(generator=self._generator, analyzer=self._analyzer, on_status=run.become)
        try:
            async with self._turns:
                kernel = self._kernel or self._open()
                try:
                    return await self._go(run, approve, pipeline, kernel)
                finally:
                    if kernel is not self._kernel:
                        await asyncio.shield(kernel.aclose())
        except asyncio.CancelledError:
            return pipeline.cancel()

    async def _go(self, run: CodeRun, approve: Approve, pipeline: CodePipeline, kernel: _KeptKernel) -> CodeResult:
        deciding: set[asyncio.Task[None]] = set()
        try:
            async with asyncio.TaskGroup() as group:

                def ask(request: ApprovalRequest) -> None:
                    run.add(request)
                    deciding.add(self._watched(group.create_task(_decide(approve, request))))

                runner = KernelCodeRunner(kernel.code_kernel, analyzer=self._analyzer, on_request=ask)
                try:
                    return await pipeline.run(run.request, runner)
                finally:
                    for task in deciding:
                        task.cancel()
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None

    def _open(self) -> _KeptKernel:
        return _KeptKernel(self._make_executor(), timeout=self._timeout, always_fresh=self._fresh_kernel)


class _KeptKernel:
    """An executor that starts while code is being generated, and runs that code."""

    def __init__(self, executor: CodeExecutor, *, timeout: float | None, always_fresh: bool) -> None:
        self._executor = executor
        self._starting = asyncio.ensure_future(self._start())
        self.code_kernel = CodeKernel(executor, self.started, timeout=timeout, always_fresh=always_fresh)

    async def started(self) -> None:
        """Wait for the executor to start, or raise the error that prevented it."""
        await asyncio.shield(self._starting)

    async def aclose(self) -> None:
        """Stop the executor, even if it has not started yet."""
        self._starting.cancel()
        await asyncio.wait([self._starting])
        if not self._starting.cancelled():
            self._starting.exception()  # already reported, or nobody asked
        await self._executor.stop()

    async def _start(self) -> None:
        await self._executor.start()
        await self._executor.servers()  # loads the services that decide


async def _decide(approve: Approve, request: ApprovalRequest) -> None:
    try:
        answer = approve(request)
        if inspect.isawaitable(answer):
            answer = await answer
        if answer is True:
            await request.accept()
        elif answer is not None:
            await request.reject()
    except InvalidTransitionError as error:
        if error.request_id != request.id:  # otherwise it was withdrawn or has expired meanwhile
            raise


async def _refuse(request: ApprovalRequest) -> None:
    await request.reject_unasked(_NOBODY)


async def _leave(_request: ApprovalRequest) -> None:
    """Do nothing: whoever has the run decides."""
