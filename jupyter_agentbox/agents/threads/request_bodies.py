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


def send_bodies_as_they_are(client: AsyncOpenAI) -> None:
    """Have a client send the messages and functions of each request without looking through them."""
    responses, completions = client.responses, client.chat.completions
    responses.create = _as_extra(responses.create, "input", "tools")  # type: ignore[method-assign]  # of one object
    completions.create = _as_extra(completions.create, "messages", "tools")  # type: ignore[method-assign]  # as above


def _as_extra(create: Callable[..., Awaitable[Any]], messages: str, tools: str) -> Any:
    """Return `create` with these arguments moved to the extra part of the body."""

    async def create_with_extra(**options: Any) -> Any:
        extra = {name: options[name] for name in (messages, tools) if options.get(name)}
        body = {**extra, **(options.pop("extra_body", None) or {})}
        return await create(**{**options, **dict.fromkeys(extra, ()), "extra_body": body})

    return create_with_extra
