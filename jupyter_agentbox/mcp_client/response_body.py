"""The body of an answer over HTTP: how much of it is read, and what becomes of a request whose answer breaks off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, cast

import httpx2

from jupyter_agentbox.protocol.sizes import ValueCounter

from .deliveries import Delivery, Fate
from .limits import MOST_VALUES

#: Set by a server that writes at least a comment every so many seconds while an answer is to come: a proxy whose server
#: was killed may keep the connection open, and never say another word.
_PULSE_HEADER: Final = "Agentbox-Pulse"
_LONGEST_SILENCE: Final = 3600.0


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
    silence : float or None
        Seconds without a byte after which the connection counts as broken; ``None`` for no limit.
    """

    def __init__(
        self,
        inner: Any,
        *,
        cap: int,
        by_event: bool = False,
        delivery: Delivery | None = None,
        silence: float | None = None,
    ) -> None:
        self._silence = silence
        self._inner = inner
        self._cap = cap
        self._by_event = by_event
        self._delivery = delivery

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, values = 0, ValueCounter()
        try:
            async for chunk in self._chunks():
                ended = max(chunk.rfind(b"\n\n"), chunk.rfind(b"\r\n\r\n")) if self._by_event else -1
                if ended >= 0:
                    size, values = 0, ValueCounter()
                size += len(chunk) - max(ended, 0)
                values.feed(chunk[max(ended, 0) :])
                if size > self._cap:
                    reason = f"its answer has more than the {self._cap / 1e6:.1f} MB that are allowed"
                    raise self._failure(Fate.UNUSABLE, reason)
                if values.count > MOST_VALUES:
                    reason = f"its answer has more than the {MOST_VALUES:,} values that are allowed"
                    raise self._failure(Fate.UNUSABLE, reason)
                yield chunk
        except httpx2.HTTPError as error:
            reason = f"the connection broke in the middle of the answer: {describe(error)}"
            raise self._failure(Fate.INTERRUPTED, reason) from None

    async def _chunks(self) -> AsyncIterator[bytes]:
        chunks = aiter(self._inner)
        while True:
            try:
                async with asyncio.timeout(self._silence):
                    chunk: bytes | None = await anext(chunks, None)
            except TimeoutError:
                raise httpx2.ReadTimeout(f"the server was silent for {self._silence:g} s") from None
            if chunk is None:
                return
            yield chunk

    def _failure(self, fate: Fate, reason: str) -> httpx2.StreamError:
        if self._delivery is not None:
            self._delivery.fail(fate, reason)
        return httpx2.StreamError(reason)

    async def aclose(self) -> None:
        """Read no more."""
        await self._inner.aclose()


async def drop_body(response: httpx2.Response) -> None:
    """Read nothing of an answer after which another request follows: the client would read all of it."""
    await cast(httpx2.AsyncByteStream, response.stream).aclose()
    response.stream = httpx2.ByteStream(b"")


def longest_silence(headers: Mapping[str, str]) -> float | None:
    """Return how long a server may be silent that says how often it shows that it is there; ``None`` if it does not."""
    try:
        seconds = 2 * float(headers.get(_PULSE_HEADER, ""))
    except ValueError:
        return None
    return seconds if 0 < seconds < _LONGEST_SILENCE else None


def describe(error: Exception) -> str:
    """Say what went wrong: some of the client's errors have no text."""
    return str(error) or type(error).__name__
