"""`ThreadManager`: starts, resumes, forks and keeps threads, and begins their turns."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.ports import CallReviewer, Clock, Ids, ThreadPage, ThreadQuery, ThreadStore
from jupyter_agentbox.core.threads import ApprovalMode, Thread, Turn, TurnBackend, TurnErrorCode
from jupyter_agentbox.exceptions import (
    AgentConfigurationError,
    AgentTurnError,
    StorageError,
    ThreadError,
    UnknownThreadError,
)

from .clients import ModelClients
from .imports import without_collections
from .limits import HourlyUse, TurnLimits
from .ports import ModeKeeper
from .record import TurnRecord
from .running_turns import RunningTurn
from .streams import TurnStream
from .thread_kernels import LazyKernel, ThreadKernels
from .usage_meter import UsageMeter
from .work_clock import WorkClock

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import Model

    from .turns import TurnRunner


#: Bytes of a conversation that are read at once: to do it in a thread would take longer.
_SHORT: Final = 20_000


class ThreadManager:
    """Keeps threads, and begins their turns.

    Parameters
    ----------
    store : ThreadStore
        The store of threads and turns.
    kernels : ThreadKernels
        The kernels in which agents work.
    clients : ModelClients
        The models' clients, which are closed with the manager.
    clock : Clock
        The time that is stored.
    ids : Ids
        Creates ids.
    limits : TurnLimits
        What agents may use.
    modes : ModeKeeper
        Makes the calls of a thread be decided by its approval mode.
    review_model : str
        The model that reviews calls in the mode ``auto_review``; empty for the thread's own.
    """

    def __init__(
        self,
        *,
        store: ThreadStore,
        kernels: ThreadKernels,
        clients: ModelClients,
        clock: Clock,
        ids: Ids,
        limits: TurnLimits,
        modes: ModeKeeper,
        review_model: str = "",
    ) -> None:
        self._store = store
        self._kernels = kernels
        self._clients = clients
        self._clock = clock
        self._ids = ids
        self._limits = limits
        self._modes = modes
        self._review_model = review_model
        self._use = HourlyUse(limits, time.monotonic)
        self._running: dict[str, RunningTurn] = {}
        self._beginning: set[asyncio.Task[RunningTurn]] = set()
        self._ending: set[asyncio.Task[Turn]] = set()
        self._unkept: dict[str, tuple[Turn, bytes]] = {}
        self._is_closed = False
        self._is_imported = False

    async def start(
        self, *, model: str, mode: ApprovalMode = ApprovalMode.ASK, name: str = "", notebook_path: str = ""
    ) -> Thread:
        """Start a thread."""
        now = self._clock.now()
        thread = Thread(
            id=self._ids.new(),
            created_at=now,
            updated_at=now,
            name=name,
            approval_mode=mode,
            model=model,
            notebook_path=notebook_path,
        )
        await self._store.put(thread)
        return thread

    async def read(self, thread_id: str, *, include_turns: bool = False) -> Thread:
        """Return a thread; a turn in progress here is in its present state.

        Raises
        ------
        UnknownThreadError
        """
        thread = await self._store.get(thread_id, include_turns=include_turns)
        running = self._running.get(thread_id)
        if running is None or not include_turns:
            return thread
        return replace(thread, turns=tuple(running.turn if one.id == running.id else one for one in thread.turns))

    async def list(self, query: ThreadQuery) -> ThreadPage:
        """Return a page of threads, the most recently changed first."""
        return await self._store.list(query)

    async def set_name(self, thread_id: str, name: str) -> Thread:
        """Give a thread a name."""
        return await self._change(thread_id, name=name)

    async def archive(self, thread_id: str) -> Thread:
        """Archive a thread: lists omit it."""
        return await self._change(thread_id, is_archived=True)

    async def unarchive(self, thread_id: str) -> Thread:
        """Restore an archived thread to the lists."""
        return await self._change(thread_id, is_archived=False)

    async def delete(self, thread_id: str) -> None:
        """Remove a thread and its turns.

        Raises
        ------
        ThreadBusyError
            A turn of it is in progress.
        """
        await self._keep_end(thread_id)
        await self._store.delete(thread_id)

    async def change(self, thread_id: str, *, mode: ApprovalMode | None = None, model: str | None = None) -> Thread:
        """Change the given fields of a thread, from its next turn on; return it.

        Raises
        ------
        UnknownThreadError
        """
        if mode is None and model is None:
            return await self._store.get(thread_id)
        return await self._change(thread_id, **_given(approval_mode=mode, model=model))

    async def fork(
        self,
        thread_id: str,
        *,
        turn_id: str | None = None,
        mode: ApprovalMode | None = None,
        model: str | None = None,
    ) -> Thread:
        """Start a thread as a copy of another one, with its turns up to one of them.

        Parameters
        ----------
        thread_id : str
            The thread to copy.
        turn_id : str, optional
            The last turn to copy; by default, the last one that has ended.
        mode, model : optional
            A mode and a model other than those of the copied thread.

        Raises
        ------
        UnknownThreadError
            There is no such thread, or no such turn that has ended.
        """
        source = await self.read(thread_id, include_turns=True)
        ended = [turn.id for turn in source.turns if turn.status.is_final]
        if turn_id is not None and turn_id not in ended:
            raise UnknownThreadError(f"thread `{thread_id}` has no finished turn `{turn_id}`")
        copied = ended if turn_id is None else ended[: ended.index(turn_id) + 1]
        now = self._clock.now()
        fork = replace(
            source,
            id=self._ids.new(),
            approval_mode=mode or source.approval_mode,
            model=model or source.model,
            created_at=now,
            updated_at=now,
            forked_from=source.id,
            is_archived=False,
            current_since=None,
            turns=(),
        )
        await self._store.copy(thread_id, fork, {one: self._ids.new() for one in copied})
        return fork

    async def messages(self, thread_id: str) -> Sequence[JsonObject]:
        """Return the messages to and from the model in all turns, in the form of `message_texts`.

        Raises
        ------
        UnknownThreadError
            There is no such thread.
        AgentConfigurationError
            The library that reads them is not installed.
        """
        await self._store.get(thread_id)
        return await asyncio.to_thread(_message_texts, await self._store.histories(thread_id))

    async def begin(
        self,
        thread_id: str,
        prompt: str,
        *,
        mode: ApprovalMode | None = None,
        model: str | None = None,
        backend: TurnBackend = TurnBackend.LOOP,
        steps: int | None = None,
    ) -> RunningTurn:
        """Begin a turn.

        Parameters
        ----------
        thread_id : str
            The thread.
        prompt : str
            The person's request to the agent.
        mode, model : optional
            The thread's new mode and model, from this turn on.
        backend : TurnBackend
            How this turn is processed.
        steps : int, optional
            Maximum number of requests to the model in this turn, if lower than the limit.

        Raises
        ------
        UnknownThreadError
            There is no such thread.
        ThreadBusyError
            A turn of it is in progress.
        AgentConfigurationError
            The model cannot be used; nothing was sent to it.
        AgentTurnError
            An hourly limit is reached, so the turn could not ask a model; nothing of it is stored.
        """
        if self._is_closed:
            raise ThreadError(f"the agent of thread `{thread_id}` was closed")
        if reached := self._use.exceeded():
            raise AgentTurnError(f"the turn did not begin: {reached}", reason=TurnErrorCode.LIMIT.value)
        # A task of its own: a turn that is kept when the caller is cancelled must not stay in progress for ever.
        beginning = asyncio.create_task(
            self._begin(thread_id, prompt, _Way(backend, self._limits.with_steps(steps)), mode=mode, model=model)
        )
        self._beginning.add(beginning)
        beginning.add_done_callback(self._beginning.discard)
        try:
            return await asyncio.shield(beginning)
        except asyncio.CancelledError:
            beginning.add_done_callback(self._end_unwanted)
            raise

    async def _begin(
        self, thread_id: str, prompt: str, way: _Way, *, mode: ApprovalMode | None, model: str | None
    ) -> RunningTurn:
        if not self._is_imported:
            await asyncio.to_thread(_import_loop)
            self._is_imported = True
        thread = await self._store.get(thread_id)
        wanted = replace(thread, approval_mode=mode or thread.approval_mode, model=model or thread.model)
        client = await self._clients.get(wanted.model)
        reviewing = await self._reviewing_client(wanted)
        turn = Turn(id=self._ids.new(), thread_id=thread_id, started_at=self._clock.now())
        changes = _given(approval_mode=mode, model=model, updated_at=turn.started_at)
        await self._keep_end(thread_id)
        await self._store.begin(turn, changes)
        running = self._make(turn, wanted, _Clients(client, reviewing), prompt, way)
        self._running[thread_id] = running
        return running

    def _end_unwanted(self, beginning: asyncio.Task[RunningTurn]) -> None:
        """End a turn whose caller was cancelled while it began."""
        if not beginning.cancelled() and beginning.exception() is None:
            ending = asyncio.create_task(beginning.result().interrupt())
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)

    async def aclose(self) -> None:
        """Interrupt the turns in progress. No further turn begins."""
        self._is_closed = True
        if self._beginning:
            await asyncio.wait(self._beginning)
        try:
            await asyncio.gather(*(running.interrupt() for running in list(self._running.values())))
        finally:
            await self._clients.aclose()

    async def _keep(self, turn: Turn, history: bytes) -> None:
        """Store a turn. An end that cannot be stored now is stored before the thread's next turn."""
        try:
            await self._store.put_turn(turn, history)
        except StorageError:
            if turn.status.is_final:
                self._unkept[turn.thread_id] = (turn, history)
            raise

    async def _keep_end(self, thread_id: str) -> None:
        """Store the end of the thread's last turn if that failed before: otherwise it would be in progress for ever."""
        unkept = self._unkept.pop(thread_id, None)
        if unkept is not None:
            await self._keep(*unkept)

    async def _change(self, thread_id: str, **changes: object) -> Thread:
        return await self._store.change(thread_id, {**changes, "updated_at": self._clock.now()})

    def _reviewer(self, thread: Thread, client: Model, meter: UsageMeter) -> CallReviewer:
        from .model_reviewer import ModelReviewer  # noqa: PLC0415  # as in `_import_loop`

        return ModelReviewer(client, self._review_model or thread.model or client.model_name, meter=meter)

    async def _reviewing_client(self, thread: Thread) -> Model | None:
        """Return the client of the model that reviews the thread's calls, if one does."""
        if thread.approval_mode is not ApprovalMode.AUTO_REVIEW:
            return None
        return await self._clients.get(self._review_model or thread.model)

    def _make(self, turn: Turn, thread: Thread, clients: _Clients, prompt: str, way: _Way) -> RunningTurn:
        from .agent_tools import TurnContext  # noqa: PLC0415  # as in `_import_loop`

        stream = TurnStream()
        record = TurnRecord(turn, stream=stream, ids=self._ids)
        meter = UsageMeter(record, limits=way.limits, hourly=self._use)
        reviewer = self._reviewer(thread, clients.reviewing, meter) if clients.reviewing is not None else None
        self._modes.set(thread.id, thread.approval_mode, reviewer=reviewer)
        context = TurnContext(
            record=record,
            kernel=LazyKernel(self._kernels, thread),
            clock=WorkClock(way.limits.seconds),
            limits=way.limits,
        )
        runner = _runner_of(way.backend)(
            record=record,
            model=clients.model,
            context=context,
            limits=way.limits,
            meter=meter,
            clock=self._clock,
            keep=self._keep,
        )
        started = asyncio.Event()
        task = asyncio.create_task(self._work(runner, thread, prompt, started), name=f"turn {turn.id}")
        return RunningTurn(id=turn.id, thread_id=thread.id, stream=stream, _runner=runner, _task=task, _started=started)

    async def _work(self, runner: TurnRunner, thread: Thread, prompt: str, started: asyncio.Event) -> None:
        from .histories import load_histories  # noqa: PLC0415  # as in `_import_loop`

        async def history() -> list[ModelMessage]:
            kept = await self._store.histories(thread.id)
            if sum(map(len, kept)) <= _SHORT:
                return load_histories(kept)
            # In a thread: a long conversation takes longer than others should wait.
            return await asyncio.to_thread(load_histories, kept)

        started.set()
        try:
            await runner.run(prompt, history)
        finally:
            running = self._running.get(thread.id)
            if running is not None and running.id == runner.record.turn.id:  # else the next turn has begun
                del self._running[thread.id]
                # A model reviews what a turn asks for, and nothing that its code asks for later.
                self._modes.set(thread.id, thread.approval_mode)


