"""HTTP client for sign-in providers, limited to addresses that the server may lead to."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from jupyter_agentbox.exceptions import SignInError

from .configuration import HttpServer
from .provider_addresses import may_lead_to
from .response_body import cap_body

#: Timeout of one request to a provider, in seconds.
_PATIENCE: Final = 30.0
#: Timeout of all requests between two actions of a person, in seconds, for providers that respond bit by bit.
LONGEST_STEP: Final = 60.0
#: Maximum size of a provider's response, in bytes.
_LONGEST_ANSWER: Final = 1_000_000


@contextlib.asynccontextmanager
async def provider_client(server: HttpServer, **options: Any) -> AsyncIterator[httpx2.AsyncClient]:
    """Open a client that requests only addresses to which the server may lead, and limits the size of responses."""

    async def check(request: httpx2.Request) -> None:
        url = str(request.url)
        if not may_lead_to(server.url, url):
            raise SignInError(f"`{server.name}` names an address to sign in at that is not used: {origin_of(url)}")

    async def bound(response: httpx2.Response) -> None:
        cap_body(response, _LONGEST_ANSWER)

    hooks: dict[str, Any] = {"request": [check], "response": [bound]}
    async with httpx2.AsyncClient(
        timeout=_PATIENCE, event_hooks=hooks, headers={"Accept-Encoding": "identity"}, **options
    ) as client:
        yield client


def origin_of(url: str) -> str:
    """Return the displayable part of a URL: without its query, which contains secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}"
