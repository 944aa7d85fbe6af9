"""What UTF-8 cannot encode is replaced, whichever provider's library sends it."""

from __future__ import annotations

import pytest
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart

from jupyter_agentbox.agents.threads.models import ModelSettings, make_model
from jupyter_agentbox.testing import MockModelServer

PROVIDERS = ["openai", "openai-chat", "anthropic"]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("is_streamed", [False, True])
async def test_a_model_is_asked_once_with_a_mark_for_each_half_of_a_pair(
    model: MockModelServer, provider: str, *, is_streamed: bool
) -> None:
    model.enqueue_message("said")
    asked: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart("one \ud83d, one \ude00")])]

    async with make_model(ModelSettings(model=f"{provider}:scripted", base_url=model.base_url)) as client:
        if is_streamed:
            async with model_request_stream(client, asked) as answer:
                async for _ in answer:
                    pass
        else:
            await model_request(client, asked)

    assert [request.user_texts() for request in model.requests] == [["one \ufffd, one \ufffd"]]
