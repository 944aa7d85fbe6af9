"""`Agent` and `AsyncAgent`: threads with a language model that works in its own kernel."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TypeAlias

from jupyter_agentbox import paths
from jupyter_agentbox.agents.threads.events import ApprovalRequested, TurnEvent
from jupyter_agentbox.agents.threads.limits import TurnLimits
from jupyter_agentbox.core.policy import Policy
from jupyter_agentbox.core.ports import ThreadQuery
from jupyter_agentbox.core.threads import ApprovalMode, Thread, Turn, TurnBackend
from jupyter_agentbox.exceptions import AgentBoxError, AgentConfigurationError, ApprovalError
from jupyter_agentbox.protocol.notebook import IN_AGENT_CODE
from jupyter_agentbox.services.calls.thread_modes import ThreadModes

from .agent_kernel import ExecutorKernel
from .executor import CodeExecutor
from .results import CodeExecutionError
from .sandbox_config import SandboxConfig

if TYPE_CHECKING:
    from jupyter_agentbox.agents.threads.manager import ThreadManager
    from jupyter_agentbox.agents.threads.models import ModelSettings
    from jupyter_agentbox.agents.threads.ports import AgentKernel, PendingApproval
    from jupyter_agentbox.agents.threads.running_turns import RunningTurn
    from jupyter_agentbox.storage.threads import SqlThreadStore

#: Decides a request: returns whether to accept it, or ``None`` if it has decided the request itself.
OnApproval: TypeAlias = "Callable[[PendingApproval], bool | Awaitable[bool | None] | None]"

#: Reason of the rejection if there is no `on_approval`.
NOBODY: Final = "nobody can be asked: the program passes no `on_approval`"


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadList:
    """A page of threads, most recently changed first.

    Parameters
    ----------
    data : tuple of Thread
        The threads, without their turns.
    next_cursor : str or None
        Cursor of the next page, if there is one.
    """

    data: tuple[Thread, ...]
    next_cursor: str | None = None


class AsyncAgent:
    """A language model that writes Python, a kernel that runs it, and threads that store the conversation.

    Code and tool calls need approval, as with `CodeExecutor`. Threads are stored beside the approvals.

    ::

        async with AsyncAgent(model="openai:gpt-5.2", sandbox=True) as agent:
            thread = await agent.thread_start()
            result = await thread.run("What is 6 * 7?", on_approval=decide)
            print(result.final_response)

    Parameters
    ----------
    model : str
        ``openai:NAME`` (Responses), ``openai-chat:NAME`` (Chat Completions) or ``anthropic:NAME``.
    base_url : str, optional
        Base URL of a server that implements the provider's API, such as Ollama, vLLM or a gateway.
    api_key : str, optional
        The model's API key. By default it is looked up in the environment, in ``model-keys.json`` in Jupyter's
        configuration directory (mode 0600), and in the operating system's keyring. It is sent only to `base_url`, or
        to the provider of `model`, and is never passed to a kernel.
    approval_mode : ApprovalMode or str
        Who decides requests in new threads if no rule does: ``"ask"``, ``"deny_all"`` or ``"auto_review"``.
    review_model : str, optional
        The model that reviews calls in ``auto_review`` mode; the thread's own by default.
    sandbox : bool
        Whether kernels run in a sandbox; see `CodeExecutor`.
    sandbox_config : mapping, Path or str, optional
        The sandbox's settings.
    working_dir : Path or str, optional
        Directory in which kernels start.
    policy : Policy, optional
        Rules that allow, ask for or deny calls; they take precedence over every mode.
    mcp_config_path : Path or str, optional
        The MCP configuration file; Jupyter's by default.
    database_url : str, optional
        SQLAlchemy URL of the approval store, which also holds the threads; JupyterLab's by default.
    approval_timeout : float, optional
        How long a request waits for its decision, in seconds; no limit by default.
    limits : TurnLimits, optional
        Limits of each turn.

    Raises
    ------
    AgentConfigurationError
        Called from code that an agent runs.
    ValueError
        There is no such approval mode.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        approval_mode: ApprovalMode | str = ApprovalMode.ASK,
        review_model: str | None = None,
        sandbox: bool = False,
        sandbox_config: SandboxConfig | None = None,
        working_dir: Path | str | None = None,
        policy: Policy | None = None,
        mcp_config_path: Path | str | None = None,
        database_url: str | None = None,
        approval_timeout: float | None = None,
        limits: TurnLimits | None = None,
    ) -> None:
        if os.environ.get(IN_AGENT_CODE):
            raise AgentConfigurationError("code that an agent runs cannot start agents")
        self.model = model
        self.approval_mode = ApprovalMode(approval_mode)
        self._base_url = base_url
        self._api_key = api_key
        modes = ThreadModes()
        self._kernels = _Kernels(
            partial(
                CodeExecutor,
                approve_code=True,
                kernel_env={IN_AGENT_CODE: "1"},
                sandbox=sandbox,
                sandbox_config=sandbox_config,
                working_dir=working_dir,
                policy=policy,
                mcp_config_path=mcp_config_path,
                database_url=database_url,
                approval_timeout=approval_timeout,
                modes=modes,
            )
        )
        self._threads, self._store = self._build(database_url, limits or TurnLimits(), modes, review_model or "")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Interrupt running turns and stop the kernels. Threads are kept, and can be resumed."""
        try:
            await self._threads.aclose()
        finally:
            try:
                await self._kernels.close()
            finally:
                await self._store.aclose()

    async def thread_start(
        self, *, approval_mode: ApprovalMode | str | None = None, model: str | None = None, name: str = ""
    ) -> AsyncThread:
        """Start a thread.

        Parameters
        ----------
        approval_mode : ApprovalMode or str, optional
            Overrides the agent's.
        model : str, optional
            Overrides the agent's.
        name : str
            The thread's display name.
        """
        mode = _mode(approval_mode) or self.approval_mode
        thread = await self._threads.start(model=model or self.model, mode=mode, name=name)
        return AsyncThread(self._threads, thread.id)

    async def thread_resume(
        self, thread_id: str, *, approval_mode: ApprovalMode | str | None = None, model: str | None = None
    ) -> AsyncThread:
        """Return an existing thread, possibly started by another process.

        Parameters
        ----------
        thread_id : str
            The thread.
        approval_mode, model : optional
            Replace the thread's, from its next turn on.

        Raises
        ------
        UnknownThreadError
        """
        thread = await self._threads.change(thread_id, mode=_mode(approval_mode), model=model)
        return AsyncThread(self._threads, thread.id)

    async def thread_fork(
        self,
        thread_id: str,
        *,
        turn_id: str | None = None,
        approval_mode: ApprovalMode | str | None = None,
        model: str | None = None,
    ) -> AsyncThread:
        """Start a thread as a copy of another one.

        Parameters
        ----------
        thread_id : str
            The thread to copy.
        turn_id : str, optional
            The last turn to copy; by default, the last that has ended.
        approval_mode, model : optional
            Override those of the copied thread.

        Raises
        ------
        UnknownThreadError
        """
        thread = await self._threads.fork(thread_id, turn_id=turn_id, mode=_mode(approval_mode), model=model)
        return AsyncThread(self._threads, thread.id)

    async def thread_list(self, *, archived: bool = False, limit: int = 50, cursor: str | None = None) -> ThreadList:
        """Return a page of threads, most recently changed first.

        Parameters
        ----------
        archived : bool
            Whether to list archived threads instead of the others.
        limit : int
            Page size, 1 to 500.
        cursor : str, optional
            The `next_cursor` of the previous page.

        Raises
        ------
        ValueError
            The cursor does not belong to this list.
        """
        page = await self._threads.list(ThreadQuery(is_archived=archived, limit=limit, cursor=cursor))
        return ThreadList(data=page.threads, next_cursor=page.next)

    async def thread_archive(self, thread_id: str) -> None:
        """Archive a thread, which hides it from lists."""
        await self._threads.archive(thread_id)

    async def thread_unarchive(self, thread_id: str) -> AsyncThread:
        """Restore an archived thread to the lists."""
        return AsyncThread(self._threads, (await self._threads.unarchive(thread_id)).id)

    async def thread_delete(self, thread_id: str) -> None:
        """Delete a thread and its turns.

        Raises
        ------
        ThreadBusyError
            One of its turns is in progress.
        """
        await self._threads.delete(thread_id)
        await self._kernels.end(thread_id)

    def _build(
        self, database_url: str | None, limits: TurnLimits, modes: ThreadModes, review_model: str
    ) -> tuple[ThreadManager, SqlThreadStore]:
        # Late: importing the package must be light.
        from jupyter_agentbox.agents.threads.clients import ModelClients  # noqa: PLC0415
        from jupyter_agentbox.agents.threads.manager import ThreadManager  # noqa: PLC0415
        from jupyter_agentbox.storage.approvals import sqlite_url  # noqa: PLC0415
        from jupyter_agentbox.storage.threads import SqlThreadStore  # noqa: PLC0415
        from jupyter_agentbox.system import RandomIds, SystemClock  # noqa: PLC0415

        clock = SystemClock()
        url = database_url or sqlite_url(str(paths.data_dir() / "approvals.sqlite"))
        store = SqlThreadStore(url, clock=clock)
        threads = ThreadManager(
            store=store,
            kernels=self._kernels,
            clients=ModelClients(self._model_settings),
            clock=clock,
            ids=RandomIds(),
            limits=limits,
            modes=modes,
            review_model=review_model,
        )
        return threads, store

    def _model_settings(self, model: str) -> ModelSettings:
        from jupyter_agentbox.agents.threads.keys import account_of, key_of  # noqa: PLC0415
        from jupyter_agentbox.agents.threads.models import ModelSettings, provider_of  # noqa: PLC0415

        provider = provider_of(model)
        # An explicit key is for the explicit address, or else for the provider of the agent's own model.
        is_given = self._base_url is not None or account_of(provider) == account_of(provider_of(self.model))
        key = (self._api_key if is_given else None) or key_of(provider)
        return ModelSettings(model=model, base_url=self._base_url, api_key=key)


class AsyncThread:
    """A thread of an `AsyncAgent`.

    Parameters
    ----------
    threads : ThreadManager
        Manages the thread.
    id : str
        The thread's id.
    """

    def __init__(self, threads: ThreadManager, id: str) -> None:
        self._threads = threads
        self.id = id

    async def read(self, *, include_turns: bool = False) -> Thread:
        """Return the thread's current state: `id`, `name`, `approval_mode`, and `turns` if requested."""
        return await self._threads.read(self.id, include_turns=include_turns)

    async def set_name(self, name: str) -> None:
        """Rename the thread."""
        await self._threads.set_name(self.id, name)

    async def turn(
        self,
        prompt: str,
        *,
        approval_mode: ApprovalMode | str | None = None,
        model: str | None = None,
        backend: TurnBackend | str = TurnBackend.LOOP,
    ) -> AsyncTurn:
        """Start a turn.

        Parameters
        ----------
        prompt : str
            The question or task for the agent.
        approval_mode, model : optional
            Replace the thread's, from this turn on.
        backend : TurnBackend or str
            ``"loop"``, or ``"generate"`` for code that is written, run and, on failure, rewritten, up to
            `TurnLimits.attempts` times.

        Raises
        ------
        ValueError
            There is no such back end, or approval mode.
        ThreadBusyError
            A turn of the thread is in progress.
        AgentConfigurationError
            The model cannot be used, or the extra ``agent`` is not installed. Nothing was sent to the model.
        """
        return AsyncTurn(
            await self._threads.begin(
                self.id, prompt, mode=_mode(approval_mode), model=model, backend=TurnBackend(backend)
            )
        )

    async def run(
        self,
        prompt: str,
        *,
        on_approval: OnApproval | None = None,
        approval_mode: ApprovalMode | str | None = None,
        model: str | None = None,
        backend: TurnBackend | str = TurnBackend.LOOP,
    ) -> Turn:
        """Start a turn and wait for its end. Cancelling interrupts it.

        Parameters
        ----------
        prompt, approval_mode, model, backend
            As for `turn`.
        on_approval : callable, optional
            Called with each request that waits for a person: returns ``True`` to accept it, or decides it itself and
            returns ``None``. Anything else rejects it. Without `on_approval`, such requests are rejected. Calls of a
            coroutine function can overlap, and are cancelled when the turn ends. A plain function is called in the
            event loop and blocks it, so one that waits, such as for `input`, belongs in `asyncio.to_thread`.

        Raises
        ------
        ThreadBusyError, AgentConfigurationError
            As for `turn`. A turn that fails does not raise: see `Turn.error`.
        """
        turn = await self.turn(prompt, approval_mode=approval_mode, model=model, backend=backend)
        return await turn.run(on_approval=on_approval)


