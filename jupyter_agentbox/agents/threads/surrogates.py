"""Replaces halves of surrogate pairs in messages: JSON can name them, but UTF-8 cannot encode them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_core import PydanticSerializationError


class EncodableModel(WrapperModel):
    """A model that is sent only what UTF-8 can encode: of what people, code and tools say, the rest is replaced."""

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Ask for an answer."""
        return await super().request(encodable(messages), model_settings, model_request_parameters)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Ask for an answer that comes in pieces."""
        sent = encodable(messages)
        async with super().request_stream(sent, model_settings, model_request_parameters, run_context) as response:
            yield response


def encodable(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Return the messages, with `�` for each half of a surrogate pair."""
    try:
        ModelMessagesTypeAdapter.dump_json(list(messages))
    except PydanticSerializationError:
        data = ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")
        return ModelMessagesTypeAdapter.validate_python(_replaced(data))
    return list(messages)


def _replaced(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_replaced(one) for one in value]
    if isinstance(value, dict):
        return {_replaced(key): _replaced(one) for key, one in value.items()}
    return value
