"""`CodeExecutor`: run code, yield its approval requests and results."""

from __future__ import annotations

import asyncio
import getpass
import logging
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from jupyter_agentbox.analysis.findings import Analysis
from jupyter_agentbox.core.approvals import ApprovalRequest as StoredRequest
from jupyter_agentbox.core.approvals import Status
from jupyter_agentbox.core.calls import TurnRef
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.policy import Policy
from jupyter_agentbox.core.ports import ApprovalQuery, ToolCatalog
from jupyter_agentbox.core.reviewers import Reviewer, Via
from jupyter_agentbox.protocol.notebook import NOTEBOOK_SERVER
from jupyter_agentbox.trusted_imports import in_kernel

from .accept_all import accept_all
from .asked_code import AskedCode
from .backend import LocalBackend
from .backend_settings import BackendSettings, allowing_tools
from .execution_queue import ExecutionQueue
from .kernel_processes import new_process
from .local_kernel import KernelSettings, LocalKernel, Preparation
from .mcp_sources import absolute_paths
from .questions import AnswerQuestion, OpenQuestions
from .reports import Report
from .requests import ApprovalRequest
from .results import CodeExecutionError, CodeExecutionResult, OutputMessage
from .running_kernel import Item, RunningKernel
from .sandbox_config import SandboxConfig, read_sandbox_config, writable_directories

if TYPE_CHECKING:
    from jupyter_agentbox.services.calls.thread_modes import ThreadModes

log = logging.getLogger(__name__)

_PRINT_VARIABLES: Final = (
    "from jupyter_agentbox.kernel.variables import print_variables\nprint_variables(get_ipython())"
)
#: How long, in seconds, a kernel may take to list its variables.
_VARIABLES: Final = 30.0