class AsyncTurn:
    """A turn that was started.

    Parameters
    ----------
    running : RunningTurn
        The turn.
    """

    def __init__(self, running: RunningTurn) -> None:
        self._running = running
        self.id = running.id
        self.thread_id = running.thread_id

    async def stream(self, *, after: int = 0) -> AsyncIterator[TurnEvent]:
        """Yield the turn's events, past and future, until its end.

        Parameters
        ----------
        after : int
            How many events to skip.
        """
        async for event in self._running.stream.read(after):
            yield event

    async def steer(self, text: str) -> None:
        """Send the agent a message while it works.

        Raises
        ------
        ThreadError
            The turn has ended.
        """
        self._running.steer(text)

    async def interrupt(self) -> Turn:
        """End the turn now, whatever it waits for. Code that has run is not undone."""
        return await self._running.interrupt()

    async def run(self, *, on_approval: OnApproval | None = None) -> Turn:
        """Decide the turn's requests and wait for its end. Cancelling interrupts it.

        Parameters
        ----------
        on_approval : callable, optional
            As for `AsyncThread.run`.
        """
        try:
            await self._answer_requests(on_approval)
        except BaseExceptionGroup as errors:
            await self._running.interrupt()
            raise errors.exceptions[0] from None
        except BaseException:
            await self._running.interrupt()
            raise
        return self._running.turn

    async def _answer_requests(self, on_approval: OnApproval | None) -> None:
        answering: set[asyncio.Task[None]] = set()
        async with asyncio.TaskGroup() as group:
            async for event in self._running.stream.read():
                if isinstance(event, ApprovalRequested):
                    answering.add(group.create_task(_answer(event.request, on_approval)))
            for task in answering:  # the turn has ended, so no decision is needed any more
                task.cancel()


