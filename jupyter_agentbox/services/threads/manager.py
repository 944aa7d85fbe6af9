"""`NotebookThreads`: the agents' threads of this server's notebooks. Made when an agent is first used."""

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
from .entries import ThreadEntry
from .event_reader import EventReader
from .watch import TurnWatch

#: Of how many turns that have ended the events are kept, for readers that were cut off.
MOST_ENDED: Final = 32
#: Bytes of memory, about, from which on fewer are kept.
_MOST_WEIGHT: Final = 64_000_000
#: How many threads of a notebook are looked through for its current one.
_MOST_THREADS: Final = 500
#: How many threads a notebook has at most, with those that were archived: code in its kernel can ask for any number.
MOST_OF_NOTEBOOK: Final = 200


class NotebookThreads:
    """Keeps the threads of notebooks, begins their turns, and knows what each does now.

    Parameters
    ----------
    threads : ThreadManager
        Begins turns.
    store : ThreadStore
        Where threads are kept; also those that programs started.
    kernels : CellKernels
        Where agents work: the `Workplace` of `threads`.
    announce : callable
        Told of a thread's id and state when its state, its name or its existence changed.
    clock : Clock
        The time of changes.
    default_model : str
        The model of new threads.
    review_model : str
        The model that reviews calls in the mode ``auto_review``; empty for the thread's own.
    site : callable, optional
        Returns what the site lets its users do.
    on_close : callable, optional
        Called last by `aclose`.
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
        """Interrupt what is in progress. No turn begins from now on."""
        watches = list(self._watches.values())
        await self._threads.aclose()
        await asyncio.gather(*(watch.wait() for watch in watches))
        if self._on_close is not None:
            await self._on_close()

    def reviewing_model(self, model: str) -> str:
        """Return which model reviews the calls of a thread that has this model, in the mode ``auto_review``."""
        return self._review_model or model or self._default_model

    async def current(self, notebook_path: str, *, without: str = "") -> Thread | None:
        """Return a notebook's current thread: the one that was started or resumed last; ``None`` if it has none.

        Parameters
        ----------
        notebook_path : str
            The notebook.
        without : str, optional
            The id of a thread that does not count.
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
            The notebook has too many.
        """
        async with self._adding:
            await self._require_room(notebook_path)
            thread = await self._threads.start(
                model=model or self._default_model, mode=mode, name=name, notebook_path=notebook_path
            )
        self._announce(thread.id, ThreadState.IDLE)
        return thread

    async def resume(self, thread_id: str, notebook_path: str) -> Thread:
        """Make a thread the notebook's current one; an archived one is restored, one of another notebook moves here.

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
        """Begin a turn whose code runs in a kernel. The kernel is the thread's until the turn ends.

        Parameters
        ----------
        thread_id : str
            The thread.
        prompt : str
            What the agent is asked.
        kernel : AgentKernel
            Where its code runs.
        kernel_id : str, optional
            Jupyter's id of the kernel.
        mode, model : optional
            Change the thread's, from this turn on.
        backend : TurnBackend
            How this turn is worked on.
        steps : int, optional
            How often the model may be asked in this turn, if that is less than otherwise.

        Raises
        ------
        UnknownThreadError
            There is no such thread.
        ThreadBusyError
            A turn of it is in progress.
        AgentConfigurationError
            The model cannot be used; it was asked nothing.
        AgentTurnError
            A limit per hour is reached, so the turn could ask no model; nothing of it is kept.
        LockedError
            The site's administrator has turned off agents, or the choice of their model.
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
        """Return a page of threads, the last changed first, and the cursor of the next page.

        Raises
        ------
        ValueError
            The cursor is none of this list.
        """
        page = await self._threads.list(query)
        summaries = await self._store.summaries([thread.id for thread in page.threads])
        return [self._entry(thread, summaries[thread.id]) for thread in page.threads], page.next

    async def read(self, thread_id: str) -> ThreadEntry:
        """Return a thread with its turns; one in progress here is as it is now.

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
        """Change what is given of a thread. Mode and model hold from its next turn on.

        Raises
        ------
        UnknownThreadError
        """
        changes = {"name": name, "is_archived": is_archived, "approval_mode": mode, "model": model}
        return await self._change(thread_id, {key: value for key, value in changes.items() if value is not None})

    async def follow_rename(self, old_path: str, new_path: str) -> None:
        """Keep the threads of a notebook with it when it, or a directory above it, gets another path."""
        for thread_id in await self._store.move(old_path, new_path):
            self._announce(thread_id, (await self.entry(thread_id)).state)

    async def delete(self, thread_id: str) -> None:
        """Remove a thread and its turns.

        Raises
        ------
        UnknownThreadError
        ThreadBusyError
            A turn of it is in progress.
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
            Its notebook has too many.
        """
        async with self._adding:
            await self._require_room((await self._threads.read(thread_id)).notebook_path)
            fork = await self._threads.fork(thread_id, turn_id=turn_id)
        self._announce(fork.id, ThreadState.IDLE)
        return fork

    async def messages(self, thread_id: str) -> Sequence[JsonObject]:
        """Return what the model was sent, and answered, in all turns.

        Raises
        ------
        UnknownThreadError
        AgentConfigurationError
            What reads it is not installed.
        """
        return await self._threads.messages(thread_id)

    async def turn(self, turn_id: str) -> Turn:
        """Return a turn; one in progress here is as it is now.

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
        """End a turn now, whatever it waits for; return it as it ended. Does nothing if it has ended.

        Raises
        ------
        UnknownThreadError
        ThreadError
            It is in progress in another server.
        """
        running = await self._require_here(turn_id)
        return await running.interrupt() if running is not None else await self.turn(turn_id)

    async def events(self, turn_id: str, after: int = 0) -> EventReader:
        """Return a reader of a turn's events. Of a turn that ended long ago, or elsewhere, only its end is left.

        Parameters
        ----------
        turn_id : str
            The turn.
        after : int
            How many events the reader has already.

        Raises
        ------
        UnknownThreadError
        ThreadError
            It is in progress in another server.
        ValueError
            It has fewer events.
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
        """Return a turn that is in progress here; ``None`` if it has ended."""
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
    """Return the state of a thread of which no turn is in progress here."""
    if last is None:
        return ThreadState.IDLE
    return {TurnStatus.IN_PROGRESS: ThreadState.WORKING, TurnStatus.FAILED: ThreadState.FAILED}.get(
        last.status, ThreadState.IDLE
    )
