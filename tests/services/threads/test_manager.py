from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from jupyter_agentbox.agent_composition import AgentSettings, build_threads
from jupyter_agentbox.agents.threads.limits import TurnLimits
from jupyter_agentbox.app.extension import AgentBoxApp
from jupyter_agentbox.core.ports import ThreadQuery
from jupyter_agentbox.core.site_policy import Feature, Lock, SitePolicy
from jupyter_agentbox.core.threads import ApprovalMode, Thread, ThreadState, Turn, TurnStatus
from jupyter_agentbox.exceptions import (
    AgentConfigurationError,
    AgentTurnError,
    LockedError,
    ThreadBusyError,
    ThreadError,
    UnknownThreadError,
)
from jupyter_agentbox.services.calls.thread_modes import ThreadModes
from jupyter_agentbox.services.threads import manager
from jupyter_agentbox.services.threads.cell_kernels import CellKernels
from jupyter_agentbox.services.threads.event_reader import EventReader
from jupyter_agentbox.services.threads.manager import MOST_ENDED, MOST_OF_NOTEBOOK, NotebookThreads
from jupyter_agentbox.storage.threads import SqlThreadStore
from jupyter_agentbox.testing import FakeClock, MockModelServer
from tests.samples import NOON

from .conftest import KEY, PATIENCE, ScriptedKernel

NOTEBOOK = "a.ipynb"