async def _answer(request: PendingApproval, on_approval: OnApproval | None) -> None:
    try:
        if on_approval is None:
            await request.reject_unasked(NOBODY)
            return
        answered = on_approval(request)
        answer = await answered if inspect.isawaitable(answered) else answered
        if answer is not None:
            # only `True`: a text such as "no" is truthy
            await (request.accept() if answer is True else request.reject())
    except ApprovalError:
        pass  # decided elsewhere or withdrawn; the code is told


def _mode(given: ApprovalMode | str | None) -> ApprovalMode | None:
    return None if given is None else ApprovalMode(given)


class _Kernels:
    """One kernel per thread, started on first use."""

    def __init__(self, make: Callable[[], CodeExecutor]) -> None:
        self._make = make
        self._kernels: dict[str, ExecutorKernel] = {}

    async def kernel(self, thread: Thread) -> AgentKernel:
        """Return the thread's kernel."""
        if thread.id not in self._kernels:
            executor = self._make()
            try:
                await executor.start()
            except (CodeExecutionError, TimeoutError) as error:
                raise AgentBoxError(f"the agent's kernel could not be started: {error}") from error
            self._kernels[thread.id] = ExecutorKernel(executor)
        return self._kernels[thread.id]

    async def end(self, thread_id: str) -> None:
        """Stop the thread's kernel, if it has one."""
        kernel = self._kernels.pop(thread_id, None)
        if kernel is not None:
            await kernel.stop()

    async def close(self) -> None:
        """Stop all kernels, even if stopping one fails."""
        ends = await asyncio.gather(*(self.end(thread_id) for thread_id in list(self._kernels)), return_exceptions=True)
        for failure in ends:
            if failure is not None:
                raise failure
