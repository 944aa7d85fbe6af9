"""`CodeExecutor`: code in, approval requests and results out."""

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
from .results import CodeExecutionError, CodeExecutionResult
from .running_kernel import Item, RunningKernel
from .sandbox_config import SandboxConfig, read_sandbox_config, writable_places

if TYPE_CHECKING:
    from jupyter_agentbox.services.calls.modes import ThreadModes

log = logging.getLogger(__name__)

_PRINT_VARIABLES: Final = (
    "from jupyter_agentbox.kernel.variables import print_variables\nprint_variables(get_ipython())"
)
#: Seconds that a kernel has to tell its variables.
_VARIABLES: Final = 30.0


class CodeExecutor:
    """Runs Python code in a kernel of its own, and asks before each tool call.

    Everything but the kernel and the MCP servers is in this process. Cells run one after the other and share the
    kernel's state. Each call that no rule decides is yielded by `stream` as an `ApprovalRequest`, and kept with its
    decision and outcome in the same approval store that JupyterLab uses.

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
        Environment variables of the kernel. Of this process's, it gets only what any process needs (``PATH``, ``HOME``,
        the language and the like), not its secrets.
    working_dir : Path, optional
        Where the kernel starts, and where each cell starts again; by default here, and code may change it.
    images_dir : Path, optional
        Where PNG images are written, ``images`` by default; made when there is one.
    approval_timeout : float, optional
        Seconds that a request waits for its decision; for ever by default.
    connect_timeout : float
        How long an MCP server may take to start, in seconds.
    kernel_init_timeout : float
        Seconds that the kernel may take to start.
    sandbox : bool
        Whether the kernel runs in a sandbox: no network but allowed domains, no credentials, no files but
        `working_dir`. If no sandbox can be made, `start` raises and nothing runs.
    sandbox_config : mapping, Path or str, optional
        The sandbox's settings, or the JSON file that has them; the keys are those of the traits of sandboxed kernels.
        Implies `sandbox`.
    log_level : str, optional
        Sets the level of this package's logger, for the whole process; else it is left as it is.
    approve_tool_calls : bool
        Whether tool calls ask. If not, they run, and are recorded.
    approve_shell_cmds : bool
        Whether ``!command``, ``%%bash`` and the like ask too. Their server is ``shell``.
    require_shell_escape : bool
        Whether other ways to start a program are refused: a guard against mistakes, not a wall.
    approve_code : bool
        Whether the code itself asks before it runs. Its server is ``notebook``, its tool ``run_code``; what was edited
        runs as it was edited.
    policy : Policy, optional
        Rules that allow, ask for or deny calls; the strictest that matches wins.
    mcp_config_path : Path, optional
        The file that names the MCP servers. By default, the servers that `generate_mcp_sources` was given, and those
        of ``mcp.json`` in Jupyter's configuration directory.
    database_url : str, optional
        SQLAlchemy URL of the approval store; JupyterLab's by default.
    on_question : callable, optional
        Awaited with the `ServerQuestion` that an MCP server asks while one of its tools runs. It returns the values of
        the form, ``True`` for a page that the person opens, ``False`` to decline, ``None`` to cancel. Without it,
        questions are declined, and `stream` says so.
    via : Via
        The way in which answers reach `ApprovalRequest.accept` and `reject`, for the record; by default they are this
        program's own.
    modes : ThreadModes, optional
        The approval modes of agents' threads: `AsyncAgent` gives it.
    tool_server_host, tool_server_port, kernel_gateway_host, kernel_gateway_port
        Taken for programs that were written for ipybox, with a warning: nothing listens on a port here.

    Attributes
    ----------
    kernel_env, working_dir, images_dir, approval_timeout, connect_timeout, kernel_init_timeout
        What was given, paths absolute. To change one, make another executor.
    sandbox, sandbox_config, log_level, approve_tool_calls, approve_shell_cmds, require_shell_escape, approve_code
        What was given.

    Raises
    ------
    ValueError
        If `require_shell_escape` is asked for without `approve_shell_cmds`.
    SandboxConfigError
        If `sandbox_config` is not understood. It is a `ValueError`, too.
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
        # resolved before any kernel could put a link there
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
        """The turn of an agent that works in the kernel, for the record; ``None`` if none does."""
        return self._backend.turn if self._backend is not None else None

    @agent_turn.setter
    def agent_turn(self, turn: TurnRef | None) -> None:
        self._require().backend.turn = turn

    @property
    def isolation(self) -> str:
        """The level of isolation that the running kernel has; ``"none"`` for a plain one, and if none runs."""
        return (self._running.kernel.isolation if self._running is not None else Isolation.NONE).value

    @property
    def is_usable(self) -> bool:
        """Whether cells can run. If the kernel has ended, or its code resists an interrupt, `reset` gives another."""
        return self._running is not None and self._running.turns.is_usable

    async def start(self) -> None:
        """Start the kernel.

        Raises
        ------
        RuntimeError
            If it runs already.
        CodeExecutionError
            If it does not start; the text has its last words.
        SandboxRefusedError
            If it is to have a sandbox and cannot; the text says what to install or to change.
        TimeoutError
            If it takes longer than `kernel_init_timeout`.
        """
        if self._backend is not None:
            raise RuntimeError("the executor is already running")
        settings = replace(self._backend_settings, kernel_places=writable_places(self._sandbox))
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
        """End the kernel and the MCP servers, and withdraw what waits. Does nothing if it does not run."""
        running, self._running = self._running, None
        backend, self._backend = self._backend, None
        closing = [part.aclose() for part in (backend,) if part is not None]
        if running is not None:
            closing.append(running.kernel.close())
            running.turns.lose("the executor was stopped")
        # Also when we are cancelled: what was begun is finished.
        await asyncio.shield(asyncio.gather(*closing))

    async def reset(self) -> None:
        """Start again with a fresh kernel: variables are gone, and MCP servers are stopped until they are used.

        A cell that runs ends with an error.

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
        """Interrupt the cell that runs: its `stream` ends without a result and without an error.

        Does nothing if no cell runs. What the cell asked for is withdrawn: from now on it cannot be accepted.
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

        Cells of other tasks wait for this one. Leaving the iteration early interrupts the code. A request that is not
        decided keeps its code waiting until `approval_timeout`; one of code that outlives its cell (a thread, a task)
        is yielded by the next `stream`.

        Parameters
        ----------
        code : str
            Python as in a notebook cell: top-level ``await``, magics and shell commands included.
        timeout : float, optional
            Seconds that it may run. While a request waits for its decision, they do not pass.
        chunks : bool
            Whether to yield text as it comes, too.
        progress : bool
            Whether to yield what tools and MCP servers say while they run, too.

        Yields
        ------
        ApprovalRequest
            A call that waits: `accept` or `reject` it.
        CodeExecutionChunk
            Text, if `chunks` is true.
        ToolProgress, ServerLogMessage
            How far a tool is and what a server logs, if `progress` is true. Untrusted text.
        CodeExecutionResult
            Once, at the end, unless the cell was cancelled.

        Raises
        ------
        CodeExecutionError
            The code raised an error, or a call of it was refused, expired or failed.
        ToolCallRejectedError, ApprovalExpiredError, ApprovalCancelledError
            With `approve_code`: the code was not approved, and did not run.
        TimeoutError
            The time is over; the code was interrupted and the kernel can be used on.
        RuntimeError
            The executor does not run, or this task holds up a cell of it.
        """
        run_cell = partial(self._run_cell, timeout=timeout, chunks=chunks, progress=progress)
        async with aclosing(self.ask_first(code, run_cell) if self.approve_code else run_cell(code)) as items:
            async for item in items:
                yield item

    async def run_approved(self, code: str) -> AsyncGenerator[Item | StoredRequest]:
        """Run code that was approved as `stream` does, and yield the request of each call of it when it changes, too.

        Yields
        ------
        ApprovalRequest, CodeExecutionResult
            As `stream` does.
        jupyter_agentbox.core.approvals.ApprovalRequest
            A request of a call as it is now, also of one that a rule decided.

        Raises
        ------
        CodeExecutionError, RuntimeError
            As `stream` does.
        """
        async with aclosing(self._run_cell(code, timeout=None, chunks=False, progress=False, calls=True)) as items:
            async for item in items:
                yield item

    async def request(self, request_id: str) -> StoredRequest:
        """Return the request of a call as it is now. What is being recorded of it is waited for.

        Raises
        ------
        UnknownApprovalError, StorageError
            It cannot be read.
        RuntimeError
            The executor does not run.
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
        """Ask about code as the call ``notebook.run_code``, and run what was approved in a way of the caller's own.

        Parameters
        ----------
        code : str
            The code.
        run_cell : callable
            An asynchronous generator of what is yielded; it gets the code that was approved.
        analysis : Analysis, optional
            What was found in the code. It makes the policy stricter, and whoever decides sees it.
        on_end : callable
            Gets the request's id, if the code ran.

        Raises
        ------
        ToolCallRejectedError, ApprovalExpiredError, ApprovalCancelledError
            The code was not approved, and did not run.
        CodeExecutionError, TimeoutError
            What `run_cell` raises.
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
        """Run code, accept every call that asks, and return the result.

        Parameters
        ----------
        code, timeout
            As in `stream`.

        Returns
        -------
        CodeExecutionResult
            With no text and no images if the cell was cancelled.

        Raises
        ------
        CodeExecutionError, TimeoutError, RuntimeError
            As in `stream`.
        """
        return await accept_all(self.stream(code, timeout=timeout))

    async def variables(self) -> str:
        """Return the names, types and shapes of the variables in the kernel, a line each; never values.

        Raises
        ------
        CodeExecutionError
            The kernel cannot tell.
        RuntimeError
            The executor does not run.
        """
        async with aclosing(
            self._run_cell(in_kernel(_PRINT_VARIABLES), timeout=_VARIABLES, chunks=False, progress=False)
        ) as items:
            async for item in items:
                if isinstance(item, CodeExecutionResult):
                    return item.text or ""
        raise CodeExecutionError("the kernel was interrupted")

    async def servers(self) -> ToolCatalog:
        """Return the configured MCP servers: how they are doing and what tools they have. It calls none of the tools.

        Raises
        ------
        RuntimeError
            The executor does not run.
        AgentBoxError
            The parts that run tools cannot be loaded.
        """
        return (await self._require().backend.box()).tools

    async def register_mcp_server(
        self,
        name: str,
        configuration: Mapping[str, Any],
        *,
        decide: Callable[[ApprovalRequest], Awaitable[None]],
    ) -> list[str]:
        """Ask to add an MCP server, and add it for this user's executors if that is allowed and it starts.

        The request is recorded, with its decision, as that of any call: it is one of ``agentbox.register_mcp_server``.
        No rule allows it that does not name that in full.

        Parameters
        ----------
        name : str
            What rules, requests and code call the server.
        configuration : mapping
            An entry as in ``mcp.json``. A relative ``cwd`` or ``envFile`` is taken from where this process works now.
        decide : callable
            A coroutine function that gets the request, if no rule decides it, and accepts or rejects it; cancelled when
            the request ends before. The request shows no values of secrets.

        Returns
        -------
        list of str
            The names of the server's tools.

        Raises
        ------
        ServerConfigurationError
            No such server can be added; nobody was asked. `mcp_config_path` rules it out.
        ToolCallRejectedError, ApprovalExpiredError
            It was not allowed; nothing was started.
        ToolServerError
            It did not start, and was not added.
        RuntimeError
            The executor does not run.
        """
        return await self._require().backend.register(name, absolute_paths(configuration), decide)

    async def refused_calls(self, since: datetime) -> Sequence[StoredRequest]:
        """Return the requests of this kernel's code that were rejected or have expired since then, newest first.

        Raises
        ------
        AgentBoxError
            They cannot be read.
        RuntimeError
            The executor does not run.
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
        self, code: str, *, timeout: float | None, chunks: bool, progress: bool, calls: bool = False
    ) -> AsyncGenerator[Any]:
        return self._require().run(code, timeout=timeout, chunks=chunks, progress=progress, calls=calls)

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
    except (OSError, KeyError, ImportError):  # no name for this user id
        return "unknown"
