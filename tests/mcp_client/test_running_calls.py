"""The running calls of a connection, to any of which a question may belong."""

from __future__ import annotations

from contextlib import AsyncExitStack

from jupyter_agentbox.core.questions import QuestionAction, QuestionAnswer, ServerQuestion
from jupyter_agentbox.mcp_client.running_calls import RunningCall, RunningCalls

from .conftest import Hears

COUNT = 2_000


async def test_a_question_that_may_belong_to_any_of_very_many_calls_is_asked_and_pauses_all_of_them() -> None:
    calls, running = RunningCalls(), [RunningCall(Hears(), 60) for _ in range(COUNT)]
    asked: list[ServerQuestion] = []

    async def answer(question: ServerQuestion) -> QuestionAnswer:
        asked.append(question)
        assert [one.limit.when() for one in running] == [None] * COUNT
        return QuestionAnswer(action=QuestionAction.ACCEPT)

    running[0].listener = Hears(on_question=answer)
    async with AsyncExitStack() as stack:
        for one in running:
            stack.enter_context(calls.running(one))
            await stack.enter_async_context(one.limit)
        found = await calls.ask(ServerQuestion.of_url("Sign", "https://shop.example/"), None)
        assert None not in [one.limit.when() for one in running]
    assert found == QuestionAnswer(action=QuestionAction.ACCEPT)
    assert [one.calls for one in asked] == [COUNT]
