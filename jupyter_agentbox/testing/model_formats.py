"""Response formats of the model servers of OpenAI and Anthropic: complete, and as server-sent events.

Sources: https://platform.openai.com/docs/api-reference/responses-streaming,
https://platform.openai.com/docs/api-reference/chat-streaming, https://docs.anthropic.com/en/api/messages-streaming.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

Json: TypeAlias = dict[str, Any]

#: Token usage in each response: input and output.
USAGE: Final = (100, 20)
#: Creation time in each response, in seconds since 1970.
_MADE: Final = 1_777_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message of the model.

    Parameters
    ----------
    text : str
        The text.
    deltas : sequence of str, optional
        The pieces in which the text comes when it is streamed; by default, its words.
    phase : str or None
        ``"commentary"``, ``"final_answer"``, or ``None``; only in the Responses format.
    """

    text: str
    deltas: Sequence[str] | None = None
    phase: str | None = None

    def pieces(self) -> Sequence[str]:
        """Return the pieces in which the text comes when it is streamed."""
        if self.deltas is not None:
            return self.deltas
        return [word for word in self.text.replace(" ", " \0").split("\0") if word]


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionCall:
    """A function that the model calls.

    Parameters
    ----------
    id : str
        The call's id.
    name : str
        The function's name.
    arguments : str
        The text in place of its arguments, usually JSON.
    """

    id: str
    name: str
    arguments: str


Part: TypeAlias = Message | FunctionCall


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFormat:
    """A response format of model servers.

    Parameters
    ----------
    path : str
        End of the request's URL.
    whole : callable
        Creates a complete response, from its id, the model's name and the parts.
    events : callable
        Creates the events of a streamed response: the name of each, or "" for none, and its data.
    error : callable
        Creates the body of an error response, from an HTTP status, a text and OpenAI's error code.
    """

    path: str
    whole: Callable[[str, str, Sequence[Part]], Json]
    events: Callable[[str, str, Sequence[Part]], Iterator[tuple[str, str]]]
    error: Callable[[int, str, str | None], Json]


# -- OpenAI: Responses


def _response(id_: str, model: str, status: str, output: Sequence[Json]) -> Json:
    tokens_in, tokens_out = USAGE
    usage = {
        "input_tokens": tokens_in,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": tokens_out,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens_in + tokens_out,
    }
    return {
        "id": id_,
        "object": "response",
        "created_at": _MADE,
        "status": status,
        "model": model,
        "output": list(output),
        "usage": usage if status == "completed" else None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "temperature": 1.0,
        "top_p": 1.0,
    }


def _output_item(id_: str, part: Part, *, is_done: bool) -> Json:
    status = "completed" if is_done else "in_progress"
    if isinstance(part, FunctionCall):
        called = {"call_id": part.id, "name": part.name, "arguments": part.arguments if is_done else ""}
        return {"id": id_, "type": "function_call", "status": status, **called}
    content = [_output_text(part.text)] if is_done else []
    item = {"id": id_, "type": "message", "role": "assistant", "status": status, "content": content}
    return item if part.phase is None else {**item, "phase": part.phase}


