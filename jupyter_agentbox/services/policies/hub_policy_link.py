"""Fetches a Hub service's policy for this server's user."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, Protocol

from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest
from tornado.simple_httpclient import SimpleAsyncHTTPClient

from jupyter_agentbox.core.site_policy import HubPolicySource
from jupyter_agentbox.exceptions import PolicyRefusedError

log = logging.getLogger(__name__)

#: Seconds between checks for a new version.
INTERVAL: Final = 30.0
#: How often these seconds are doubled at most while there is no answer.
_MOST_DOUBLINGS: Final = 3
#: Timeout of a request, in seconds; below, the maximum size of the response in bytes.
_PATIENCE: Final = 10.0
_MOST_BYTES: Final = 4_000_000


class PolicyTarget(Protocol):
    """The part of `HubPolicies` that this module uses."""

    @property
    def source(self) -> HubPolicySource | None:
        """The source of the policy."""

    def accept(self, data: bytes) -> None:
        """Accept a policy, or raise `PolicyRefusedError`."""

    def fail(self, problem: str) -> None:
        """Record why no policy was received."""


class HubPolicyLink:
    """Polls a Hub service for the policy, with the token that the Hub gave this server.

    Parameters
    ----------
    target : PolicyTarget
        Receives the policy.
    token : callable
        Returns the server's token; empty if it belongs to no Hub.
    interval : float
        Seconds between requests.
    """

    def __init__(self, target: PolicyTarget, *, token: Callable[[], str], interval: float = INTERVAL) -> None:
        self._target = target
        self._token = token
        self._interval = interval
        self._failures = 0
        self._etag = ""
        self._url = ""
        self._client: AsyncHTTPClient | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Fetch once, and then periodically."""
        self._client = SimpleAsyncHTTPClient(force_instance=True, max_body_size=_MOST_BYTES)
        await self.look()
        self._task = asyncio.create_task(self._watch(), name="asking the Hub service for its policy")

    @property
    def pause(self) -> float:
        """Seconds until the next request: more and more while the service does not answer, or refuses to."""
        return self._interval * 2.0 ** min(max(0, self._failures - 1), _MOST_DOUBLINGS)

    async def look(self) -> None:
        """Fetch the policy, and pass on a new version."""
        self._failures += 1
        if await self._fetch():
            self._failures = 0

    async def _fetch(self) -> bool:
        source, token = self._target.source, self._token()
        if source is None or self._client is None:
            return True
        if not token:
            self._target.fail("this server belongs to no JupyterHub, so that it has no token to ask with")
            return True  # it asks nobody
        if source.url != self._url:
            self._url, self._etag = source.url, ""
        headers = {"Authorization": f"token {token}", **({"If-None-Match": self._etag} if self._etag else {})}
        request = HTTPRequest(source.url, headers=headers, follow_redirects=False, request_timeout=_PATIENCE)
        try:
            answer = await self._client.fetch(request, raise_error=False)
        except (HTTPClientError, OSError) as error:
            self._target.fail(f"the Hub service does not answer: {error}")
            return False
        if answer.code == 304:
            self._target.fail("")
        elif answer.code != 200:
            self._target.fail(f"the Hub service answers {answer.code} {answer.reason}")
        else:
            self._hand_on(answer.body, answer.headers.get("ETag", ""))
        return answer.code in (200, 304)

    def _hand_on(self, body: bytes, etag: str) -> None:
        try:
            self._target.accept(body)
        except PolicyRefusedError:
            return  # logged, and retried later
        self._etag = etag

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self.pause)
            try:
                await self.look()
            except Exception:
                # The root of a task. Without updates the policy expires.
                log.exception("asking the Hub service for its policy failed")

    async def aclose(self) -> None:
        """Stop fetching."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._client is not None:
            self._client.close()
