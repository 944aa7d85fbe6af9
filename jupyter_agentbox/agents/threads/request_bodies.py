"""Sends requests to OpenAI's interfaces as pydantic-ai makes them.

OpenAI's library compares each message and each function of a request with every type that it might have, to rename
fields and to encode files. pydantic-ai has done both; yet the comparison takes most of the time that a request takes
here, and longer with each message. What is passed as an extra part of the body is sent without it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openai import AsyncOpenAI


def send_bodies_as_they_are(client: AsyncOpenAI, *, is_chat: bool) -> None:
    """Have a client send the messages and functions of each request without looking through them.

    Parameters
    ----------
    client : AsyncOpenAI
        The client.
    is_chat : bool
        Whether it is used for Chat Completions, or for Responses. The library imports each when it is first asked for.
    """
    if is_chat:
        completions = client.chat.completions
        completions.create = _as_extra(completions.create, "messages")  # type: ignore[method-assign]  # of one object
    else:
        responses = client.responses
        responses.create = _as_extra(responses.create, "input")  # type: ignore[method-assign]  # as above


def _as_extra(create: Callable[..., Awaitable[Any]], messages: str) -> Any:
    """Return `create` with the messages and the functions moved to the extra part of the body."""

    async def create_with_extra(**options: Any) -> Any:
        extra = {name: options[name] for name in (messages, "tools") if options.get(name)}
        body = {**extra, **(options.pop("extra_body", None) or {})}
        return await create(**{**options, **dict.fromkeys(extra, ()), "extra_body": body})

    return create_with_extra
