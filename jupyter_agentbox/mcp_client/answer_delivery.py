"""Delivers people's answers to the questions of servers over HTTP, beside everything else on the connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Final

import httpx2

from jupyter_agentbox.background import in_background

from .sent_requests import SentAnswer, SentRequest

#: Seconds after each failed attempt but the last until an answer is sent again.
DELAYS: Final = (0.5, 1.5, 5.0)
#: Timeout of sending it once, in seconds.
TIMEOUT: Final = 30.0
#: With these statuses, and those from 500, a server has not accepted an answer. After the first, and after those from
#: 500, the answer is sent again.
_NOT_ACCEPTED: Final = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


class AnswerDelivery:
    """Sends answers in tasks: while the SDK waits for the response to one, it sends nothing else.

    The calls of others share the connection, and one of the messages that would wait is what cancels the call.

    Parameters
    ----------
    send : callable
        Sends a request within a number of seconds.
    reason_of : callable
        Returns the reason that a refusal gives; empty for none.
    on_lost : callable
        Called with the call, if known, whose server waits in vain for an answer, and with the reason.
    """

    def __init__(
        self,
        send: Callable[..., Awaitable[httpx2.Response]],
        *,
        reason_of: Callable[[httpx2.Response], Awaitable[str]],
        on_lost: Callable[[SentRequest | None, str], None],
    ) -> None:
        self._send = send
        self._reason_of = reason_of
        self._on_lost = on_lost
        self._running: set[asyncio.Task[None]] = set()

    def begin(self, request: httpx2.Request, answer: SentAnswer, **options: object) -> httpx2.Response:
        """Begin to send an answer; return the response for the SDK."""
        sending = in_background(
            self._deliver(request, answer, **options),
            what="sending an answer to a question",
            on_failure=lambda: self._on_lost(answer.asked_by, "it could not be sent"),
        )
        self._running.add(sending)
        sending.add_done_callback(self._running.discard)
        return httpx2.Response(HTTPStatus.ACCEPTED, request=request)

    async def aclose(self) -> None:
        """Stop sending."""
        for sending in self._running:
            sending.cancel()
        if self._running:
            await asyncio.wait(self._running)

    async def _deliver(self, request: httpx2.Request, answer: SentAnswer, **options: object) -> None:
        """Send an answer until it is accepted. The SDK would drop it, and the server would wait in vain."""
        response = await self._send(TIMEOUT, request, **options)
        for delay in DELAYS:
            if response.status_code != HTTPStatus.TOO_MANY_REQUESTS and response.status_code < 500:
                break
            await response.aclose()
            await asyncio.sleep(delay)
            response = await self._send(TIMEOUT, request, **options)
        if response.status_code in _NOT_ACCEPTED or response.status_code >= 500:
            reason = await self._reason_of(response)
            self._on_lost(answer.asked_by, reason or f"HTTP {response.status_code}")
        await response.aclose()
