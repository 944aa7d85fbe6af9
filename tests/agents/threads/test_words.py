"""Turns that are words alone: streams, threads, modes, and what may go wrong with a model. No kernel starts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic_ai.messages import ModelResponse, TextPart

from jupyter_agentbox import (
    AgentConfigurationError,
    AgentTurnError,
    ApprovalMode,
    AsyncAgent,
    ThreadBusyError,
    UnknownThreadError,
)
from jupyter_agentbox.agents.threads.events import (
    AgentMessageDelta,
    TurnCompleted,
    TurnEvent,
    TurnStarted,
    UsageUpdated,
)
from jupyter_agentbox.agents.threads.histories import dump_history
from jupyter_agentbox.agents.threads.limits import TurnLimits
from jupyter_agentbox.core.threads import AgentMessage, Notice, Phase, TurnErrorCode, TurnStatus, Usage, UserMessage
from jupyter_agentbox.testing import TIMEOUT, MockModelServer

from .conftest import MakeAgent


async def answer(agent: AsyncAgent, prompt: str = "hello?") -> Any:
    thread = await agent.thread_start()
    return await thread.run(prompt)


def deltas(events: Sequence[TurnEvent]) -> str:
    return "".join(event.delta for event in events if isinstance(event, AgentMessageDelta))


@pytest.mark.parametrize("provider", ["openai", "openai-chat", "anthropic"])
async def test_the_final_answer_is_the_response(provider: str, make_agent: MakeAgent, model: MockModelServer) -> None:
    model.enqueue_message("Good day.")
    async with make_agent(provider) as agent:
        result = await answer(agent)

    assert (result.status, result.final_response, result.error) == (TurnStatus.COMPLETED, "Good day.", None)
    assert result.usage == Usage(requests=1, input_tokens=100, output_tokens=20)
    assert [type(item) for item in result.items] == [UserMessage, AgentMessage]
    assert model.requests[0].user_texts() == ["hello?"]


async def test_a_stream_has_the_words_as_they_come_in_order(make_agent: MakeAgent, model: MockModelServer) -> None:
    model.enqueue_parts(
        model.message("I look around.", "commentary"), model.message("It is so.", "final_answer", ["It ", "is ", "so."])
    )
    async with make_agent() as agent:
        thread = await agent.thread_start()
        turn = await thread.turn("hello?")
        events = [event async for event in turn.stream()]
        again = [event async for event in turn.stream(after=3)]

    assert isinstance(events[0], TurnStarted)
    assert isinstance(events[-1], TurnCompleted)
    assert deltas(events) == "I look around.It is so."
    assert [event.type for event in events if isinstance(event, UsageUpdated)] == ["usage_updated"]
    assert events[-1].turn.final_response == "It is so."
    assert [item.phase for item in events[-1].turn.items if isinstance(item, AgentMessage)] == [
        Phase.COMMENTARY,
        Phase.FINAL_ANSWER,
    ]
    assert again == events[3:]


async def test_turns_at_the_same_time_have_streams_of_their_own(make_agent: MakeAgent, model: MockModelServer) -> None:
    model.enqueue_message("one", is_held=True)
    model.enqueue_message("two", is_held=True)
    async with make_agent() as agent:
        turns = []
        for number in range(2):
            turns.append(await (await agent.thread_start()).turn(f"{number}"))
            await asyncio.to_thread(model.wait_for_requests, number + 1)
        model.release()
        async with asyncio.timeout(TIMEOUT):
            streams = [[event async for event in turn.stream()] for turn in turns]

    assert [deltas(events) for events in streams] == ["one", "two"]
    assert [
        {getattr(event, "turn_id", turn.id) for event in events} for turn, events in zip(turns, streams, strict=True)
    ] == [{turn.id} for turn in turns]


async def test_a_thread_remembers_also_in_another_process(make_agent: MakeAgent, model: MockModelServer) -> None:
    model.enqueue_message("Yes, Ada.")
    async with make_agent() as agent:
        thread = await agent.thread_start(name="greetings")
        await thread.run("I am Ada.")
    model.enqueue_message("Ada.")
    async with make_agent() as agent:
        resumed = await agent.thread_resume(thread.id)
        await resumed.run("Who am I?")
        read = await resumed.read(include_turns=True)

    assert model.requests[1].user_texts() == ["I am Ada.", "Who am I?"]
    assert (read.name, [turn.final_response for turn in read.turns]) == ("greetings", ["Yes, Ada.", "Ada."])


async def test_a_fork_goes_on_from_any_turn_and_leaves_its_source(
    make_agent: MakeAgent, model: MockModelServer
) -> None:
    for word in ("one", "two", "three"):
        model.enqueue_message(word)
    async with make_agent() as agent:
        thread = await agent.thread_start()
        first = await thread.run("1?")
        await thread.run("2?")
        fork = await agent.thread_fork(thread.id, turn_id=first.id)
        await fork.run("3?")

        assert model.requests[2].user_texts() == ["1?", "3?"]
        assert [turn.final_response for turn in (await thread.read(include_turns=True)).turns] == ["one", "two"]
        assert (await fork.read()).forked_from == thread.id
        with pytest.raises(UnknownThreadError):
            await agent.thread_fork(thread.id, turn_id="nothing")


async def test_a_thread_can_be_named_archived_and_deleted(make_agent: MakeAgent) -> None:
    async with make_agent() as agent:
        thread, other = await agent.thread_start(), await agent.thread_start()
        await thread.set_name("October")
        await agent.thread_archive(other.id)

        assert [(one.id, one.name) for one in (await agent.thread_list()).data] == [(thread.id, "October")]
        assert [one.id for one in (await agent.thread_list(archived=True)).data] == [other.id]
        await agent.thread_unarchive(other.id)
        await agent.thread_delete(thread.id)
        assert [one.id for one in (await agent.thread_list()).data] == [other.id]
        with pytest.raises(UnknownThreadError):
            await agent.thread_resume(thread.id)


async def test_a_mode_holds_until_a_turn_overrides_it_and_from_then_on(
    make_agent: MakeAgent, model: MockModelServer
) -> None:
    async with make_agent(approval_mode=ApprovalMode.DENY_ALL) as agent:
        thread = await agent.thread_start()
        modes = []
        for override in (None, ApprovalMode.ASK, None):
            model.enqueue_message("yes")
            await thread.run("go", approval_mode=override)
            modes.append((await thread.read()).approval_mode)

    assert modes == [ApprovalMode.DENY_ALL, ApprovalMode.ASK, ApprovalMode.ASK]


async def test_a_fork_and_a_resumed_thread_can_have_another_mode(make_agent: MakeAgent, model: MockModelServer) -> None:
    async with make_agent() as agent:
        thread = await agent.thread_start(approval_mode="deny_all")
        model.enqueue_message("yes")
        await thread.run("go")
        kept = await agent.thread_fork(thread.id)
        other = await agent.thread_fork(thread.id, approval_mode=ApprovalMode.AUTO_REVIEW, model="openai:other")
        modes = [(await one.read()).approval_mode for one in (thread, kept, other)]
        resumed = await agent.thread_resume(thread.id, approval_mode="ask")
        again = await agent.thread_resume(thread.id)

        assert modes == [ApprovalMode.DENY_ALL, ApprovalMode.DENY_ALL, ApprovalMode.AUTO_REVIEW]
        assert [(await one.read()).approval_mode for one in (resumed, again)] == [ApprovalMode.ASK, ApprovalMode.ASK]
        assert [(await one.read()).model for one in (again, other)] == ["openai:scripted", "openai:other"]


async def test_a_mode_that_is_none_is_refused_before_anything_is_asked(
    make_agent: MakeAgent, model: MockModelServer
) -> None:
    with pytest.raises(ValueError, match="always"):
        make_agent(approval_mode="always")
    async with make_agent() as agent:
        thread = await agent.thread_start()
        with pytest.raises(ValueError, match="always"):
            await thread.run("go", approval_mode="always")

    assert model.requests == []


async def test_interrupting_ends_a_turn_at_once_and_the_thread_goes_on(
    make_agent: MakeAgent, model: MockModelServer
) -> None:
    model.enqueue_message("never heard", is_held=True)
    async with make_agent() as agent, asyncio.timeout(2 * TIMEOUT):
        thread = await agent.thread_start()
        turn = await thread.turn("go")
        with pytest.raises(ThreadBusyError):
            await thread.turn("me too")
        await asyncio.to_thread(model.wait_for_requests, 1)
        result = await turn.interrupt()
        model.enqueue_message("back")

        assert result.status is TurnStatus.INTERRUPTED
        assert (await thread.run("again")).final_response == "back"
        assert (await turn.interrupt()).status is TurnStatus.INTERRUPTED
        with pytest.raises(ThreadBusyError, match="has ended"):
            await turn.steer("too late")


async def test_a_turn_that_is_interrupted_before_it_began_has_an_end(
    make_agent: MakeAgent, model: MockModelServer
) -> None:
    async with make_agent() as agent:
        thread = await agent.thread_start()
        turn = await thread.turn("go")

        assert (await turn.interrupt()).status is TurnStatus.INTERRUPTED
        assert isinstance([event async for event in turn.stream()][-1], TurnCompleted)


async def test_a_word_while_it_works_is_heard_before_it_goes_on(make_agent: MakeAgent, model: MockModelServer) -> None:
    model.enqueue_message("Norway then", is_held=True)
    model.enqueue_message("Sweden")
    async with make_agent() as agent, asyncio.timeout(2 * TIMEOUT):
        turn = await (await agent.thread_start()).turn("Norway?")
        await asyncio.to_thread(model.wait_for_requests, 1)
        await turn.steer("no, Sweden")
        model.release()
        result = await turn.run()

    assert result.final_response == "Sweden"
    assert model.requests[1].user_texts() == ["Norway?", "no, Sweden"]
    assert [item.text for item in result.items if isinstance(item, UserMessage)] == ["Norway?", "no, Sweden"]


@pytest.mark.parametrize(
    ("status", "told"), [(401, "did not accept the key"), (404, "failed"), (400, "failed"), (418, "failed")]
)
async def test_an_error_of_the_models_server_fails_the_turn_and_says_what_it_is(
    status: int, told: str, make_agent: MakeAgent, model: MockModelServer
) -> None:
    model.enqueue_error(status, text="not now")
    async with make_agent(api_key="sk-secret") as agent:
        thread = await agent.thread_start()
        result = await thread.run("go")
        model.enqueue_message("back")

        assert (result.status, result.error.code) == (TurnStatus.FAILED, TurnErrorCode.MODEL)
        assert told in result.error.message
        assert "sk-secret" not in str(result)
        assert (await thread.run("again")).final_response == "back"


async def test_a_server_that_is_busy_for_a_moment_is_asked_again(make_agent: MakeAgent, model: MockModelServer) -> None:
    model.enqueue_error(429, retry_after=0.05)
    model.enqueue_error(500)
    model.enqueue_message("there you are")
    async with make_agent() as agent:
        assert (await answer(agent)).final_response == "there you are"


async def test_a_server_that_stays_busy_fails_the_turn_and_says_when_to_try_again(
    make_agent: MakeAgent, model: MockModelServer
) -> None:
    for _ in range(3):
        model.enqueue_error(429, retry_after=1)
    async with make_agent() as agent:
        result = await answer(agent)

    assert result.error.code is TurnErrorCode.MODEL
    assert "try again in 1 seconds" in result.error.message


async def test_a_stream_that_breaks_off_or_is_garbage_fails_the_turn(
    make_agent: MakeAgent, model: MockModelServer
) -> None:
    model.enqueue_cut("a long answer that never comes", after=5)
    model.enqueue_raw(b"<html>no</html>")
    async with make_agent() as agent:
        for _ in range(2):
            result = await answer(agent)
            assert (result.status, result.error.code) == (TurnStatus.FAILED, TurnErrorCode.MODEL)


async def test_a_model_that_says_nothing_is_asked_again_and_then_given_up(
    make_agent: MakeAgent, model: MockModelServer
) -> None:
    for _ in range(10):
        model.enqueue_parts()
    async with make_agent() as agent:
        result = await answer(agent)

    assert (result.status, result.error.code) == (TurnStatus.FAILED, TurnErrorCode.MODEL)
    assert 1 < len(model.requests) < 6


async def test_a_model_that_calls_what_is_not_there_is_told_so(make_agent: MakeAgent, model: MockModelServer) -> None:
    model.enqueue_tool_call("delete_everything", {})
    model.enqueue_tool_call("run_code", '{"cod')
    model.enqueue_message("sorry")
    async with make_agent() as agent:
        assert (await answer(agent)).final_response == "sorry"


async def test_steps_are_bounded_and_go_on_goes_on(make_agent: MakeAgent, model: MockModelServer) -> None:
    for _ in range(3):
        model.enqueue_tool_call("nothing", {})
    async with make_agent(limits=TurnLimits(steps=2)) as agent:
        thread = await agent.thread_start()
        result = await thread.run("loop")

        assert (result.status, result.error.code) == (TurnStatus.FAILED, TurnErrorCode.LIMIT)
        assert [item.code for item in result.items if isinstance(item, Notice)] == ["limit"]
        assert len(model.requests) == 2
        model.enqueue_message("done")
        model._answers.popleft()
        assert (await thread.run("go on")).final_response == "done"


@pytest.mark.parametrize(
    "limits", [TurnLimits(tokens=1), TurnLimits(requests_per_hour=1), TurnLimits(tokens_per_hour=1)]
)
async def test_tokens_and_hours_are_bounded(limits: TurnLimits, make_agent: MakeAgent, model: MockModelServer) -> None:
    model.enqueue_tool_call("nothing", {})
    async with make_agent(limits=limits) as agent:
        result = await answer(agent)

    assert result.error.code is TurnErrorCode.LIMIT
    assert len(model.requests) == 1


async def test_requests_that_fail_or_are_broken_off_count_as_well(
    make_agent: MakeAgent, model: MockModelServer
) -> None:
    model.enqueue_error(400)
    model.enqueue_message("never heard", is_held=True)
    async with make_agent(limits=TurnLimits(requests_per_hour=2)) as agent, asyncio.timeout(2 * TIMEOUT):
        thread = await agent.thread_start()
        failed = await thread.run("go")
        turn = await thread.turn("go")
        await asyncio.to_thread(model.wait_for_requests, 2)
        await turn.interrupt()
        with pytest.raises(AgentTurnError) as refused:
            await thread.run("go on")
        kept = await thread.read(include_turns=True)

    assert failed.error.code is TurnErrorCode.MODEL
    assert refused.value.reason == "limit"
    assert len(model.requests) == len(kept.turns) == 2


@pytest.mark.parametrize("kind", ["words", "a call"])
async def test_an_answer_without_end_is_bounded(kind: str, make_agent: MakeAgent, model: MockModelServer) -> None:
    if kind == "words":
        model.enqueue_message("word " * 1000)
    else:
        model.enqueue_tool_call("run_code", {"code": "#" * 5000})
    async with make_agent(limits=TurnLimits(answer_characters=1000)) as agent:
        thread = await agent.thread_start()
        result = await thread.run("go")
        model.enqueue_message("back")

        assert result.error.code is TurnErrorCode.LIMIT
        assert "1,000 characters" in result.error.message
        assert sum(len(item.text) for item in result.items if isinstance(item, AgentMessage)) <= 1000
        assert (await thread.run("go on")).final_response == "back"


async def test_what_was_said_before_an_answer_broke_off_stays(make_agent: MakeAgent, model: MockModelServer) -> None:
    model.enqueue_cut("one two three four", after=7)
    async with make_agent() as agent:
        result = await answer(agent)

    assert result.status is TurnStatus.FAILED
    assert [item.text for item in result.items if isinstance(item, AgentMessage)] == ["one two three "]


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_a_key_that_a_server_repeats_is_in_no_error(
    provider: str, make_agent: MakeAgent, model: MockModelServer
) -> None:
    model.enqueue_error(400, text="the key sk-secret is unknown")
    async with make_agent(provider, api_key="sk-secret") as agent:
        result = await answer(agent)

    assert "the key *** is unknown" in result.error.message
    assert "sk-secret" not in str(result)


def test_an_address_that_has_a_key_is_not_kept_with_what_a_model_said() -> None:
    said = ModelResponse(
        parts=[TextPart("hello")], provider_url="https://user:sk-secret@gateway.example/v1?key=sk-secret"
    )

    kept = dump_history([said], replaces=False)

    assert b"hello" in kept
    assert b"sk-secret" not in kept


async def test_the_time_of_a_turn_is_bounded(make_agent: MakeAgent, model: MockModelServer) -> None:
    model.enqueue_message("never", is_held=True)
    async with make_agent(limits=TurnLimits(seconds=0.2)) as agent:
        result = await answer(agent)

    assert (result.status, result.error.code) == (TurnStatus.FAILED, TurnErrorCode.LIMIT)


async def test_a_conversation_that_is_too_long_is_shortened_and_then_summarized(
    make_agent: MakeAgent, model: MockModelServer
) -> None:
    model.enqueue_message("one")
    async with make_agent() as agent:
        thread = await agent.thread_start()
        await thread.run("first question")
        for _ in range(2):
            model.enqueue_error(400, code="context_length_exceeded")
        model.enqueue_message("They said hello.")
        model.enqueue_message("two")
        result = await thread.run("second question")
        model.enqueue_message("three")
        await thread.run("third question")

    assert result.final_response == "two"
    assert [item.code for item in result.items if isinstance(item, Notice)] == ["shortened", "summarised"]
    said = model.requests[-1].user_texts()
    assert "They said hello." in said[0]
    assert "first question" not in "".join(said)
    assert said[-1] == "third question"


@pytest.mark.parametrize("name", ["gpt-5.2", "openai:", "unheard-of:gpt", ""])
async def test_a_name_that_is_none_is_refused_before_anything_is_asked(
    name: str, make_agent: MakeAgent, model: MockModelServer
) -> None:
    async with make_agent(model=name) as agent:
        thread = await agent.thread_start()
        with pytest.raises(AgentConfigurationError, match="is not the name of a model"):
            await thread.turn("go")
        assert (await thread.read(include_turns=True)).turns == ()


async def test_without_a_key_the_error_names_the_variable(
    make_agent: MakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    async with make_agent(base_url=None) as agent:
        with pytest.raises(AgentConfigurationError, match="OPENAI_API_KEY"):
            await (await agent.thread_start()).turn("go")


async def test_code_that_an_agent_runs_cannot_start_agents(
    make_agent: MakeAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_AGENTBOX_AGENT_KERNEL", "1")
    with pytest.raises(AgentConfigurationError, match="cannot start agents"):
        make_agent()