class Told(list[tuple[str, str]]):
    """What was announced, and who waits for some of it."""

    def __init__(self) -> None:
        self._came = asyncio.Event()

    def put(self, thread_id: str, state: ThreadState) -> None:
        self.append((thread_id, state.value))
        self._came.set()

    async def until(self, thread_id: str, state: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while (thread_id, state) not in self:
                self._came.clear()
                await self._came.wait()


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def kernels() -> CellKernels:
    return CellKernels()


@pytest.fixture
def settings(model: MockModelServer, database: str) -> AgentSettings:
    return AgentSettings(database_url=database, model="openai:scripted", base_url=model.base_url)


@pytest.fixture
def threads(
    settings: AgentSettings, kernels: CellKernels, told: Told, jp_asyncio_loop: asyncio.AbstractEventLoop
) -> Iterator[NotebookThreads]:
    made = build_threads(settings, kernels=kernels, modes=ThreadModes(), announce=told.put)
    yield made
    jp_asyncio_loop.run_until_complete(made.aclose())


async def texts_of(reader: EventReader) -> list[str]:
    """Read to the end."""
    texts = []
    while text := await reader.read():
        texts.append(text)
    return texts


async def test_a_notebooks_current_thread_is_the_one_that_was_started_or_resumed_last(
    threads: NotebookThreads, settings: AgentSettings
) -> None:
    assert await threads.current(NOTEBOOK) is None
    first = await threads.start(NOTEBOOK, name="first")
    second = await threads.start(NOTEBOOK)
    await threads.start("other.ipynb")
    started = await threads.current(NOTEBOOK)
    await threads.change(first.id, name="still not")
    renamed = await threads.current(NOTEBOOK)
    await threads.resume(first.id, NOTEBOOK)
    resumed = await threads.current(NOTEBOOK)
    anew = build_threads(settings, kernels=CellKernels(), modes=ThreadModes(), announce=lambda *_: None)
    after_restart = await anew.current(NOTEBOOK)
    await anew.aclose()
    fork = await threads.fork(second.id)
    forked = await threads.current(NOTEBOOK)
    await threads.change(fork.id, is_archived=True)
    archived = await threads.current(NOTEBOOK)

    found = [one.id for one in (started, renamed, resumed, after_restart, forked, archived) if one is not None]
    assert found == [second.id, second.id, first.id, first.id, fork.id, first.id]
    assert await threads.current("") is None


async def test_a_turn_works_waits_goes_on_and_ends_and_each_is_announced_once(
    threads: NotebookThreads, model: MockModelServer, kernels: CellKernels, told: Told
) -> None:
    kernel, thread = ScriptedKernel(), await threads.start(NOTEBOOK)
    model.enqueue_tool_call("run_code", {"code": "6 * 7"})
    model.enqueue_message("It is 42.", is_held=True)

    async with asyncio.timeout(PATIENCE):
        running = await threads.begin(thread.id, "What is it?", kernel=kernel, kernel_id="k1")
        working = await threads.entry(thread.id)
        request = await kernel.asked.get()
        await told.until(thread.id, "waiting")
        waiting = (await threads.list(ThreadQuery()))[0][0]
        with pytest.raises(ThreadBusyError):
            await threads.begin(thread.id, "again", kernel=kernel)
        with pytest.raises(ThreadBusyError):
            await threads.begin((await threads.start("b.ipynb")).id, "here?", kernel=kernel, kernel_id="k1")
        with pytest.raises(ThreadBusyError):
            await threads.delete(thread.id)
        await request.accept()
        await asyncio.to_thread(model.wait_for_requests, 2)
        model.release()
        ended = await running.wait()
        idle = await threads.read(thread.id)

    assert ended.status is TurnStatus.COMPLETED
    assert (working.state, working.turn_id, working.kernel_id) == (ThreadState.WORKING, running.id, "k1")
    assert (waiting.state, waiting.last_prompt) == (ThreadState.WAITING, "What is it?")
    assert (idle.state, idle.turn_id, idle.kernel_id) == (ThreadState.IDLE, None, None)
    assert (idle.usage, idle.usage.requests, idle.thread.turns) == (ended.usage, 2, (ended,))
    assert [state for id, state in told if id == thread.id] == ["idle", "working", "waiting", "working", "idle"]
    assert kernels.thread_of("k1") is None


async def test_a_turn_can_begin_as_soon_as_the_last_one_has_ended(
    threads: NotebookThreads, model: MockModelServer
) -> None:
    thread = await threads.start(NOTEBOOK)
    async with asyncio.timeout(PATIENCE):
        for number in range(3):
            model.enqueue_message(f"{number}")
            await (await threads.begin(thread.id, "go", kernel=ScriptedKernel())).wait()

    assert (await threads.entry(thread.id)).usage.requests == 3


async def test_what_a_turn_needs_of_a_cell_it_has_only_while_the_cell_runs(kernels: CellKernels) -> None:
    thread = Thread(id="th1", created_at=NOON, updated_at=NOON)
    kernel = ScriptedKernel()
    kernels.enter("th1", kernel, kernel_id="k1")
    assert (await kernels.kernel(thread), kernels.thread_of("k1")) == (kernel, "th1")
    kernels.leave("th1")
    with pytest.raises(ThreadError, match="only while its `%%agent` cell runs"):
        await kernels.kernel(thread)


async def test_a_turn_that_cannot_begin_leaves_the_kernel_free(
    database: str, kernels: CellKernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = build_threads(
        AgentSettings(database_url=database), kernels=kernels, modes=ThreadModes(), announce=lambda *_: None
    )
    thread = await threads.start(NOTEBOOK)
    try:
        for _ in range(2):
            with pytest.raises(AgentConfigurationError, match="no model is chosen"):
                await threads.begin(thread.id, "go", kernel=ScriptedKernel(), kernel_id="k1")
    finally:
        await threads.aclose()

    assert kernels.thread_of("k1") is None


async def test_a_turn_is_steered_and_interrupted_by_its_id(threads: NotebookThreads, model: MockModelServer) -> None:
    kernel, thread = ScriptedKernel(), await threads.start(NOTEBOOK)
    model.enqueue_tool_call("run_code", {"code": "1"})
    async with asyncio.timeout(PATIENCE):
        running = await threads.begin(thread.id, "go", kernel=kernel)
        await kernel.asked.get()
        await threads.steer(running.id, "hurry")
        ended = await threads.interrupt(running.id)
        again = await threads.interrupt(running.id)

    assert (ended.status, again) == (TurnStatus.INTERRUPTED, ended)
    assert [item.text for item in ended.items if item.type == "user_message"] == ["go", "hurry"]  # type: ignore[union-attr]
    with pytest.raises(ThreadError, match="has ended"):
        await threads.steer(running.id, "too late")
    with pytest.raises(UnknownThreadError):
        await threads.interrupt("nope")


async def test_events_can_be_read_on_after_the_end_and_then_only_the_end_is_left(
    threads: NotebookThreads, model: MockModelServer
) -> None:
    thread = await threads.start(NOTEBOOK)
    model.enqueue_message("It is 42.", deltas=["It is ", "42."])
    async with asyncio.timeout(PATIENCE):
        first = await threads.begin(thread.id, "go", kernel=ScriptedKernel())
        await first.wait()
        all_events = "".join(await texts_of(await threads.events(first.id))).split("\n\n")[:-1]
        rest = "".join(await texts_of(await threads.events(first.id, 2))).split("\n\n")[:-1]
        nothing = await threads.events(first.id, len(all_events))
        for _ in range(MOST_ENDED):
            model.enqueue_message("more")
            await (await threads.begin(thread.id, "go", kernel=ScriptedKernel())).wait()
        [end] = await texts_of(await threads.events(first.id, 5))

    assert [one.partition("\n")[0] for one in all_events] == [f"id: {n}" for n in range(1, len(all_events) + 1)]
    assert rest == all_events[2:]
    assert nothing.is_at_end
    assert '"turn_completed"' in all_events[-1]
    assert end.startswith("id: 6\ndata: ")
    assert '"turn_completed"' in end


async def test_the_turn_of_a_server_that_died_is_interrupted_and_its_thread_goes_on(
    threads: NotebookThreads, model: MockModelServer, settings: AgentSettings
) -> None:
    thread = await threads.start(NOTEBOOK)
    gone = SqlThreadStore(settings.database_url, clock=FakeClock())
    await gone.begin(Turn(id="left", thread_id=thread.id, started_at=NOON))
    elsewhere = await threads.entry(thread.id)
    with pytest.raises(ThreadError, match="another server"):
        await threads.interrupt("left")
    with pytest.raises(ThreadError, match="another server"):
        await threads.events("left")
    await gone.aclose()  # as at its end, its lock is free

    model.enqueue_message("again")
    async with asyncio.timeout(PATIENCE):
        await (await threads.begin(thread.id, "go on", kernel=ScriptedKernel())).wait()
    kept = await threads.read(thread.id)

    assert (elsewhere.state, elsewhere.turn_id) == (ThreadState.WORKING, "left")
    assert [turn.status for turn in kept.thread.turns] == [TurnStatus.INTERRUPTED, TurnStatus.COMPLETED]


async def test_a_notebook_has_so_many_threads_and_no_more(threads: NotebookThreads) -> None:
    first = await threads.start(NOTEBOOK)
    await threads.change(first.id, is_archived=True)
    ways = [*(threads.start(NOTEBOOK) for _ in range(MOST_OF_NOTEBOOK)), *(threads.fork(first.id) for _ in range(5))]
    made = await asyncio.gather(*ways, return_exceptions=True)

    assert [type(one) for one in made if isinstance(one, Exception)] == [ThreadError] * 6
    assert (await threads.start("another.ipynb")).notebook_path == "another.ipynb"
    await threads.delete(first.id)
    assert (await threads.start(NOTEBOOK)).notebook_path == NOTEBOOK


async def test_the_limits_per_hour_are_those_of_all_threads_together(
    settings: AgentSettings, model: MockModelServer
) -> None:
    limited = AgentSettings(
        database_url=settings.database_url,
        model=settings.model,
        base_url=settings.base_url,
        limits=TurnLimits(requests_per_hour=2),
    )
    threads = build_threads(limited, kernels=CellKernels(), modes=ThreadModes(), announce=lambda *_: None)
    ends = []
    async with asyncio.timeout(PATIENCE):
        for _ in range(2):
            model.enqueue_message("done")
            thread = await threads.start(NOTEBOOK)
            ends.append(await (await threads.begin(thread.id, "go", kernel=ScriptedKernel())).wait())
        thread = await threads.start(NOTEBOOK)
        with pytest.raises(AgentTurnError, match="2 model requests per hour"):
            await threads.begin(thread.id, "go", kernel=ScriptedKernel())
    read = await threads.read(thread.id)
    await threads.aclose()

    assert [end.status.value for end in ends] == ["completed", "completed"]
    assert (read.state, read.kernel_id, read.thread.turns) == (ThreadState.IDLE, None, ())


async def test_what_the_model_was_sent_is_told_by_role(threads: NotebookThreads, model: MockModelServer) -> None:
    kernel, thread = ScriptedKernel(), await threads.start(NOTEBOOK)
    model.enqueue_tool_call("run_code", {"code": "6 * 7"})
    model.enqueue_message("It is 42.")
    async with asyncio.timeout(PATIENCE):
        running = await threads.begin(thread.id, "What is it?", kernel=kernel)
        await (await kernel.asked.get()).accept()
        await running.wait()
        system, *rest = await threads.messages(thread.id)

    assert (system["role"], KEY in str(system)) == ("system", False)
    assert rest == [
        {"role": "user", "text": "What is it?"},
        {"role": "tool_call", "tool": "run_code", "text": '{"code":"6 * 7"}'},
        {"role": "tool", "tool": "run_code", "text": "42"},
        {"role": "assistant", "text": "It is 42."},
    ]
    with pytest.raises(UnknownThreadError):
        await threads.messages("nope")


async def test_of_an_endless_output_a_turn_keeps_the_beginning_and_the_end(
    threads: NotebookThreads, model: MockModelServer
) -> None:
    kernel, thread = ScriptedKernel("x" * 10_000_000), await threads.start(NOTEBOOK)
    model.enqueue_tool_call("run_code", {"code": "print('x' * 10**7)"})
    model.enqueue_message("done")
    async with asyncio.timeout(PATIENCE):
        running = await threads.begin(thread.id, "go", kernel=kernel)
        await (await kernel.asked.get()).accept()
        ended = await running.wait()
        told = str((await threads.messages(thread.id))[3]["text"])

    [text] = [item.text for item in ended.items if item.type == "code_run"]  # type: ignore[union-attr]
    assert 20_000 < len(text) < 1_001_000
    assert len(told) < 20_000
    assert threads._ended[running.id].weight < 1_100_000


async def test_events_of_large_turns_are_kept_of_fewer_of_them(
    threads: NotebookThreads, model: MockModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager, "_MOST_WEIGHT", 300_000)
    thread, turns = await threads.start(NOTEBOOK), []
    async with asyncio.timeout(PATIENCE):
        for _ in range(3):
            model.enqueue_message("x" * 60_000)  # once in pieces, once whole
            turns.append(await threads.begin(thread.id, "go", kernel=ScriptedKernel()))
            await turns[-1].wait()

    assert list(threads._ended) == [turn.id for turn in turns[1:]]


async def test_closing_interrupts_what_is_in_progress_and_whoever_reads_hears_of_it(
    threads: NotebookThreads, model: MockModelServer, told: Told
) -> None:
    thread = await threads.start(NOTEBOOK, mode=ApprovalMode.ASK)
    model.enqueue_message("late", is_held=True)
    async with asyncio.timeout(PATIENCE):
        running = await threads.begin(thread.id, "go", kernel=ScriptedKernel())
        reading = asyncio.create_task(texts_of(await threads.events(running.id)))
        await asyncio.to_thread(model.wait_for_requests, 1)
        await threads.aclose()
        texts = await reading

    assert '"status": "interrupted"' in texts[-1]
    assert told[-1] == (thread.id, "idle")


def test_a_servers_limits_are_those_of_programs_unless_they_are_set() -> None:
    app, limits = AgentBoxApp(), TurnLimits()

    assert (app.agent_steps, app.agent_tokens, app.agent_seconds) == (limits.steps, limits.tokens, limits.seconds)
    assert (app.agent_hourly_requests, app.agent_hourly_tokens) == (limits.requests_per_hour, limits.tokens_per_hour)


@pytest.mark.parametrize(
    ("off", "model_of_thread", "message"),
    [
        (Feature.AGENTS, None, "agents are off"),
        (Feature.MODELS, "openai:other", "the model of agents cannot be chosen"),
        (Feature.MODELS, None, ""),
        (Feature.EDIT, "openai:scripted", ""),
    ],
)
async def test_what_the_site_turned_off_begins_no_turn(
    settings: AgentSettings, model: MockModelServer, off: Feature, model_of_thread: str | None, message: str
) -> None:
    model.enqueue_message("done")
    site = SitePolicy(features={off: Lock.FORCE_OFF})
    threads = build_threads(
        settings, kernels=CellKernels(), modes=ThreadModes(), announce=lambda *_: None, site=lambda: site
    )
    try:
        thread = await threads.start(NOTEBOOK, model=model_of_thread)
        if message:
            with pytest.raises(LockedError, match=f"{message}: set by your administrator"):
                await threads.begin(thread.id, "hello", kernel=ScriptedKernel())
            assert model.requests == []
        else:
            turn = await (await threads.begin(thread.id, "hello", kernel=ScriptedKernel())).wait()
            assert turn.status is TurnStatus.COMPLETED
    finally:
        await threads.aclose()
