"""The HTTP client that asks a provider of sign-ins: only at addresses to which the server may lead."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from jupyter_agentbox.exceptions import SignInError

from .configuration import HttpServer
from .provider_addresses import may_lead_to
from .response_body import CappedBody

#: Seconds for one request to a provider.
_PATIENCE: Final = 30.0
#: Seconds for all requests to a provider between two steps of a person's: one that answers bit by bit is given up.
LONGEST_STEP: Final = 60.0
#: The longest answer of a provider that is read, in bytes.
_LONGEST_ANSWER: Final = 1_000_000


@contextlib.asynccontextmanager
async def provider_client(server: HttpServer, **options: Any) -> AsyncIterator[httpx2.AsyncClient]:
    """Open a client that asks only addresses to which the server may lead, and reads no endless answer."""

    async def check(request: httpx2.Request) -> None:
        url = str(request.url)
        if not may_lead_to(server.url, url):
            raise SignInError(f"`{server.name}` names an address to sign in at that is not used: {origin_of(url)}")

    async def bound(response: httpx2.Response) -> None:
        response.stream = CappedBody(response.stream, cap=_LONGEST_ANSWER)

    hooks: dict[str, Any] = {"request": [check], "response": [bound]}
    async with httpx2.AsyncClient(
        timeout=_PATIENCE, event_hooks=hooks, headers={"Accept-Encoding": "identity"}, **options
    ) as client:
        yield client


def origin_of(url: str) -> str:
    """Return what may be shown of an address: not its query, which has secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}"
