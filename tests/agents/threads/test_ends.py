"""Whatever is said, and whoever breaks off, a turn ends, its readers hear of it, and the thread can be used on."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator

import pytest

from jupyter_agentbox.agents.threads.events import TurnCompleted, TurnEvent
from jupyter_agentbox.core.threads import ApprovalMode, Turn, TurnError, TurnErrorCode, TurnStatus, UserMessage
from jupyter_agentbox.exceptions import AgentConfigurationError, StorageError, ThreadError
from jupyter_agentbox.testing import MockModelServer

from .conftest import MakeAgent
from .test_code import ALLOWED, told

HALF = "\ud83d"

#: Seconds; what asks models is imported at the first turn, which takes many where the machine is busy.
PATIENCE = 60


async def test_half_a_surrogate_pair_costs_one_character_wherever_it_comes_from(
    make_agent: MakeAgent, model: MockModelServer
) -> None:
    async with make_agent(policy=ALLOWED) as agent, asyncio.timeout(PATIENCE):
        thread = await agent.thread_start()
        model.enqueue_parts(
            model.message(f"said {HALF}", deltas=[f"said {HALF}"]),
            model.tool_call("run_code", {"code": "print('printed \\ud83d')"}),
        )
        model.enqueue_message("done")
        first = await thread.run(f"asked {HALF}")
        model.enqueue_message("again")
        second = await thread.run("and now?")

    assert [first.status, second.status] == [TurnStatus.COMPLETED] * 2
    assert told(model.requests[1]) == "printed <U+D83D>"  # as a terminal shows it
    assert model.requests[2].user_texts() == ["asked \ufffd", "and now?"]


async def test_two_interruptions_at_once_end_the_turn_once_and_its_readers_hear_of_it(
    make_agent: MakeAgent, model: MockModelServer
) -> None:
    model.enqueue_message("late", is_held=True)
    async with make_agent() as agent, asyncio.timeout(PATIENCE):
        thread = await agent.thread_start()
        turn = await thread.turn("go")
        events = asyncio.create_task(_last(turn.stream()))
        await asyncio.to_thread(model.wait_for_requests, 1)
        ends = await asyncio.gather(*(turn.interrupt() for _ in range(3)))
        last = await events
        kept = await thread.read(include_turns=True)

    assert {end.status for end in ends} == {TurnStatus.INTERRUPTED}
    assert isinstance(last, TurnCompleted)
    assert [one.status for one in kept.turns] == [TurnStatus.INTERRUPTED]


@pytest.mark.parametrize("steps", [0, 1, 5, 20, 100, 300, 1000, 3000])
async def test_a_caller_that_is_cancelled_while_a_turn_begins_leaves_no_turn_behind(
    make_agent: MakeAgent, model: MockModelServer, steps: int
) -> None:
    async with make_agent() as agent, asyncio.timeout(PATIENCE):
        thread = await agent.thread_start()
        model.enqueue_message("unwanted", is_held=True)
        beginning = asyncio.create_task(thread.run("unwanted"))
        for _ in range(steps):
            await asyncio.sleep(0)
        beginning.cancel()
        await asyncio.gather(beginning, return_exceptions=True)
        await agent.close()
        kept = await _reread(make_agent, thread.id)

    assert TurnStatus.IN_PROGRESS not in kept


async def test_waiting_for_a_turn_can_be_given_up(make_agent: MakeAgent, model: MockModelServer) -> None:
    model.enqueue_message("late", is_held=True)
    async with make_agent() as agent, asyncio.timeout(PATIENCE):
        running = await agent._threads.begin((await agent.thread_start()).id, "go")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await running.wait()


async def test_no_turn_begins_after_close(make_agent: MakeAgent) -> None:
    agent = make_agent()
    thread = await agent.thread_start()
    await agent.close()

    with pytest.raises(ThreadError):
        await thread.run("go")


async def test_a_name_that_is_given_while_a_turn_begins_does_not_change_its_mode_back(
    make_agent: MakeAgent, model: MockModelServer
) -> None:
    model.enqueue_message("done")
    async with make_agent() as agent, asyncio.timeout(PATIENCE):
        thread = await agent.thread_start()
        await asyncio.gather(
            thread.run("go", approval_mode=ApprovalMode.DENY_ALL), *(thread.set_name(f"n{n}") for n in range(30))
        )
        kept = await thread.read()

    assert (kept.approval_mode, kept.name) == (ApprovalMode.DENY_ALL, "n29")


async def test_a_key_that_was_given_for_one_provider_is_sent_to_no_other(
    make_agent: MakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    async with make_agent(base_url=None, api_key="for-openai") as agent:
        thread = await agent.thread_start()
        with pytest.raises(AgentConfigurationError, match="no key"):
            await thread.turn("go", model="anthropic:other")


async def _last(events: AsyncIterator[TurnEvent]) -> TurnEvent:
    return [event async for event in events][-1]


async def _reread(make_agent: MakeAgent, thread_id: str) -> list[TurnStatus]:
    async with make_agent() as agent:
        thread = await (await agent.thread_resume(thread_id)).read(include_turns=True)
    return [turn.status for turn in thread.turns]


async def test_a_turn_whose_end_cannot_be_stored_does_not_keep_its_thread_busy(
    make_agent: MakeAgent, model: MockModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(turn: Turn, history: bytes) -> None:
        if turn.status.is_final:
            raise StorageError("the disk is full")
        await put_turn(turn, history)

    model.enqueue_message("first")
    model.enqueue_message("second")
    async with make_agent() as agent:
        thread = await agent.thread_start()
        put_turn = agent._store.put_turn
        with monkeypatch.context() as disk:
            disk.setattr(agent._store, "put_turn", full)
            await thread.run("go")
        await thread.run("again")
        turns = (await thread.read(include_turns=True)).turns

    assert [(turn.status, turn.final_response) for turn in turns] == [
        (TurnStatus.COMPLETED, "first"),
        (TurnStatus.COMPLETED, "second"),
    ]
    assert model.requests[-1].user_texts() == ["go", "again"]


async def test_what_a_model_answers_does_not_count_if_its_step_could_not_be_kept(
    make_agent: MakeAgent, model: MockModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(turn: Turn, history: bytes) -> None:
        if not turn.status.is_final:
            raise StorageError("the disk is full")
        await put_turn(turn, history)

    model.enqueue_parts(model.message("I count."), model.tool_call("run_code", {"code": "6 * 7"}))
    async with make_agent(policy=ALLOWED) as agent:
        thread = await agent.thread_start()
        put_turn = agent._store.put_turn
        monkeypatch.setattr(agent._store, "put_turn", full)
        turn = await thread.run("go")

    assert turn.error == TurnError(code=TurnErrorCode.INTERNAL, message="the disk is full")
    assert [type(item) for item in turn.items] == [UserMessage]


async def test_a_damaged_history_is_no_fault_of_the_kernel(
    make_agent: MakeAgent, model: MockModelServer, database: str
) -> None:
    model.enqueue_message("first")
    async with make_agent() as agent:
        thread = await agent.thread_start()
        await thread.run("go")
        with sqlite3.connect(database.removeprefix("sqlite:///")) as connection:
            connection.execute("UPDATE agentbox_turns SET history = ?", (b"not JSON",))
        result = await thread.run("again")

    assert result.error is not None
    assert result.error.code is TurnErrorCode.INTERNAL
