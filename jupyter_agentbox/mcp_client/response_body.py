"""The body of an answer over HTTP: how much of it is read, and what becomes of a request whose answer breaks off."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2

from .deliveries import Delivery, Fate


class CappedBody(httpx2.AsyncByteStream):
    """An answer's body. It fails with `httpx2.StreamError`, the one error that the SDK keeps with the request.

    Parameters
    ----------
    inner : httpx2.AsyncByteStream
        As the server sends it.
    cap : int
        The most bytes, of all of it or of an event.
    by_event : bool
        It is a stream of events.
    delivery : Delivery or None
        The request that it answers.
    """

    def __init__(self, inner: Any, *, cap: int, by_event: bool = False, delivery: Delivery | None = None) -> None:
        self._inner = inner
        self._cap = cap
        self._by_event = by_event
        self._delivery = delivery

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for chunk in self._inner:
                ended = max(chunk.rfind(b"\n\n"), chunk.rfind(b"\r\n\r\n")) if self._by_event else -1
                size = size + len(chunk) if ended < 0 else len(chunk) - ended
                if size > self._cap:
                    reason = f"its answer has more than the {self._cap / 1e6:.1f} MB that are allowed"
                    raise self._failure(Fate.UNUSABLE, reason)
                yield chunk
        except httpx2.HTTPError as error:
            reason = f"the connection broke in the middle of the answer: {describe(error)}"
            raise self._failure(Fate.INTERRUPTED, reason) from None

    def _failure(self, fate: Fate, reason: str) -> httpx2.StreamError:
        if self._delivery is not None:
            self._delivery.fail(fate, reason)
        return httpx2.StreamError(reason)

    async def aclose(self) -> None:
        """Read no more."""
        await self._inner.aclose()


def describe(error: Exception) -> str:
    """Say what went wrong: some of the client's errors have no text."""
    return str(error) or type(error).__name__
