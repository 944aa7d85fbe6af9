"""Sends requests to OpenAI's APIs in the form in which pydantic-ai creates them.

OpenAI's library compares each message and each function of a request with every type that it might have, to rename
fields and to encode files. pydantic-ai has already done both, yet the comparison takes most of the time of a request
here, and more with each message. The library sends extra parts of the body without comparing them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from openai import AsyncOpenAI

#: What is no part of a body, or decides how it is sent.
_SDK_OPTIONS: Final = frozenset({"model", "stream", "timeout", "extra_headers", "extra_query", "extra_body"})


def send_bodies_as_they_are(client: AsyncOpenAI, *, is_chat: bool) -> None:
    """Make a client send requests without comparing their messages, functions and settings.

    Streams of the Responses API are read as `read_events_by_type` describes.

    Parameters
    ----------
    client : AsyncOpenAI
        The client.
    is_chat : bool
        Whether it is used for Chat Completions rather than Responses. The library imports each one on first use.
    """
    if is_chat:
        completions = client.chat.completions
        completions.create = _as_extra(completions.create, "messages")  # type: ignore[method-assign]  # of one object
    else:
        responses = client.responses
        create = _with_quick_events(_as_extra(responses.create, "input"))
        responses.create = create  # type: ignore[method-assign]  # as above


def _with_quick_events(create: Callable[..., Awaitable[Any]]) -> Any:
    from .response_events import read_events_by_type  # noqa: PLC0415  # it imports OpenAI's library

    async def create_with_quick_events(**options: Any) -> Any:
        return read_events_by_type(await create(**options))

    return create_with_quick_events


def _as_extra(create: Callable[..., Awaitable[Any]], messages: str) -> Any:
    """Return `create` with all arguments moved to the extra part of the body, except those that it needs itself."""
    from openai import NotGiven, Omit  # noqa: PLC0415  # the library is imported for who uses it

    async def create_with_extra(**options: Any) -> Any:
        kept = {name: options.pop(name) for name in _SDK_OPTIONS & options.keys()}
        extra = {name: value for name, value in options.items() if not isinstance(value, NotGiven | Omit)}
        body = {**extra, **(kept.pop("extra_body", None) or {})}
        return await create(**kept, **{messages: ()}, extra_body=body)

    return create_with_extra
