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

#: Decides about a request: by `accept` and `reject`, or by returning whether it may run.
Approve = Callable[[ApprovalRequest], Awaitable[bool | None] | bool | None]

T = TypeVar("T")

_NOBODY: Final = "nobody could be asked: the service has no `approve`, and no rule covers this code"


class CodeRun:
    """A request for code on its way. Made by `CodeService.start`.

    Attributes
    ----------
    request : CodeRequest
        What is wanted.
    """

    def __init__(self, request: CodeRequest) -> None:
        self.request = request
        self._status = CodeStatus.GENERATING
        self._pending: dict[str, ApprovalRequest] = {}
        self._asked = asyncio.Event()
        self._task: asyncio.Task[CodeResult] | None = None

    @property
    def status(self) -> CodeStatus:
        """Where it stands. While somebody has to decide it is ``waiting``, for as long as they take."""
        return self._status

    @property
    def pending(self) -> tuple[ApprovalRequest, ...]:
        """The requests that wait for a decision: of the code, or of calls that it makes."""
        return tuple(self._pending.values())

    async def waiting(self) -> tuple[ApprovalRequest, ...]:
        """Wait until somebody has to decide, and return what waits; nothing if it ended without."""
        if self._task is not None and not self._pending:
            asking = asyncio.ensure_future(self._asked.wait())
            await asyncio.wait([asking, self._task], return_when=asyncio.FIRST_COMPLETED)
            asking.cancel()
        return self.pending

    async def result(self) -> CodeResult:
        """Wait for the end and return what became of it. Who waits can be cancelled; the run goes on.

        Raises
        ------
        Exception
            What `approve` raised; then nothing of the run goes on.
        """
        if self._task is None:
            raise RuntimeError("the run was not started")
        return await asyncio.shield(self._task)

    async def cancel(self) -> None:
        """Withdraw what is asked, interrupt what runs, and wait for the end. The status is ``cancelled`` then."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    def begin(self, task: asyncio.Task[CodeResult]) -> None:
        """Take the task that does the work."""
        self._task = task

    def become(self, status: CodeStatus) -> None:
        """Take a new status."""
        self._status = status

    def add(self, request: ApprovalRequest) -> None:
        """Take a request that waits, until it is decided."""
        self._pending[request.id] = request
        self._asked.set()
        request.on_decision(lambda _: self._forget(request))

    def _forget(self, request: ApprovalRequest) -> None:
        self._pending.pop(request.id, None)
        if not self._pending:
            self._asked.clear()


class CodeService:
    """Has code made for a task, and run once somebody or a rule has approved it: generate, analyse, ask, run.

    What goes wrong goes to the generator, which may try again, up to the request's `max_attempts`. Each piece of code
    is a request of its own, ``notebook.run_code``; what was refused, expired or was blocked is not tried again. Calls
    of tools in the code are requests, too.

    ::

        async with CodeService(generator=generator, approve=decide, sandbox=True) as service:
            result = await service.run(CodeRequest(user_query="…", task_objective="…"))

    Requests take turns. As a context manager the service keeps its kernel from one to the next, and empties its names
    before each piece of code; without, each request has a kernel of its own, which takes longer.

    Parameters
    ----------
    generator : CodeGenerator or str
        Makes the code; or the name of one, such as ``"model"``, for `create_code_generator`.
    generator_config : mapping, optional
        What a generator that is named is made with: ``{"model": "openai:gpt-5.2"}``.
    approve : callable, optional
        Gets each `ApprovalRequest`, of the code and of its calls. It decides with `accept` and `reject`, now or later,
        or by what it returns: true or false. It may be a coroutine function. Without it `run` refuses what no rule
        decides, and what `start` gives has it in `pending`.
    policy : Policy, optional
        Rules that allow, ask for or deny calls, ``notebook.run_code`` too; without a rule everything asks.
    sandbox : bool
        Whether the kernel runs in a sandbox, or nothing does.
    sandbox_config : mapping, Path or str, optional
        The sandbox's settings; implies `sandbox`.
    working_dir, images_dir, mcp_config_path, database_url : optional
        As for `CodeExecutor`.
    approval_timeout : float, optional
        Seconds that a request waits for its decision; for ever by default.
    timeout : float, optional
        Seconds that a piece of code may run, without the time that decisions take.
    analysis : AnalysisSettings, optional
        What the static analysis makes of its findings.
    fresh_kernel : bool
        Whether each piece of code gets a kernel of its own. Else only one does that follows code which failed.

    Raises
    ------
    TypeError
        If the generator has no method `generate_code`, or `generator_config` is given with one that is not named.
    CodeGeneratorConfigurationError
        If no generator of the name can be made. It is a `ValueError`, too.
    SandboxConfigError
        If `sandbox_config` is not understood. It is a `ValueError`, too.
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
        given: object = generator  # whatever a caller without types gives: a class has the method, too
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
        self._make_executor()  # what cannot be understood should be said now
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
        """Take a request to its end. Cancelling this withdraws what is asked, and interrupts what runs.

        Parameters
        ----------
        request : CodeRequest
            What is wanted.

        Returns
        -------
        CodeResult
            Whatever became of it: its `status` says.

        Raises
        ------
        RuntimeError
            This is called by `approve`, or by the generator: it would wait for itself.
        Exception
            What `approve` raised; nothing runs then.
        """
        run = self._start(request, self._approve or _refuse)
        try:
            return await run.result()
        except asyncio.CancelledError:
            await run.cancel()
            raise

    def start(self, request: CodeRequest) -> CodeRun:
        """Begin with a request and return at once: for a program that shows where it stands, or decides elsewhere."""
        return self._start(request, self._approve or _leave)

    def _start(self, request: CodeRequest, approve: Approve) -> CodeRun:
        if asyncio.current_task() in self._busy:
            raise RuntimeError("a request that another one of this service waits for would wait for ever")
        run = CodeRun(request)
        run.begin(self._watched(asyncio.ensure_future(self._conduct(run, approve))))
        return run

    def _watched(self, task: asyncio.Task[T]) -> asyncio.Task[T]:
        """Remember who works for a request: none of them can begin another one of this service and wait for it."""
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
    """An executor that starts while code is being made, and what runs code in it."""

    def __init__(self, executor: CodeExecutor, *, timeout: float | None, always_fresh: bool) -> None:
        self._executor = executor
        self._starting = asyncio.ensure_future(self._start())
        self.code_kernel = CodeKernel(executor, self.started, timeout=timeout, always_fresh=always_fresh)

    async def started(self) -> None:
        """Wait until it has started; raises what kept it from that."""
        await asyncio.shield(self._starting)

    async def aclose(self) -> None:
        """End it, also if it has not started yet."""
        self._starting.cancel()
        await asyncio.wait([self._starting])
        if not self._starting.cancelled():
            self._starting.exception()  # somebody was told, or nobody asked
        await self._executor.stop()

    async def _start(self) -> None:
        await self._executor.start()
        await self._executor.servers()  # loads what decides


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
        if error.request_id != request.id:  # else it was withdrawn, or has expired, meanwhile
            raise


async def _refuse(request: ApprovalRequest) -> None:
    await request.reject_unasked(_NOBODY)


async def _leave(_request: ApprovalRequest) -> None:
    """Do nothing: whoever has the run decides."""
