"""`NotebookThreads`: agents' threads of this server's notebooks. Created when an agent is first used."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from jupyter_agentbox.agents.threads.events import TurnCompleted
from jupyter_agentbox.agents.threads.manager import ThreadManager
from jupyter_agentbox.agents.threads.ports import AgentKernel
from jupyter_agentbox.agents.threads.running_turns import RunningTurn
from jupyter_agentbox.agents.threads.streams import TurnStream
from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.ports import Clock, ThreadQuery, ThreadStore
from jupyter_agentbox.core.site_policy import Feature, SitePolicy
from jupyter_agentbox.core.threads import (
    ApprovalMode,
    Thread,
    ThreadState,
    Turn,
    TurnBackend,
    TurnStatus,
    TurnSummary,
    Usage,
    summary_of,
)
from jupyter_agentbox.exceptions import ThreadError

from .cell_kernels import CellKernels
from .event_reader import EventReader
from .thread_entries import ThreadEntry
from .turn_watch import TurnWatch

#: How many ended turns' events are kept, for clients that lost their connection.
MOST_ENDED: Final = 32
#: Approximate memory limit, in bytes, beyond which fewer are kept.
_MOST_WEIGHT: Final = 64_000_000
#: How many of a notebook's threads are searched for its current one.
_MOST_THREADS: Final = 500
#: Maximum number of a notebook's threads, including archived ones: code in its kernel can create any number.
MOST_OF_NOTEBOOK: Final = 200


class NotebookThreads:
    """Manages notebooks' threads, starts their turns, and tracks their states.

    Parameters
    ----------
    threads : ThreadManager
        Starts turns.
    store : ThreadStore
        Stores threads, including those that programs started.
    kernels : CellKernels
        The agents' kernels: the `ThreadKernels` of `threads`.
    announce : callable
        Called with a thread's id and state when its state or name changed, or it was created or deleted.
    clock : Clock
        Source of the time.
    default_model : str
        The model of new threads.
    review_model : str
        The model that reviews calls in ``auto_review`` mode; empty for the thread's own.
    site : callable, optional
        Returns the site's settings for its users.
    on_close : callable, optional
        Called at the end of `aclose`.
    """

    def __init__(
        self,
        *,
        threads: ThreadManager,
        store: ThreadStore,
        kernels: CellKernels,
        announce: Callable[[str, ThreadState], None],
        clock: Clock,
        default_model: str = "",
        review_model: str = "",
        site: Callable[[], SitePolicy] = SitePolicy,
        on_close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._threads = threads
        self._store = store
        self._kernels = kernels
        self._announce = announce
        self._clock = clock
        self._default_model = default_model
        self._review_model = review_model
        self._site = site
        self._on_close = on_close
        self._adding = asyncio.Lock()
        self._watches: dict[str, TurnWatch] = {}
        self._ended: OrderedDict[str, TurnStream] = OrderedDict()

    async def aclose(self) -> None:
        """Interrupt turns in progress. No turn can start any more."""
        watches = list(self._watches.values())
        await self._threads.aclose()
        await asyncio.gather(*(watch.wait() for watch in watches))
        if self._on_close is not None:
            await self._on_close()

    def reviewing_model(self, model: str) -> str:
        """Return the model that reviews calls in ``auto_review`` mode for a thread with this model."""
        return self._review_model or model or self._default_model

    async def current(self, notebook_path: str, *, without: str = "") -> Thread | None:
        """Return a notebook's current thread, the one last started or resumed, if any.

        Parameters
        ----------
        notebook_path : str
            The notebook.
        without : str, optional
            Id of a thread to ignore.
        """
        threads = [thread for thread in await self._of_notebook(notebook_path) if thread.id != without]
        return max(threads, key=lambda thread: thread.current_since or thread.created_at, default=None)

    async def start(
        self, notebook_path: str, *, name: str = "", mode: ApprovalMode = ApprovalMode.ASK, model: str | None = None
    ) -> Thread:
        """Start a thread, which becomes the notebook's current one.

        Raises
        ------
        ThreadError
            The notebook has too many threads.
        """
        async with self._adding:
            await self._require_room(notebook_path)
            thread = await self._threads.start(
                model=model or self._default_model, mode=mode, name=name, notebook_path=notebook_path
            )
        self._announce(thread.id, ThreadState.IDLE)
        return thread

    async def resume(self, thread_id: str, notebook_path: str) -> Thread:
        """Make a thread the notebook's current one, restoring it if archived and moving it if from another notebook.

        Raises
        ------
        UnknownThreadError
        """
        changes = {"notebook_path": notebook_path, "is_archived": False, "current_since": self._clock.now()}
        return await self._change(thread_id, changes)

    async def begin(
        self,
        thread_id: str,
        prompt: str,
        *,
        kernel: AgentKernel,
        kernel_id: str | None = None,
        mode: ApprovalMode | None = None,
        model: str | None = None,
        backend: TurnBackend = TurnBackend.LOOP,
        steps: int | None = None,
    ) -> RunningTurn:
        """Start a turn whose code runs in a kernel, which is reserved for the thread until the turn ends.

        Parameters
        ----------
        thread_id : str
            The thread.
        prompt : str
            The question or task for the agent.
        kernel : AgentKernel
            The kernel for its code.
        kernel_id : str, optional
            Jupyter's id of the kernel.
        mode, model : optional
            Replace the thread's, from this turn on.
        backend : TurnBackend
            The method of this turn.
        steps : int, optional
            Maximum number of requests to the model in this turn, if lower than the general limit.

        Raises
        ------
        UnknownThreadError
            There is no such thread.
        ThreadBusyError
            One of its turns is in progress.
        AgentConfigurationError
            The model cannot be used; nothing was sent to it.
        AgentTurnError
            An hourly limit was reached, so the turn could not start; nothing is stored.
        LockedError
            The site's administrator has disabled agents, or the choice of their model.
        """
        await self._check_site(thread_id, model)
        self._kernels.enter(thread_id, kernel, kernel_id=kernel_id)
        try:
            running = await self._threads.begin(thread_id, prompt, mode=mode, model=model, backend=backend, steps=steps)
        except BaseException:
            self._kernels.leave(thread_id)
            raise
        self._watches[thread_id] = TurnWatch(
            running, on_change=lambda: self._announce_state(thread_id), on_end=self._turn_ended
        )
        self._announce_state(thread_id)
        return running

    async def _check_site(self, thread_id: str, model: str | None) -> None:
        site = self._site()
        site.check(Feature.AGENTS)
        if site.is_off(Feature.MODELS):
            chosen = model or (await self._store.get(thread_id)).model
            if chosen != self._default_model:
                site.check(Feature.MODELS)

    async def list(self, query: ThreadQuery) -> tuple[Sequence[ThreadEntry], str | None]:
        """Return a page of threads, most recently changed first, and the cursor of the next page.

        Raises
        ------
        ValueError
            The cursor does not belong to this list.
        """
        page = await self._threads.list(query)
        summaries = await self._store.summaries([thread.id for thread in page.threads])
        return [self._entry(thread, summaries[thread.id]) for thread in page.threads], page.next

    async def read(self, thread_id: str) -> ThreadEntry:
        """Return a thread with its turns, including the current state of one in progress here.

        Raises
        ------
        UnknownThreadError
        """
        thread = await self._threads.read(thread_id, include_turns=True)
        return self._entry(thread, [summary_of(turn) for turn in thread.turns])

    async def entry(self, thread_id: str) -> ThreadEntry:
        """Return a thread without its turns.

        Raises
        ------
        UnknownThreadError
        """
        thread = await self._threads.read(thread_id)
        return self._entry(thread, (await self._store.summaries([thread_id]))[thread_id])

    async def change(
        self,
        thread_id: str,
        *,
        name: str | None = None,
        is_archived: bool | None = None,
        mode: ApprovalMode | None = None,
        model: str | None = None,
    ) -> Thread:
        """Change the given fields of a thread. Mode and model apply from its next turn on.

        Raises
        ------
        UnknownThreadError
        """
        changes = {"name": name, "is_archived": is_archived, "approval_mode": mode, "model": model}
        return await self._change(thread_id, {key: value for key, value in changes.items() if value is not None})

    async def follow_rename(self, old_path: str, new_path: str) -> None:
        """Move a notebook's threads when it, or a directory above it, is renamed."""
        for thread_id in await self._store.move(old_path, new_path):
            self._announce(thread_id, (await self.entry(thread_id)).state)

    async def delete(self, thread_id: str) -> None:
        """Delete a thread and its turns.

        Raises
        ------
        UnknownThreadError
        ThreadBusyError
            One of its turns is in progress.
        """
        await self._threads.delete(thread_id)
        self._announce(thread_id, ThreadState.DELETED)

    async def fork(self, thread_id: str, *, turn_id: str | None = None) -> Thread:
        """Start a thread as a copy of another one, with its turns up to one of them, or to the last that has ended.

        Raises
        ------
        UnknownThreadError
            There is no such thread, or no such turn that has ended.
        ThreadError
            Its notebook has too many threads.
        """
        async with self._adding:
            await self._require_room((await self._threads.read(thread_id)).notebook_path)
            fork = await self._threads.fork(thread_id, turn_id=turn_id)
        self._announce(fork.id, ThreadState.IDLE)
        return fork

    async def messages(self, thread_id: str) -> Sequence[JsonObject]:
        """Return the messages to and from the model in all turns.

        Raises
        ------
        UnknownThreadError
        AgentConfigurationError
            The library that reads them is not installed.
        """
        return await self._threads.messages(thread_id)

    async def turn(self, turn_id: str) -> Turn:
        """Return a turn, in its current state if it is in progress here.

        Raises
        ------
        UnknownThreadError
        """
        running = self._running(turn_id)
        return running.turn if running is not None else await self._store.get_turn(turn_id)

    async def steer(self, turn_id: str, text: str) -> Turn:
        """Send the agent a message while it works; return the turn.

        Raises
        ------
        UnknownThreadError
        ThreadError
            The turn has ended, or is in progress in another server.
        """
        running = await self._require_here(turn_id)
        if running is None:
            raise ThreadError(f"turn `{turn_id}` has ended: ask the agent again")
        running.steer(text)
        return running.turn

    async def interrupt(self, turn_id: str) -> Turn:
        """Interrupt a turn, whatever it waits for; return it as it ended. Does nothing if it has ended.

        Raises
        ------
        UnknownThreadError
        ThreadError
            It is in progress in another server.
        """
        running = await self._require_here(turn_id)
        return await running.interrupt() if running is not None else await self.turn(turn_id)

    async def events(self, turn_id: str, after: int = 0) -> EventReader:
        """Return a reader of a turn's events. Of a turn that ended long ago, or elsewhere, only the end is available.

        Parameters
        ----------
        turn_id : str
            The turn.
        after : int
            How many events the client already has.

        Raises
        ------
        UnknownThreadError
        ThreadError
            It is in progress in another server.
        ValueError
            It has fewer events than that.
        """
        running = self._running(turn_id)
        stream = running.stream if running is not None else self._ended.get(turn_id)
        if stream is not None:
            return EventReader(stream, after=after)
        await self._require_here(turn_id)
        stream = TurnStream()
        stream.put(TurnCompleted(turn=await self.turn(turn_id)))
        return EventReader(stream, first=after + 1)

    async def _require_here(self, turn_id: str) -> RunningTurn | None:
        """Return a turn in progress here; ``None`` if it has ended."""
        running = self._running(turn_id)
        if running is None and not (await self._store.get_turn(turn_id)).status.is_final:
            raise ThreadError(f"turn `{turn_id}` is in progress in another server")
        return running

    def _running(self, turn_id: str) -> RunningTurn | None:
        return next((one.running for one in self._watches.values() if one.running.id == turn_id), None)

    async def _require_room(self, notebook_path: str) -> None:
        if not notebook_path:
            return
        queries = (
            ThreadQuery(notebook_path=notebook_path, is_archived=archived, limit=MOST_OF_NOTEBOOK)
            for archived in (False, True)
        )
        if sum([len((await self._threads.list(query)).threads) for query in queries]) >= MOST_OF_NOTEBOOK:
            raise ThreadError(
                f"this notebook has {MOST_OF_NOTEBOOK} threads, and can have no more: delete some, archived ones too"
            )

    async def _of_notebook(self, notebook_path: str) -> Sequence[Thread]:
        if not notebook_path:
            return ()  # those of programs have none
        return (await self._threads.list(ThreadQuery(notebook_path=notebook_path, limit=_MOST_THREADS))).threads

    async def _change(self, thread_id: str, changes: dict[str, object]) -> Thread:
        thread = await self._store.change(thread_id, {**changes, "updated_at": self._clock.now()})
        self._announce(thread_id, (await self.entry(thread_id)).state)
        return thread

    def _entry(self, thread: Thread, summaries: Sequence[TurnSummary]) -> ThreadEntry:
        watch = self._watches.get(thread.id)
        if watch is not None:
            now = summary_of(watch.running.turn)
            summaries = [*(one for one in summaries if one.id != now.id), now]
        last = summaries[-1] if summaries else None
        return ThreadEntry(
            thread=thread,
            state=watch.state if watch is not None else _state_after(last),
            turn_id=last.id if last is not None and not last.status.is_final else None,
            kernel_id=self._kernels.kernel_of(thread.id),
            last_prompt=last.prompt if last is not None else "",
            usage=sum((one.usage for one in summaries), Usage()),
        )

    def _announce_state(self, thread_id: str) -> None:
        self._announce(thread_id, self._watches[thread_id].state)

    def _turn_ended(self, running: RunningTurn) -> None:
        self._kernels.leave(running.thread_id)
        del self._watches[running.thread_id]
        self._ended[running.id] = running.stream
        while len(self._ended) > MOST_ENDED or sum(one.weight for one in self._ended.values()) > _MOST_WEIGHT:
            self._ended.popitem(last=False)
        self._announce(running.thread_id, _state_after(summary_of(running.turn)))


def _state_after(last: TurnSummary | None) -> ThreadState:
    """Return the state of a thread without a turn in progress here."""
    if last is None:
        return ThreadState.IDLE
    return {TurnStatus.IN_PROGRESS: ThreadState.WORKING, TurnStatus.FAILED: ThreadState.FAILED}.get(
        last.status, ThreadState.IDLE
    )
