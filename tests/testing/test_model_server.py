"""The scripted model, asked by the libraries of its providers."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from jupyter_agentbox.testing import Message, MockModelServer, ModelRequest, model_server


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_it_speaks_responses(is_streamed: bool) -> None:
    with MockModelServer() as model:
        model.enqueue_parts(model.message("I look.", "commentary"), model.tool_call("look", {"at": 1}))
        async with openai.AsyncOpenAI(base_url=model.base_url, api_key="k") as client:
            if is_streamed:
                async with client.responses.stream(model="m", input="hello") as stream:
                    kinds = [event.type async for event in stream]
                    response = await stream.get_final_response()
                assert kinds.count("response.output_text.delta") == 2
            else:
                response = await client.responses.create(model="m", input="hello")

    said, called = (item.to_dict() for item in response.output)
    assert (said["phase"], said["content"][0]["text"]) == ("commentary", "I look.")  # type: ignore[index]
    assert (called["name"], called["arguments"]) == ("look", '{"at": 1}')
    assert model.requests[0].user_texts() == ["hello"]


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_it_speaks_chat_completions(is_streamed: bool) -> None:
    messages: Any = [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hello"}]
    with MockModelServer() as model:
        model.enqueue_parts(model.message("I look."), model.tool_call("look", {}))
        async with openai.AsyncOpenAI(base_url=model.base_url, api_key="k") as client:
            if is_streamed:
                async with client.chat.completions.stream(model="m", messages=messages) as stream:
                    completion: Any = await stream.get_final_completion()
            else:
                completion = await client.chat.completions.create(model="m", messages=messages)

    message = completion.choices[0].message
    assert (message.content, message.tool_calls[0].function.name) == ("I look.", "look")
    assert model.requests[0].user_texts() == ["hello"]


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_it_speaks_anthropics_messages(is_streamed: bool) -> None:
    messages: Any = [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]
    with MockModelServer() as model:
        model.enqueue_parts(model.message("I look."), model.tool_call("look", {"at": 1}))
        address = model.base_url.removesuffix("/v1")
        async with anthropic.AsyncAnthropic(base_url=address, api_key="k") as client:
            if is_streamed:
                async with client.messages.stream(model="m", max_tokens=9, messages=messages) as stream:
                    message: Any = await stream.get_final_message()
            else:
                message = await client.messages.create(model="m", max_tokens=9, messages=messages)

    assert (message.content[0].text, message.content[1].input, message.stop_reason) == (
        "I look.",
        {"at": 1},
        "tool_use",
    )
    assert model.requests[0].user_texts() == ["hello"]


async def test_without_an_answer_it_says_so() -> None:
    with MockModelServer() as model:
        async with openai.AsyncOpenAI(base_url=model.base_url, api_key="k") as client:
            with pytest.raises(openai.BadRequestError, match="no answer was enqueued"):
                await client.responses.create(model="m", input="hello")


async def test_errors_have_their_status_and_when_to_try_again() -> None:
    with MockModelServer() as model:
        model.enqueue_error(429, retry_after=2)
        async with openai.AsyncOpenAI(base_url=model.base_url, api_key="k", max_retries=0) as client:
            with pytest.raises(openai.RateLimitError) as caught:
                await client.responses.create(model="m", input="hello")

    assert caught.value.response.headers["retry-after"] == "2"


async def test_what_is_held_comes_when_it_is_released() -> None:
    with MockModelServer() as model:
        model.enqueue_message("late", is_held=True)
        async with openai.AsyncOpenAI(base_url=model.base_url, api_key="k") as client:
            asking = asyncio.create_task(client.responses.create(model="m", input="hello"))
            await asyncio.to_thread(model.wait_for_requests, 1)
            assert not asking.done()
            model.release()
            assert (await asking).output_text == "late"


async def test_a_reset_forgets_what_was_enqueued_and_asked() -> None:
    with MockModelServer() as model:
        model.enqueue_message("held", is_held=True)
        model.enqueue_message("forgotten")
        async with openai.AsyncOpenAI(base_url=model.base_url, api_key="k") as client:
            asking = asyncio.create_task(client.responses.create(model="m", input="hello"))
            await asyncio.to_thread(model.wait_for_requests, 1)
            model.reset()
            assert (await asking).output_text == "held"
            assert model.requests == []
            model.enqueue_message("new")
            assert (await client.responses.create(model="m", input="again")).output_text == "new"


def test_other_paths_are_not_found_and_waiting_has_an_end() -> None:
    with MockModelServer() as model:
        assert httpx2.post(f"{model.base_url}/pictures", json={}).status_code == 404
        with pytest.raises(TimeoutError):
            model.wait_for_requests(1, timeout=0.01)


def test_it_runs_in_a_with_block_only() -> None:
    with pytest.raises(RuntimeError, match="with"):
        _ = MockModelServer().base_url


async def test_an_answer_can_be_made_from_the_request() -> None:
    def repeat(request: ModelRequest) -> list[Message]:
        return [Message(text=f"You said {request.user_texts()[-1]}.")]

    with MockModelServer(answer=repeat) as model:
        model.enqueue_message("This comes first.")
        async with openai.AsyncOpenAI(base_url=model.base_url, api_key="k") as client:
            said = [(await client.responses.create(model="m", input=text)).output_text for text in ("hi", "ho")]

    assert said == ["This comes first.", "You said ho."]


def test_the_pieces_of_a_streamed_answer_do_not_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a connection that is kept, each answer took 40 ms: its last piece waited for an acknowledgement."""
    sends_at_once = []

    class Handler(model_server._Handler):
        def do_POST(self) -> None:  # noqa: N802  # its base class calls it
            sends_at_once.append(bool(self.connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)))
            super().do_POST()

    monkeypatch.setattr(model_server, "_Handler", Handler)
    with MockModelServer() as model:
        model.enqueue_message("hello")
        httpx2.post(f"{model.base_url}/responses", json={"model": "m", "input": "hello", "stream": True})

    assert sends_at_once == [True]