def _output_text(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _items(id_: str, parts: Sequence[Part]) -> Iterator[tuple[int, str, Part]]:
    for index, part in enumerate(parts):
        yield index, f"{'fc' if isinstance(part, FunctionCall) else 'msg'}_{id_}_{index}", part


def _responses_whole(id_: str, model: str, parts: Sequence[Part]) -> Json:
    return _response(
        id_, model, "completed", [_output_item(item, part, is_done=True) for _, item, part in _items(id_, parts)]
    )


def _responses_events(id_: str, model: str, parts: Sequence[Part]) -> Iterator[tuple[str, str]]:
    started = _response(id_, model, "in_progress", [])
    yield from _numbered(_responses_bodies(id_, started, parts, _responses_whole(id_, model, parts)))


def _responses_bodies(id_: str, started: Json, parts: Sequence[Part], done: Json) -> Iterator[Json]:
    yield {"type": "response.created", "response": started}
    yield {"type": "response.in_progress", "response": started}
    for index, item, part in _items(id_, parts):
        place = {"output_index": index}
        yield {"type": "response.output_item.added", **place, "item": _output_item(item, part, is_done=False)}
        yield from _responses_deltas({**place, "item_id": item}, part)
        yield {"type": "response.output_item.done", **place, "item": _output_item(item, part, is_done=True)}
    yield {"type": "response.completed", "response": done}


def _responses_deltas(place: Json, part: Part) -> Iterator[Json]:
    if isinstance(part, FunctionCall):
        yield {"type": "response.function_call_arguments.delta", **place, "delta": part.arguments}
        yield {"type": "response.function_call_arguments.done", **place, "arguments": part.arguments, "name": part.name}
        return
    place = {**place, "content_index": 0}
    yield {"type": "response.content_part.added", **place, "part": _output_text("")}
    for delta in part.pieces():
        yield {"type": "response.output_text.delta", **place, "delta": delta, "logprobs": []}
    yield {"type": "response.output_text.done", **place, "text": part.text, "logprobs": []}
    yield {"type": "response.content_part.done", **place, "part": _output_text(part.text)}


def _numbered(bodies: Iterator[Json]) -> Iterator[tuple[str, str]]:
    for number, body in enumerate(bodies):
        yield body["type"], json.dumps({**body, "sequence_number": number})


def _openai_error(status: int, text: str, code: str | None) -> Json:
    codes = {401: "invalid_api_key", 429: "rate_limit_exceeded"}
    return {"error": {"message": text, "type": "server_error", "param": None, "code": code or codes.get(status)}}


# -- OpenAI: Chat Completions


def _chat_call(index: int, part: FunctionCall) -> Json:
    return {
        "index": index,
        "id": part.id,
        "type": "function",
        "function": {"name": part.name, "arguments": part.arguments},
    }


def _split(parts: Sequence[Part]) -> tuple[list[Message], list[FunctionCall]]:
    messages = [part for part in parts if isinstance(part, Message)]
    return messages, [part for part in parts if isinstance(part, FunctionCall)]


def _chat_usage() -> Json:
    tokens_in, tokens_out = USAGE
    return {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}


def _chat_whole(id_: str, model: str, parts: Sequence[Part]) -> Json:
    messages, calls = _split(parts)
    message: Json = {"role": "assistant", "content": "".join(one.text for one in messages) or None}
    if calls:
        message["tool_calls"] = [
            {name: value for name, value in _chat_call(0, call).items() if name != "index"} for call in calls
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop", "logprobs": None}
    return {
        "id": id_,
        "object": "chat.completion",
        "created": _MADE,
        "model": model,
        "choices": [choice],
        "usage": _chat_usage(),
    }


def _chat_events(id_: str, model: str, parts: Sequence[Part]) -> Iterator[tuple[str, str]]:
    messages, calls = _split(parts)

    def chunk(delta: Json, finish: str | None = None) -> tuple[str, str]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        body = {
            "id": id_, "object": "chat.completion.chunk", "created": _MADE, "model": model, "choices": [choice],
        }  # fmt: skip
        return "", json.dumps(body)

    yield chunk({"role": "assistant", "content": ""})
    for message in messages:
        for delta in message.pieces():
            yield chunk({"content": delta})
    for index, call in enumerate(calls):
        yield chunk({"tool_calls": [_chat_call(index, call)]})
    yield chunk({}, "tool_calls" if calls else "stop")
    last = {"id": id_, "object": "chat.completion.chunk", "created": _MADE, "model": model, "choices": []}
    yield "", json.dumps({**last, "usage": _chat_usage()})
    yield "", "[DONE]"


# -- Anthropic: Messages


def _block(part: Part, *, is_done: bool) -> Json:
    if isinstance(part, Message):
        return {"type": "text", "text": part.text if is_done else ""}
    return {"type": "tool_use", "id": part.id, "name": part.name, "input": _input(part) if is_done else {}}


def _input(part: FunctionCall) -> Any:
    try:
        return json.loads(part.arguments)
    except ValueError:
        return {}


def _message(id_: str, model: str, content: Sequence[Json], reason: str | None) -> Json:
    tokens_in, tokens_out = USAGE
    return {
        "id": id_,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": list(content),
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {"input_tokens": tokens_in, "output_tokens": tokens_out},
    }


def _stop_reason(parts: Sequence[Part]) -> str:
    return "tool_use" if any(isinstance(part, FunctionCall) for part in parts) else "end_turn"


def _anthropic_whole(id_: str, model: str, parts: Sequence[Part]) -> Json:
    return _message(id_, model, [_block(part, is_done=True) for part in parts], _stop_reason(parts))


def _anthropic_events(id_: str, model: str, parts: Sequence[Part]) -> Iterator[tuple[str, str]]:
    for body in _anthropic_bodies(id_, model, parts):
        yield body["type"], json.dumps(body)


def _anthropic_bodies(id_: str, model: str, parts: Sequence[Part]) -> Iterator[Json]:
    yield {"type": "message_start", "message": _message(id_, model, [], None)}
    for index, part in enumerate(parts):
        yield {"type": "content_block_start", "index": index, "content_block": _block(part, is_done=False)}
        for delta in _anthropic_deltas(part):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    end = {"stop_reason": _stop_reason(parts), "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": {"output_tokens": USAGE[1]}}
    yield {"type": "message_stop"}


def _anthropic_deltas(part: Part) -> Iterator[Json]:
    if isinstance(part, FunctionCall):
        yield {"type": "input_json_delta", "partial_json": part.arguments}
        return
    for delta in part.pieces():
        yield {"type": "text_delta", "text": delta}


def _anthropic_error(status: int, text: str, _code: str | None) -> Json:
    kinds: Mapping[int, str] = {401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}
    return {"type": "error", "error": {"type": kinds.get(status, "api_error"), "message": text}}


FORMATS: Final = (
    ModelFormat(path="/responses", whole=_responses_whole, events=_responses_events, error=_openai_error),
    ModelFormat(path="/chat/completions", whole=_chat_whole, events=_chat_events, error=_openai_error),
    ModelFormat(path="/messages", whole=_anthropic_whole, events=_anthropic_events, error=_anthropic_error),
)
