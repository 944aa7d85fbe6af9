"""The messages to and from a model, turn by turn: stored as JSON, and shortened when they exceed the context."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pydantic import TypeAdapter, ValidationError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    RetryPromptPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
    repair_messages,
)

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.exceptions import StorageError

from .limits import shortened
from .surrogates import dump_messages

#: Length to which older outputs are shortened, in characters.
SHORT_OUTPUT: Final = 400
#: Maximum length of a conversation that the model summarizes, in characters.
TRANSCRIPT: Final = 40_000

_FLAG: Final = TypeAdapter(bool)


def dump_history(messages: Sequence[ModelMessage], *, replaces: bool) -> bytes:
    """Serialize a turn's messages.

    Parameters
    ----------
    messages : sequence of ModelMessage
        The messages to and from the model in the turn.
    replaces : bool
        Whether they replace all earlier messages, starting with a summary of them.
    """
    flag = b"true" if replaces else b"false"
    kept = dump_messages([_without_address(message) for message in messages])
    return b'{"replaces":' + flag + b',"messages":' + kept + b"}"


def are_short(messages: Sequence[ModelMessage], most: int) -> bool:
    """Whether messages contain only text, of at most this many characters in total."""
    said = (getattr(part, "args", None) or getattr(part, "content", "") for one in messages for part in one.parts)
    count = 0
    for text in said:
        if not isinstance(text, str):
            return False
        count += len(text)
    return count <= most


def load_histories(kept: Sequence[bytes]) -> list[ModelMessage]:
    """Return the messages of all turns, oldest first.

    Raises
    ------
    StorageError
        The stored data is damaged.
    """
    messages: list[ModelMessage] = []
    for one in filter(None, kept):
        try:
            data = json.loads(one)
            loaded = ModelMessagesTypeAdapter.validate_python(data["messages"])
            messages = loaded if _FLAG.validate_python(data["replaces"]) else [*messages, *loaded]
        except (KeyError, TypeError, ValueError, ValidationError) as error:
            raise StorageError(f"the stored message history of a thread is damaged: {type(error).__name__}") from error
    return repair_messages(messages)  # an interrupted turn may have left a call without its result


def _without_address(message: ModelMessage) -> ModelMessage:
    """Remove the URL of the model's server, which can contain a password or key."""
    return replace(message, provider_url=None) if isinstance(message, ModelResponse) else message


def with_short_outputs(messages: Sequence[ModelMessage], *, kept: int = 1) -> list[ModelMessage]:
    """Return the messages with shortened tool results, except in the last `kept` requests to the model."""
    requests = [index for index, message in enumerate(messages) if isinstance(message, ModelRequest)]
    spared = set(requests[len(requests) - kept :]) if kept else set[int]()
    return [
        replace(message, parts=[_short(part) for part in message.parts])
        if isinstance(message, ModelRequest) and index not in spared
        else message
        for index, message in enumerate(messages)
    ]


def transcript(messages: Sequence[ModelMessage]) -> str:
    """Return a conversation as text, without its middle if it is long."""
    lines = [line for message in messages for line in _lines(message)]
    return shortened("\n".join(lines), TRANSCRIPT)


def message_texts(messages: Sequence[ModelMessage]) -> list[JsonObject]:
    """Return a conversation for a person to read: ``{"role", "text"}``, and ``"tool"`` of calls and what they returned.

    The role is ``system``, ``user``, ``assistant``, ``reasoning``, ``tool_call`` or ``tool``.
    """
    told: list[JsonObject] = []
    instructions = None
    for message in messages:
        if isinstance(message, ModelRequest) and message.instructions not in (None, instructions):
            instructions = message.instructions
            told.append({"role": "system", "text": instructions or ""})
        told += [_text_of(part) for part in message.parts]
    return told


def _text_of(part: ModelRequestPart | ModelResponsePart) -> JsonObject:
    match part:
        case ToolCallPart():
            return {"role": "tool_call", "tool": part.tool_name, "text": part.args_as_json_str()}
        case ToolReturnPart():
            return {"role": "tool", "tool": part.tool_name, "text": part.model_response_str()}
        case RetryPromptPart():
            return {"role": "tool", "tool": part.tool_name or "", "text": part.model_response()}
        case TextPart():
            return {"role": "assistant", "text": part.content}
        case ThinkingPart():
            return {"role": "reasoning", "text": part.content}
        case SystemPromptPart():
            return {"role": "system", "text": part.content}
        case UserPromptPart():
            said = [part.content] if isinstance(part.content, str) else part.content
            return {"role": "user", "text": "\n".join(str(one) for one in said)}
        case _:
            return {"role": part.part_kind, "text": ""}


def _short(part: ModelRequestPart) -> ModelRequestPart:
    if not isinstance(part, ToolReturnPart) or not isinstance(part.content, str):
        return part
    short: ToolReturnPart = replace(part)
    short.content = shortened(part.content, SHORT_OUTPUT)
    return short


def _lines(message: ModelMessage) -> list[str]:
    lines = []
    for part in message.parts:
        if isinstance(part, UserPromptPart) and isinstance(part.content, str):
            lines.append(f"Person: {part.content}")
        elif isinstance(part, TextPart):
            lines.append(f"You: {part.content}")
        elif isinstance(part, ToolCallPart):
            lines.append(f"You called {part.tool_name}: {shortened(part.args_as_json_str(), SHORT_OUTPUT)}")
        elif isinstance(part, ToolReturnPart):
            lines.append(f"It returned: {shortened(str(part.content), SHORT_OUTPUT)}")
    return lines
