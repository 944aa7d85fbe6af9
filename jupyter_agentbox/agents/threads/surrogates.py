"""Replaces halves of surrogate pairs in messages: JSON can name them, but UTF-8 cannot encode them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_core import PydanticSerializationError

from jupyter_agentbox.core.text import encodable as encodable_text


class EncodableModel(WrapperModel):
    """A model that is sent only what UTF-8 can encode; in texts of people, code and tools, the rest is replaced.

    Whether anything must be replaced shows when the providers' libraries encode a request, before they send any of it.
    Checking beforehand would take longer with each message of a conversation.
    """

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Ask for an answer."""
        try:
            return await super().request(messages, model_settings, model_request_parameters)
        except UnicodeEncodeError:
            return await super().request(encodable(messages), model_settings, model_request_parameters)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Ask for an answer that is streamed."""
        ask = super().request_stream
        async with AsyncExitStack() as stack:
            try:
                asked = ask(messages, model_settings, model_request_parameters, run_context)
                response = await stack.enter_async_context(asked)
            except UnicodeEncodeError:
                asked = ask(encodable(messages), model_settings, model_request_parameters, run_context)
                response = await stack.enter_async_context(asked)
            yield response


def encodable(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Return the messages, with `�` for each half of a surrogate pair."""
    data = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
    return ModelMessagesTypeAdapter.validate_python(_replaced(data))


def dump_messages(messages: Sequence[ModelMessage]) -> bytes:
    """Return the messages as JSON, with `�` for each half of a surrogate pair."""
    try:
        return ModelMessagesTypeAdapter.dump_json(list(messages))
    except PydanticSerializationError:
        return ModelMessagesTypeAdapter.dump_json(encodable(messages))


def _replaced(value: Any) -> Any:
    if isinstance(value, str):
        return encodable_text(value)
    if isinstance(value, list):
        return [_replaced(one) for one in value]
    if isinstance(value, dict):
        return {_replaced(key): _replaced(one) for key, one in value.items()}
    return value
