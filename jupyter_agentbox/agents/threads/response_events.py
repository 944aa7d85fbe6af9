"""Reads the events of OpenAI's Responses API.

OpenAI's library compares each event, and so each word of an answer, with all sixty types of event, although the event
names its type. Here it is compared only with that type.
"""

from __future__ import annotations

from functools import cache
from typing import Any, get_args

from openai import AsyncStream
from openai._models import construct_type
from openai.types.responses import ResponseStreamEvent
from pydantic import BaseModel, ValidationError


def read_events_by_type(answer: Any) -> Any:
    """Make a stream of Responses read each event as the type that it names; return it. Anything else is unchanged."""
    if isinstance(answer, AsyncStream):
        stream: Any = answer
        if stream._cast_to is ResponseStreamEvent:
            stream._cast_to = ResponseEvent
    return answer


class ResponseEvent:
    """Builds events in the way in which OpenAI's library lets a given type do so."""

    @classmethod
    def build(cls, *, response: Any, data: Any) -> Any:  # noqa: ARG003  # the library passes both
        """Return the event in a chunk of a stream."""
        kind = _kinds().get(str(data.get("type"))) if isinstance(data, dict) else None
        if kind is not None:
            try:
                return kind.model_validate(data)
            except ValidationError:
                pass  # the library takes what does not fit as well as it can
        return construct_type(type_=ResponseStreamEvent, value=data)


@cache
def _kinds() -> dict[str, type[BaseModel]]:
    union, *_ = get_args(ResponseStreamEvent)
    return {name: kind for kind in get_args(union) for name in get_args(kind.model_fields["type"].annotation)}
