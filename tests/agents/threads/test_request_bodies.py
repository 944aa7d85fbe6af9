"""Requests to OpenAI's interfaces: the same as its library makes, without its look at each message."""

from __future__ import annotations

from typing import Any

import pytest
from openai import AsyncOpenAI, omit
from pydantic_ai import BinaryContent
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import ToolDefinition

from jupyter_agentbox.agents.threads.request_bodies import send_bodies_as_they_are
from jupyter_agentbox.testing import MockModelServer

PICTURE = BinaryContent(data=b"\x89PNG\r\n", media_type="image/png")
CONVERSATION: list[ModelMessage] = [
    ModelRequest(parts=[SystemPromptPart("You write Python."), UserPromptPart(["What is this?", PICTURE])]),
    ModelResponse(parts=[TextPart("I look."), ToolCallPart("run_code", {"code": "6 * 7"}, tool_call_id="call_1")]),
    ModelRequest(parts=[ToolReturnPart("run_code", {"text": "42"}, tool_call_id="call_1")]),
]
PARAMETERS = ModelRequestParameters(
    function_tools=[
        ToolDefinition(
            name="run_code",
            description="Run Python.",
            parameters_json_schema={"type": "object", "properties": {"code": {"type": "string"}}},
        )
    ],
    allow_text_output=True,
)


@pytest.mark.parametrize("make", [OpenAIResponsesModel, OpenAIChatModel])
@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_request_is_what_the_library_would_have_sent(make: Any, is_streamed: bool) -> None:
    bodies = []
    for is_as_it_is in (False, True):
        with MockModelServer() as model:
            model.enqueue_message("It is 42.")
            provider = OpenAIProvider(base_url=model.base_url, api_key="key")
            if is_as_it_is:
                send_bodies_as_they_are(provider.client, is_chat=make is OpenAIChatModel)
            async with make("scripted", provider=provider) as client:
                if is_streamed:
                    async with client.request_stream(CONVERSATION, None, PARAMETERS) as answer:
                        assert [event async for event in answer]
                else:
                    await client.request(CONVERSATION, {"extra_body": {"seed": 1}}, PARAMETERS)
            bodies.append(model.requests[0].json())

    by_the_library, as_it_is = bodies
    assert as_it_is == by_the_library
    assert len(as_it_is.get("input", as_it_is.get("messages"))) > 3


@pytest.mark.parametrize("messages", ["input", "messages"])
async def test_the_library_looks_at_nothing_but_what_it_must_be_told(messages: str) -> None:
    client = AsyncOpenAI(api_key="key")
    resource: Any = client.responses if messages == "input" else client.chat.completions
    asked: list[dict[str, Any]] = []

    async def create(**options: Any) -> None:
        asked.append(options)

    resource.create = create
    send_bodies_as_they_are(client, is_chat=messages == "messages")
    given = {messages: [{"role": "user", "content": "hello"}], "tools": [{"type": "function", "name": "run_code"}]}
    await resource.create(model="m", stream=True, user=omit, extra_body={"seed": 1}, **given)
    await client.close()

    assert asked == [{"model": "m", "stream": True, messages: (), "extra_body": {**given, "seed": 1}}]
