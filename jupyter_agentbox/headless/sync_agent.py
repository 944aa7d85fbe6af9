"""`Agent`: an `AsyncAgent` for programs without an event loop, run in a separate thread."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast

from anyio.from_thread import BlockingPortal, start_blocking_portal

from jupyter_agentbox.agents.threads.events import ApprovalRequested, TurnCompleted
from jupyter_agentbox.core.threads import ApprovalMode, Thread, Turn, TurnBackend
from jupyter_agentbox.exceptions import ApprovalError

from .agent import NOBODY, AsyncAgent, AsyncThread, AsyncTurn, ThreadList

if TYPE_CHECKING:
    from jupyter_agentbox.agents.threads.events import TurnEvent
    from jupyter_agentbox.agents.threads.ports import PendingApproval

_Result = TypeVar("_Result")

#: A signal that arrives just before a thread begins to wait does not wake it: Python raises KeyboardInterrupt when the
#: wait ends. No wait is longer than this, in seconds.
_LONGEST_WAIT: Final = 0.5


class Agent:
    """A language model that writes Python, a kernel that runs it, and threads that store the conversation.

    ::

        with Agent(model="openai:gpt-5.2", sandbox=True) as agent:
            thread = agent.thread_start()
            result = thread.run("What is 6 * 7?", on_approval=decide)
            print(result.final_response)

    Parameters
    ----------
    model : str
        ``openai:NAME`` (Responses), ``openai-chat:NAME`` (Chat Completions) or ``anthropic:NAME``.
    **options
        As for `AsyncAgent`.
    """

    def __init__(self, model: str, **options: Any) -> None:
        self._make: Callable[[], AsyncAgent] = partial(AsyncAgent, model, **options)
        self._stack = ExitStack()
        self._agent: AsyncAgent | None = None
        self._portal: BlockingPortal | None = None

    def __enter__(self) -> Self:
        portal = self._stack.enter_context(start_blocking_portal("asyncio"))
        try:
            self._agent = _call(portal, self._construct)
        except BaseException:
            self._stack.close()
            raise
        self._portal = portal
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Interrupt running turns and stop the kernels. Threads are kept, and can be resumed."""
        agent, self._agent = self._agent, None
        if agent is not None and self._portal is not None:
            try:
                _call(self._portal, agent.close)
            finally:
                self._portal = None
                self._stack.close()

    def thread_start(
        self, *, approval_mode: ApprovalMode | str | None = None, model: str | None = None, name: str = ""
    ) -> AgentThread:
        """Start a thread; see `AsyncAgent.thread_start`."""
        agent, portal = self._require()
        made = _call(portal, partial(agent.thread_start, approval_mode=approval_mode, model=model, name=name))
        return AgentThread(portal, made)

    def thread_resume(
        self, thread_id: str, *, approval_mode: ApprovalMode | str | None = None, model: str | None = None
    ) -> AgentThread:
        """Return an existing thread; see `AsyncAgent.thread_resume`."""
        agent, portal = self._require()
        resume = partial(agent.thread_resume, thread_id, approval_mode=approval_mode, model=model)
        return AgentThread(portal, _call(portal, resume))

    def thread_fork(
        self,
        thread_id: str,
        *,
        turn_id: str | None = None,
        approval_mode: ApprovalMode | str | None = None,
        model: str | None = None,
    ) -> AgentThread:
        """Start a thread as a copy of another one; see `AsyncAgent.thread_fork`."""
        agent, portal = self._require()
        fork = partial(agent.thread_fork, thread_id, turn_id=turn_id, approval_mode=approval_mode, model=model)
        return AgentThread(portal, _call(portal, fork))

    def thread_list(self, *, archived: bool = False, limit: int = 50, cursor: str | None = None) -> ThreadList:
        """Return a page of threads; see `AsyncAgent.thread_list`."""
        agent, portal = self._require()
        return _call(portal, partial(agent.thread_list, archived=archived, limit=limit, cursor=cursor))

    def thread_archive(self, thread_id: str) -> None:
        """Archive a thread, which hides it from lists."""
        agent, portal = self._require()
        _call(portal, agent.thread_archive, thread_id)

    def thread_unarchive(self, thread_id: str) -> AgentThread:
        """Restore an archived thread to the lists."""
        agent, portal = self._require()
        return AgentThread(portal, _call(portal, agent.thread_unarchive, thread_id))

    def thread_delete(self, thread_id: str) -> None:
        """Delete a thread and its turns; see `AsyncAgent.thread_delete`."""
        agent, portal = self._require()
        _call(portal, agent.thread_delete, thread_id)

    async def _construct(self) -> AsyncAgent:
        return self._make()

    def _require(self) -> tuple[AsyncAgent, BlockingPortal]:
        if self._agent is None or self._portal is None:
            raise RuntimeError("the agent is not running: use it in a `with` block")
        return self._agent, self._portal


