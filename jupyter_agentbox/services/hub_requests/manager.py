"""Fetches a summary of the requests at a Hub service that wait for this server's user, for display only.

The server uses the token that the Hub gave it. The service accepts no decision with a token, so whoever reads this
token, such as code in a plain kernel, can see this list but decide nothing.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest
from tornado.simple_httpclient import SimpleAsyncHTTPClient

from jupyter_agentbox.core.calls import JsonObject, JsonValue

log = logging.getLogger(__name__)

#: How long an answer is cached, in seconds, for all pages.
HOLDS: Final = 2.0
#: Timeout of an answer, in seconds; below, its maximum size in bytes.
_PATIENCE: Final = 10.0
_MOST_BYTES: Final = 1_000_000
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")
_TEXTS: Final = ("asked_by", "server", "tool", "created_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class HubRequest:
    """A request waiting at the service.

    Parameters
    ----------
    id : str
        The service's id of the request.
    asked_by : str
        The user whose code made the call.
    server, tool : str
        The called server and tool.
    created_at : str
        When it became pending, in ISO 8601.
    expires_at : str or None
        When it expires.
    url : str
        The request's page at the service.
    """

    id: str
    asked_by: str
    server: str
    tool: str
    created_at: str
    expires_at: str | None
    url: str

    def to_json(self) -> JsonObject:
        """Return it as the REST API sends it."""
        return {
            "id": self.id,
            "asked_by": self.asked_by,
            "server": self.server,
            "tool": self.tool,
            "created_at": self.created_at,
            "expires_at": self.expires_at,
            "url": self.url,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class HubList:
    """The answer of a service.

    Parameters
    ----------
    requests : tuple of HubRequest
        The requests that have waited longest.
    total : int
        Total number of waiting requests.
    url : str
        The service's page with all requests; empty if unknown.
    problem : str
        Why the requests are unknown; empty if they are known.
    """

    requests: tuple[HubRequest, ...] = ()
    total: int = 0
    url: str = ""
    problem: str = ""

    def to_json(self) -> JsonObject:
        """Return it as the REST API sends it."""
        requests: list[JsonValue] = [request.to_json() for request in self.requests]
        return {"requests": requests, "total": self.total, "url": self.url or None, "problem": self.problem or None}


class HubRequestManager:
    """Fetches the requests waiting at a Hub service, on demand only.

    Parameters
    ----------
    url : str
        The service's address; empty for none.
    token : callable
        Returns the server's token; empty if it belongs to no Hub.
    clock : callable
        Monotonic clock, in seconds.
    """

    def __init__(self, url: str, *, token: Callable[[], str], clock: Callable[[], float] = time.monotonic) -> None:
        self._base = f"{url.rstrip('/')}/" if url else ""
        self._token = token
        self._clock = clock
        self._client: AsyncHTTPClient | None = None
        self._turn = asyncio.Lock()
        self._known: HubList | None = None
        self._asked = 0.0
        self._problem = ""

    @property
    def has_service(self) -> bool:
        """Whether there is a service to ask."""
        return bool(self._base and self._token())

    async def list(self) -> HubList:
        """Return the requests that wait for the user."""
        if not self.has_service:
            return HubList()
        async with self._turn:  # one request serves several pages
            if self._known is None or self._clock() - self._asked >= HOLDS:
                self._asked = self._clock()
                self._known = await self._ask()
                self._note(self._known.problem)
            return self._known

    async def _ask(self) -> HubList:
        if self._client is None:
            self._client = SimpleAsyncHTTPClient(force_instance=True, max_body_size=_MOST_BYTES)
        request = HTTPRequest(
            urljoin(self._base, "api/waiting"),
            headers={"Authorization": f"token {self._token()}"},
            follow_redirects=False,  # the token is for this address only
            request_timeout=_PATIENCE,
        )
        try:
            answer = await self._client.fetch(request, raise_error=False)
        except (HTTPClientError, OSError, ValueError) as error:
            return HubList(problem=f"the Hub service does not answer: {error}")
        if answer.code != 200:
            return HubList(problem=f"the Hub service answers {answer.code} {answer.reason}")
        try:
            return _read(json.loads(answer.body), self._base)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            return HubList(problem="the Hub service answers with something that is not a list of requests")

    def _note(self, problem: str) -> None:
        """Log a problem when it begins and when it ends."""
        if problem != self._problem:
            self._problem = problem
            if problem:
                log.warning("what waits at the Hub service is not known: %s", problem)
            else:
                log.info("the Hub service says again what waits")

    def close(self) -> None:
        """Stop fetching."""
        if self._client is not None:
            self._client.close()


def _read(answer: Mapping[str, Any], base: str) -> HubList:
    """Parse the service's answer, with its own URLs of its pages: this server may use another address for it."""
    url = urljoin(base, str(answer["url"]))
    if urlsplit(url).scheme not in ("http", "https"):
        raise ValueError("its pages are at no address of a page")
    url = f"{url.rstrip('/')}/"
    requests = tuple(_read_request(one, url) for one in answer["requests"])
    return HubList(requests=requests, total=max(int(answer["total"]), len(requests)), url=url)


def _read_request(one: Mapping[str, Any], url: str) -> HubRequest:
    id, expires_at = one["id"], one["expires_at"]
    texts = {name: one[name] for name in _TEXTS}
    if not all(isinstance(text, str) for text in (id, *texts.values())) or not _ID.fullmatch(id):
        raise ValueError("a request has no name")
    if not isinstance(expires_at, str | None):
        raise TypeError("the time of a request is none")
    return HubRequest(id=id, expires_at=expires_at, url=urljoin(url, f"requests/{id}"), **texts)