@dataclass(frozen=True, slots=True)
class _Clients:
    """The client of the model that works on a turn, and of the one that reviews its calls, if one does."""

    model: Model
    reviewing: Model | None


@dataclass(frozen=True, slots=True)
class _Way:
    """How a turn is processed, and what it may use."""

    backend: TurnBackend
    limits: TurnLimits


def _given(**changes: object) -> dict[str, object]:
    """Return the changes whose value is not ``None``."""
    return {name: value for name, value in changes.items() if value is not None}


def _runner_of(backend: TurnBackend) -> type[TurnRunner]:
    from jupyter_agentbox.agents.generate_turn import GenerateRunner  # noqa: PLC0415  # as in `_import_loop`

    from .turns import TurnRunner  # noqa: PLC0415

    return GenerateRunner if backend is TurnBackend.GENERATE else TurnRunner


def _import_loop() -> None:
    """Import the loop that asks models, in a thread at the first turn: it takes seconds, and the extra may be missing.

    Raises
    ------
    AgentConfigurationError
    """
    try:
        with without_collections():
            from . import turns  # noqa: F401, PLC0415
    except ModuleNotFoundError as error:
        raise AgentConfigurationError(
            f'agents need a library that is missing: pip install "jupyter-agentbox[agent]" ({error})'
        ) from error


def _message_texts(kept: Sequence[bytes]) -> Sequence[JsonObject]:
    _import_loop()
    from .histories import load_histories, message_texts  # noqa: PLC0415  # as in `_import_loop`

    return message_texts(load_histories(kept))