class CodeExecutor:
    """Run Python code in a dedicated kernel, and ask before each tool call.

    Everything but the kernel and the MCP servers runs in this process. Cells run one after the other and share the
    kernel's state. `stream` yields each call that no rule decides as an `ApprovalRequest`. Its decision and outcome are
    stored in the approval store that JupyterLab uses.

    ::

        async with CodeExecutor() as executor:
            async for item in executor.stream(code):
                match item:
                    case ApprovalRequest():
                        await item.accept()
                    case CodeExecutionResult():
                        print(item.text)

    Parameters
    ----------
    kernel_env : mapping, optional
        Environment variables of the kernel. From this process it inherits only the basics (``PATH``, ``HOME``, the
        language and the like), not its secrets.
    working_dir : Path, optional
        Directory in which the kernel and each cell start, unless code changes it; the current directory by default.
    images_dir : Path, optional
        Directory for PNG images, ``images`` by default; created for the first image.
    approval_timeout : float, optional
        How long a request waits for its decision, in seconds; no limit by default.
    connect_timeout : float
        How long an MCP server may take to start, in seconds.
    kernel_init_timeout : float
        How long the kernel may take to start, in seconds.
    sandbox : bool
        Whether the kernel runs in a sandbox: no network except allowed domains, no credentials, no files outside
        `working_dir`. If no sandbox can be created, `start` raises and nothing runs.
    sandbox_config : mapping, Path or str, optional
        The sandbox's settings, or the path of a JSON file with them; the keys are the trait names of sandboxed
        kernels. Implies `sandbox`.
    log_level : str, optional
        Level of this package's logger, for the whole process; unchanged by default.
    approve_tool_calls : bool
        Whether tool calls need approval. If not, they run, and are recorded.
    approve_shell_cmds : bool
        Whether ``!command``, ``%%bash`` and the like need approval too. Their server is ``shell``.
    require_shell_escape : bool
        Whether other ways to start a program are refused: a guard against mistakes, not a wall.
    approve_code : bool
        Whether the code itself needs approval before it runs. Its server is ``notebook``, its tool ``run_code``;
        edited code runs as edited.
    policy : Policy, optional
        Rules that allow, ask for or deny calls; the strictest matching rule wins.
    mcp_config_path : Path, optional
        The MCP configuration file. By default, the servers registered with `generate_mcp_sources` and those in
        ``mcp.json`` in Jupyter's configuration directory.
    database_url : str, optional
        SQLAlchemy URL of the approval store; JupyterLab's by default.
    on_question : callable, optional
        Awaited with each `ServerQuestion` that an MCP server asks while one of its tools runs. Returns the values of
        the form, ``True`` for a page that the person opens, ``False`` to decline, or ``None`` to cancel. Without it,
        questions are declined, and `stream` says so.
    via : Via
        How answers reach `ApprovalRequest.accept` and `reject`, for the record; by default, from this program. A
        person's answer counts once it is on disk, another one once it is stored (`Via.is_program`).
    modes : ThreadModes, optional
        The approval modes of agents' threads, passed by `AsyncAgent`.
    tool_server_host, tool_server_port, kernel_gateway_host, kernel_gateway_port
        Accepted for compatibility with ipybox, with a warning; nothing listens on a port here.

    Attributes
    ----------
    kernel_env, working_dir, images_dir, approval_timeout, connect_timeout, kernel_init_timeout
        The constructor's arguments, with absolute paths. To change one, create another executor.
    sandbox, sandbox_config, log_level, approve_tool_calls, approve_shell_cmds, require_shell_escape, approve_code
        The constructor's arguments.

    Raises
    ------
    ValueError
        If `require_shell_escape` is given without `approve_shell_cmds`.
    SandboxConfigError
        If `sandbox_config` is invalid. It is also a `ValueError`.
    """

    def __init__(
        self,
        *,
        kernel_env: Mapping[str, str] | None = None,
        working_dir: Path | str | None = None,
        images_dir: Path | str | None = None,
        approval_timeout: float | None = None,
        connect_timeout: float = 30,
        kernel_init_timeout: float = 30,
        sandbox: bool = False,
        sandbox_config: SandboxConfig | None = None,
        log_level: str | None = None,
        approve_tool_calls: bool = True,
        approve_shell_cmds: bool = False,
        require_shell_escape: bool = False,
        approve_code: bool = False,
        policy: Policy | None = None,
        mcp_config_path: Path | str | None = None,
        database_url: str | None = None,
        on_question: AnswerQuestion | None = None,
        via: Via = Via.PROGRAM,
        modes: ThreadModes | None = None,
        tool_server_host: str | None = None,
        tool_server_port: int | None = None,
        kernel_gateway_host: str | None = None,
        kernel_gateway_port: int | None = None,
    ) -> None:
        if any((tool_server_host, tool_server_port, kernel_gateway_host, kernel_gateway_port)):
            warnings.warn(
                "the hosts and ports of a tool server and a kernel gateway have no effect: neither exists here",
                stacklevel=2,
            )
        if require_shell_escape and not approve_shell_cmds:
            raise ValueError(
                "`require_shell_escape` needs `approve_shell_cmds`: without it, no shell command could run"
            )
        if log_level is not None:
            logging.getLogger("jupyter_agentbox").setLevel(log_level)
        directory = Path(working_dir).resolve() if working_dir is not None else None
        self._sandbox = None
        if sandbox or sandbox_config is not None:
            self._sandbox = read_sandbox_config(sandbox_config, work_dir=directory)
            directory = Path(self._sandbox.work_dir).expanduser().resolve() if self._sandbox.work_dir else None
        self.kernel_env = dict(kernel_env or {})
        self.working_dir = directory
        # resolved before a kernel can put a link there
        self.images_dir = Path(images_dir if images_dir is not None else "images").resolve()
        self.approval_timeout = approval_timeout
        self.connect_timeout = connect_timeout
        self.kernel_init_timeout = kernel_init_timeout
        self.sandbox = self._sandbox is not None
        self.sandbox_config = sandbox_config
        self.log_level = log_level
        self.approve_tool_calls = approve_tool_calls
        self.approve_shell_cmds = approve_shell_cmds
        self.require_shell_escape = require_shell_escape
        self.approve_code = approve_code
        self._questions = OpenQuestions(on_question, self._pace)
        self._kernel_settings = KernelSettings(
            env=self.kernel_env,
            start_timeout=kernel_init_timeout,
            preparation=Preparation(
                working_dir=str(directory) if directory is not None else None,
                approve_shell_cmds=approve_shell_cmds,
                require_shell_escape=require_shell_escape,
            ),
        )
        rules = policy or Policy()
        self._backend_settings = BackendSettings(
            policy=rules if approve_tool_calls else allowing_tools(rules),
            approval_timeout=approval_timeout,
            connect_timeout=connect_timeout,
            mcp_config_path=Path(mcp_config_path) if mcp_config_path is not None else None,
            database_url=database_url,
            reviewer=Reviewer(name=_user(), via=via),
            modes=modes,
            on_question=self._questions.ask if on_question is not None else None,
        )
        self._backend: LocalBackend | None = None
        self._running: RunningKernel | None = None
        self._asked: set[AskedCode] = set()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def agent_turn(self) -> TurnRef | None:
        """The agent's turn that is using the kernel, for the record, if any."""
        return self._backend.turn if self._backend is not None else None

    @agent_turn.setter
    def agent_turn(self, turn: TurnRef | None) -> None:
        self._require().backend.turn = turn

    @property
    def isolation(self) -> str:
        """The running kernel's level of isolation; ``"none"`` for a plain kernel, or if none is running."""
        return (self._running.kernel.isolation if self._running is not None else Isolation.NONE).value

    @property
    def is_usable(self) -> bool:
        """Whether cells can run. If the kernel has ended or ignores an interrupt, `reset` replaces it."""
        return self._running is not None and self._running.turns.is_usable

    async def start(self) -> None:
        """Start the kernel.

        Raises
        ------
        RuntimeError
            If it is already running.
        CodeExecutionError
            If it does not start; the message has its last output.
        SandboxRefusedError
            If its sandbox cannot be created; the message says what to install or change.
        TimeoutError
            If it takes longer than `kernel_init_timeout`.
        """
        if self._backend is not None:
            raise RuntimeError("the executor is already running")
        settings = replace(self._backend_settings, kernel_directories=writable_directories(self._sandbox))
        self._backend = LocalBackend(settings, self._request_changed, self._reported)
        try:
            self._running = await self._start_kernel(self._backend)
        except BaseException:
            backend, self._backend = self._backend, None
            await asyncio.shield(backend.aclose())
            raise
        if self.approve_shell_cmds:
            self._backend.preload()
        else:
            self._backend.preload_if_configured()

    async def stop(self) -> None:
        """Stop the kernel and the MCP servers, and withdraw pending requests. Do nothing if not running."""
        running, self._running = self._running, None
        backend, self._backend = self._backend, None
        closing = [part.aclose() for part in (backend,) if part is not None]
        if running is not None:
            closing.append(running.kernel.close())
            running.turns.lose("the executor was stopped")
        # Shielded: a stop that has begun is completed even if this task is cancelled.
        await asyncio.shield(asyncio.gather(*closing))

    async def reset(self) -> None:
        """Replace the kernel with a fresh one: variables are lost, and MCP servers stop until their next use.

        A running cell ends with an error.

        Raises
        ------
        CodeExecutionError, SandboxRefusedError, TimeoutError
            If the new kernel does not start.
        """
        running = self._require()
        backend = running.backend
        running.turns.lose("the kernel was reset")
        await backend.detach()
        ending = asyncio.gather(running.kernel.close(), backend.stop_servers())
        try:
            self._running = await self._start_kernel(backend)
        finally:
            await asyncio.shield(ending)

    def cancel(self) -> None:
        """Interrupt the running cell: its `stream` ends without a result and without an error.

        Do nothing if no cell is running. The cell's pending requests are withdrawn: they can no longer be accepted.
        """
        if self._running is None:
            return
        turn = self._running.turns.current
        if turn is not None:
            self._running.cancel(turn)
            return
        for asked in self._asked:
            asked.cancel()

    async def stream(
        self, code: str, timeout: float | None = None, chunks: bool = False, progress: bool = False
    ) -> AsyncGenerator[Item]:
        """Run code and yield what happens, as it happens.

        Cells of other tasks wait for this one. Leaving the iteration early interrupts the code. An undecided request
        blocks its code until `approval_timeout`; a request from code that outlives its cell (a thread, a task) is
        yielded by the next `stream`.

        Parameters
        ----------
        code : str
            Python, as in a notebook cell: top-level ``await``, magics and shell commands included.
        timeout : float, optional
            How long the code may run, in seconds, not counting the time that requests wait for decisions.
        chunks : bool
            Whether to yield text as it arrives, too.
        progress : bool
            Whether to yield progress and log messages of tools and MCP servers, too.

        Yields
        ------
        ApprovalRequest
            A pending call: `accept` or `reject` it.
        CodeExecutionChunk
            Text, if `chunks` is true.
        ToolProgress, ServerLogMessage
            A running tool's progress and a server's log messages, if `progress` is true. Untrusted text.
        CodeExecutionResult
            Once, at the end, unless the cell was cancelled.

        Raises
        ------
        CodeExecutionError
            The code raised an error, or one of its calls was rejected, expired or failed.
        ToolCallRejectedError, ApprovalExpiredError, ApprovalCancelledError
            With `approve_code`: the code was not approved, and did not run.
        TimeoutError
            The code timed out and was interrupted; the kernel remains usable.
        RuntimeError
            The executor is not running, or this task is itself iterating over one of its cells.
        """
        run_cell = partial(self._run_cell, timeout=timeout, chunks=chunks, progress=progress)
        async with aclosing(self.ask_first(code, run_cell) if self.approve_code else run_cell(code)) as items:
            async for item in items:
                yield item

    async def run_approved(
        self, code: str, timeout: float | None = None, chunks: bool = False, outputs: bool = False
    ) -> AsyncGenerator[Item | StoredRequest | OutputMessage]:
        """Run approved code as `stream` does, and also yield each call's request whenever it changes.

        Parameters
        ----------
        code, timeout, chunks
            As for `stream`.
        outputs : bool
            Whether to yield outputs as the kernel sends them, too.

        Yields
        ------
        ApprovalRequest, CodeExecutionChunk, CodeExecutionResult
            As `stream` does.
        jupyter_agentbox.core.approvals.ApprovalRequest
            A call's request in its current state, including calls that a rule decided.
        OutputMessage
            An output, if `outputs` is true.

        Raises
        ------
        CodeExecutionError, RuntimeError, TimeoutError
            As `stream` does.
        """
        run = self._run_cell(code, timeout=timeout, chunks=chunks, progress=False, calls=True, outputs=outputs)
        async with aclosing(run) as items:
            async for item in items:
                yield item

    async def request(self, request_id: str) -> StoredRequest:
        """Return a call's request in its current state, after changes that are still being recorded.

        Raises
        ------
        UnknownApprovalError, StorageError
            It does not exist or cannot be read.
        RuntimeError
            The executor is not running.
        """
        return await (await self._require().backend.box()).approvals.get(request_id)

    async def ask_first(
        self,
        code: str,
        run_cell: Callable[[str], AsyncGenerator[Item]],
        *,
        analysis: Analysis | None = None,
        on_end: Callable[[str | None], None] = lambda _: None,
    ) -> AsyncGenerator[Item]:
        """Request approval of code as the call ``notebook.run_code``, and run the approved code with `run_cell`.

        Parameters
        ----------
        code : str
            The code.
        run_cell : callable
            An asynchronous generator function, called with the approved code; its items are yielded.
        analysis : Analysis, optional
            The findings in the code. They make the policy stricter, and reviewers see them.
        on_end : callable
            Called with the request's id, if the code ran.

        Raises
        ------
        ToolCallRejectedError, ApprovalExpiredError, ApprovalCancelledError
            The code was not approved, and did not run.
        CodeExecutionError, TimeoutError
            Raised by `run_cell`.
        """
        running = self._require()
        kernel, backend = running.kernel, running.backend
        asked = AskedCode(backend, run_cell, analysis)
        self._asked.add(asked)
        asking = asked.stream(code, kernel_id=kernel.id, isolation=kernel.isolation, turn=backend.turn)
        try:
            async with aclosing(asking) as items:
                async for item in items:
                    yield item
        finally:
            self._asked.discard(asked)
            on_end(asked.request_id)

    async def execute(self, code: str, timeout: float | None = None) -> CodeExecutionResult:
        """Run code, accept all of its requests, and return the result.

        Parameters
        ----------
        code, timeout
            As in `stream`.

        Returns
        -------
        CodeExecutionResult
            Without text and images if the cell was cancelled.

        Raises
        ------
        CodeExecutionError, TimeoutError, RuntimeError
            As in `stream`.
        """
        return await accept_all(self.stream(code, timeout=timeout))

    async def variables(self) -> str:
        """Return the names, types and shapes of the kernel's variables, one per line, without values.

        Raises
        ------
        CodeExecutionError
            The kernel cannot list them.
        RuntimeError
            The executor is not running.
        """
        async with aclosing(
            self._run_cell(in_kernel(_PRINT_VARIABLES), timeout=_VARIABLES, chunks=False, progress=False)
        ) as items:
            async for item in items:
                if isinstance(item, CodeExecutionResult):
                    return item.text or ""
        raise CodeExecutionError("the kernel was interrupted")

    async def servers(self) -> ToolCatalog:
        """Return the configured MCP servers with their status and tools. No tool is called.

        Raises
        ------
        RuntimeError
            The executor is not running.
        AgentBoxError
            The services that run tools cannot be loaded.
        """
        return (await self._require().backend.box()).tools

    async def register_mcp_server(
        self,
        name: str,
        configuration: Mapping[str, Any],
        *,
        decide: Callable[[ApprovalRequest], Awaitable[None]],
    ) -> list[str]:
        """Request approval to add an MCP server; if it is approved and starts, add it for this user's executors.

        The request, a call of ``agentbox.register_mcp_server``, is recorded with its decision like any other. Only a
        rule with exactly that name can allow it.

        Parameters
        ----------
        name : str
            The server's name in rules, requests and code.
        configuration : mapping
            An entry as in ``mcp.json``. A relative ``cwd`` or ``envFile`` is resolved against the current directory.
        decide : callable
            A coroutine function called with the request, if no rule decides it, that accepts or rejects it; cancelled
            if the request ends first. The request does not show secret values.

        Returns
        -------
        list of str
            The names of the server's tools.

        Raises
        ------
        ServerConfigurationError
            Such a server cannot be added, or `mcp_config_path` is set; nobody was asked.
        ToolCallRejectedError, ApprovalExpiredError
            It was not approved; nothing was started.
        ToolServerError
            It did not start and was not added.
        RuntimeError
            The executor is not running.
        """
        return await self._require().backend.register(name, absolute_paths(configuration), decide)

    async def refused_calls(self, since: datetime) -> Sequence[StoredRequest]:
        """Return this kernel's requests that were rejected or have expired since then, newest first.

        Raises
        ------
        AgentBoxError
            They cannot be read.
        RuntimeError
            The executor is not running.
        """
        running = self._require()
        box = await running.backend.box()
        query = ApprovalQuery(statuses=(Status.REJECTED, Status.EXPIRED), kernel_id=running.kernel.id, limit=20)
        page = await box.approvals.list(query)
        return [request for request in page.approvals if request.created_at >= since]

    async def _start_kernel(self, backend: LocalBackend) -> RunningKernel:
        make_process = partial(new_process, sandbox=self._sandbox, backend=self._backend_settings)
        kernel = LocalKernel(self._kernel_settings, make_process)
        turns = ExecutionQueue(kernel, images_dir=self.images_dir, on_comm=backend.receive)
        backend.attach(kernel)
        await kernel.start()
        return RunningKernel(kernel=kernel, turns=turns, backend=backend, questions=self._questions)

    def _require(self) -> RunningKernel:
        if self._running is None:
            raise RuntimeError("the executor is not running: use it with `async with`, or call `start`")
        return self._running

    def _run_cell(
        self,
        code: str,
        *,
        timeout: float | None,
        chunks: bool,
        progress: bool,
        calls: bool = False,
        outputs: bool = False,
    ) -> AsyncGenerator[Any]:
        return self._require().run(
            code, timeout=timeout, chunks=chunks, progress=progress, calls=calls, outputs=outputs
        )

    def _request_changed(self, stored: StoredRequest) -> None:
        if self._running is None:
            return
        if stored.call.server == NOTEBOOK_SERVER:
            for asked in self._asked:
                asked.changed(stored)
            return
        self._running.request_changed(stored)

    def _reported(self, report: Report) -> None:
        if self._running is not None:
            self._running.report(report)

    def _pace(self) -> None:
        if self._running is not None:
            self._running.pace()


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # this user id has no name
        return "unknown"
