"""What servers of models do wrong, in each of their formats: the turn says what, and the next one goes on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jupyter_agentbox.core.threads import Notice, TurnErrorCode, TurnStatus
from jupyter_agentbox.testing import MockModelServer

from .conftest import MakeAgent

PROVIDERS = ("openai", "openai-chat", "anthropic")


def three_times(*arguments: object, **options: object) -> Callable[[MockModelServer], None]:
    """Let a server stay as it is: clients ask again after what may pass."""

    def enqueue(model: MockModelServer) -> None:
        for _ in range(3):
            model.enqueue_error(*arguments, **options)  # type: ignore[arg-type]  # as they are given here

    return enqueue


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("fault", "told"),
    [
        pytest.param(lambda model: model.enqueue_error(401), "did not accept the key", id="401"),
        pytest.param(three_times(429, retry_after=0.01), "too many requests", id="429"),
        pytest.param(three_times(500, retry_after=0.01), "failed", id="500"),
        pytest.param(three_times(503, retry_after=0.01), "failed", id="503"),
        pytest.param(lambda model: model.enqueue_cut("words that break off in the middle", after=4), "", id="cut"),
        pytest.param(lambda model: model.enqueue_raw(b"<html>no</html>"), "", id="garbage"),
        pytest.param(lambda model: model.enqueue_raw(b"\xff\xfe\x00"), "", id="bytes"),
        pytest.param(lambda model: model.enqueue_raw(b'data: {"type": "no\n\n'), "", id="half"),
        pytest.param(lambda model: model.enqueue_raw(b"[1, 2"), "", id="list"),
        pytest.param(lambda model: model.enqueue_raw(b"data: 5\n\n"), "cannot be used", id="number"),
        pytest.param(lambda model: model.enqueue_raw(b'data: "text"\n\n'), "cannot be used", id="text"),
        pytest.param(lambda model: model.enqueue_raw(b'data: {"type": "response.completed"}\n\n'), "", id="hollow"),
    ],
)
async def test_a_fault_fails_the_turn_and_the_thread_goes_on(
    fault: Callable[[MockModelServer], None], told: str, provider: str, make_agent: MakeAgent, model: MockModelServer
) -> None:
    fault(model)
    async with make_agent(provider, api_key="sk-secret") as agent:
        thread = await agent.thread_start()
        result = await thread.run("go")
        assert not model._answers
        model.enqueue_message("back")
        again = await thread.run("again")

    assert (result.status, result.error.code) == (TurnStatus.FAILED, TurnErrorCode.MODEL)
    assert told in result.error.message
    assert "sk-secret" not in str(result)
    assert again.final_response == "back"
    assert model.requests[-1].user_texts() == ["go", "again"]


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_an_empty_answer_and_the_call_of_nothing_are_said_to_the_model(
    provider: str, make_agent: MakeAgent, model: MockModelServer
) -> None:
    model.enqueue_parts()
    model.enqueue_tool_call("delete_everything", {})
    model.enqueue_tool_call("search_tools", '{"que')
    model.enqueue_message("sorry")
    async with make_agent(provider) as agent:
        result = await (await agent.thread_start()).run("go")

    assert (result.status, result.final_response) == (TurnStatus.COMPLETED, "sorry")


@pytest.mark.parametrize(
    ("provider", "text", "code"),
    [
        ("openai", "Your input exceeds the context window of this model.", "context_length_exceeded"),
        ("openai-chat", "This model's maximum context length is 8192 tokens.", None),
        ("openai-chat", "the request exceeds the available context size", "exceed_context_size_error"),
        ("anthropic", "prompt is too long: 212345 tokens > 200000 maximum", None),
    ],
)
async def test_a_conversation_that_is_too_long_goes_on_whatever_the_server_calls_it(
    provider: str, text: str, code: str | None, make_agent: MakeAgent, model: MockModelServer
) -> None:
    for _ in range(2):
        model.enqueue_error(400, text=text, code=code)
    model.enqueue_message("A summary.")
    model.enqueue_message("done")
    async with make_agent(provider) as agent:
        result = await (await agent.thread_start()).run("go")

    assert [item.code for item in result.items if isinstance(item, Notice)] == ["shortened", "summarised"]
    assert result.final_response == "done"