class AgentThread:
    """A thread of an `Agent`; see `AsyncThread` for its methods."""

    def __init__(self, portal: BlockingPortal, thread: AsyncThread) -> None:
        self._portal = portal
        self._thread = thread

    @property
    def id(self) -> str:
        """The thread's id."""
        return self._thread.id

    def read(self, *, include_turns: bool = False) -> Thread:
        """Return the thread's current state: `id`, `name`, `approval_mode`, and `turns` if requested."""
        return _call(self._portal, partial(self._thread.read, include_turns=include_turns))

    def set_name(self, name: str) -> None:
        """Rename the thread."""
        _call(self._portal, self._thread.set_name, name)

    def turn(
        self,
        prompt: str,
        *,
        approval_mode: ApprovalMode | str | None = None,
        model: str | None = None,
        backend: TurnBackend | str = TurnBackend.LOOP,
    ) -> AgentTurn:
        """Start a turn."""
        begin = partial(self._thread.turn, prompt, approval_mode=approval_mode, model=model, backend=backend)
        beginning = self._portal.start_task_soon(begin)
        try:
            return AgentTurn(self._portal, _result(beginning))
        except BaseException:
            # Ctrl-C: nobody has the turn, which must not go on.
            if not beginning.cancel() and beginning.exception() is None:
                _call(self._portal, beginning.result().interrupt)
            raise

    def run(
        self,
        prompt: str,
        *,
        on_approval: Callable[[BlockingRequest], bool | None] | None = None,
        approval_mode: ApprovalMode | str | None = None,
        model: str | None = None,
        backend: TurnBackend | str = TurnBackend.LOOP,
    ) -> Turn:
        """Start a turn and wait for its end. `on_approval` is called in this thread; Ctrl-C interrupts the turn."""
        turn = self.turn(prompt, approval_mode=approval_mode, model=model, backend=backend)
        return turn.run(on_approval=on_approval)


class AgentTurn:
    """A turn that was started; see `AsyncTurn` for its methods."""

    def __init__(self, portal: BlockingPortal, turn: AsyncTurn) -> None:
        self._portal = portal
        self._turn = turn
        self.id = turn.id
        self.thread_id = turn.thread_id

    def stream(self, *, after: int = 0) -> Iterator[TurnEvent]:
        """Yield the turn's events, past and future, until its end. Its requests are `BlockingRequest` objects."""
        events = self._turn.stream(after=after)
        while (event := _call(self._portal, _next, events)) is not None:
            yield _blocking(event, self._portal)
            if isinstance(event, TurnCompleted):
                return  # the agent may be closed by now

    def steer(self, text: str) -> None:
        """Send the agent a message while it works."""
        _call(self._portal, self._turn.steer, text)

    def interrupt(self) -> Turn:
        """End the turn now, whatever it waits for. Code that has run is not undone."""
        return _call(self._portal, self._turn.interrupt)

    def run(self, *, on_approval: Callable[[BlockingRequest], bool | None] | None = None) -> Turn:
        """Decide the turn's requests and wait for its end."""
        try:
            for event in self.stream():
                if isinstance(event, ApprovalRequested):
                    _answer(cast("BlockingRequest", event.request), on_approval)
                elif isinstance(event, TurnCompleted):
                    return event.turn
        except BaseException:
            with suppress(RuntimeError):  # the agent was closed, which ended the turn
                self.interrupt()
            raise
        raise AssertionError("`TurnCompleted` is the last event")


class BlockingRequest:
    """A request that waits for a decision, for a program without an event loop.

    Parameters
    ----------
    portal : BlockingPortal
        Where the agent works.
    request : PendingApproval
        The request.

    Attributes
    ----------
    server_name, tool_name : str
        The MCP server's and the tool's name; ``notebook`` and ``run_code`` for code.
    tool_args : dict
        The arguments.
    """

    def __init__(self, portal: BlockingPortal, request: PendingApproval) -> None:
        self._portal = portal
        self._request = request
        self.server_name = request.server_name
        self.tool_name = request.tool_name
        self.tool_args: dict[str, Any] = request.tool_args

    @property
    def id(self) -> str:
        """The request's id in the approval store."""
        return self._request.id

    def __str__(self) -> str:
        return str(self._request)

    def accept(self, arguments: Mapping[str, Any] | None = None) -> None:
        """Approve the call; see `ApprovalRequest.accept`."""
        _call(self._portal, self._request.accept, arguments)

    def reject(self, reason: str = "") -> None:
        """Reject the call; see `ApprovalRequest.reject`."""
        _call(self._portal, self._request.reject, reason)

    def reject_unasked(self, reason: str) -> None:
        """Fail the call because nobody is available to decide; see `ApprovalRequest.reject_unasked`."""
        _call(self._portal, self._request.reject_unasked, reason)


def _call(portal: BlockingPortal, function: Callable[..., Awaitable[_Result]], *arguments: Any) -> _Result:
    """Call like `BlockingPortal.call`, but let Ctrl-C interrupt at any time."""
    return _result(portal.start_task_soon(function, *arguments))


def _result(future: Future[_Result]) -> _Result:
    while not future.done():
        wait([future], timeout=_LONGEST_WAIT)
    return future.result()


async def _next(events: AsyncIterator[TurnEvent]) -> TurnEvent | None:
    return await anext(events, None)


def _blocking(event: TurnEvent, portal: BlockingPortal) -> TurnEvent:
    if not isinstance(event, ApprovalRequested):
        return event
    return replace(event, request=cast("PendingApproval", BlockingRequest(portal, event.request)))


def _answer(request: BlockingRequest, on_approval: Callable[[BlockingRequest], bool | None] | None) -> None:
    with suppress(ApprovalError):  # somebody was quicker, or it was withdrawn; the code hears of it
        if on_approval is None:
            request.reject_unasked(NOBODY)
            return
        answer: object = on_approval(request)  # whatever a program returns
        if inspect.iscoroutine(answer):
            answer.close()
            raise TypeError("`on_approval` of an `Agent` cannot be a coroutine function: use `AsyncAgent`")
        if answer is True:
            request.accept()
        elif answer is not None:
            request.reject()
