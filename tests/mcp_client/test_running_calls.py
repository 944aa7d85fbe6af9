"""The running calls of a connection, to any of which a question may belong."""

from __future__ import annotations

from contextlib import AsyncExitStack, ExitStack

import pytest

from jupyter_agentbox.core.questions import QuestionAction, QuestionAnswer, ServerQuestion
from jupyter_agentbox.core.tools import LogMessage
from jupyter_agentbox.mcp_client.running_calls import RunningCall, RunningCalls
from jupyter_agentbox.mcp_client.sent_requests import SentRequest

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


@pytest.mark.parametrize(
    ("is_shared", "running", "told", "heard"),
    [
        (False, 1, None, [0]),
        (False, 2, None, []),
        (False, 2, 1, [1]),
        (False, 1, 1, []),  # about a call that has ended
        (True, 1, None, []),  # perhaps about a call of somebody else that has ended
        (True, 1, 0, [0]),
        (True, 2, 1, [1]),
        (True, 1, 1, []),
    ],
)
async def test_a_log_message_reaches_a_call_only_if_it_can_be_about_no_other(
    is_shared: bool, running: int, told: int | None, heard: list[int]
) -> None:
    calls, ears, sent = RunningCalls(is_shared=is_shared), [Hears(), Hears()], [SentRequest(), SentRequest()]
    with ExitStack() as stack:
        for ear, request in zip(ears[:running], sent, strict=False):
            one = RunningCall(ear, 60)
            one.sent = request
            stack.enter_context(calls.running(one))
        calls.logged(LogMessage(level="info", logger="", text="news"), None if told is None else sent[told])
    assert [index for index, ear in enumerate(ears) if ear.messages] == heard
