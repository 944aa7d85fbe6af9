"""Limits the bodies of HTTP responses, and determines the failure of a request whose response breaks off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, cast

import httpx2

from jupyter_agentbox.protocol.sizes import ValueCounter

from .limits import MOST_VALUES
from .sent_requests import RequestFailure, SentRequest

#: Set by servers that send at least a comment at this interval while a response is outstanding: a proxy may keep the
#: connection of a killed server open, in silence.
_HEARTBEAT_HEADER: Final = "Agentbox-Heartbeat"
_LONGEST_SILENCE: Final = 3600.0


class CappedBody(httpx2.AsyncByteStream):
    """A response body with a size limit. Fails with `httpx2.StreamError`, the only error the SDK limits to the request.

    Parameters
    ----------
    inner : httpx2.AsyncByteStream
        The server's body.
    cap : int
        Maximum size in bytes, of the whole body or of each event.
    by_event : bool
        Whether it is an event stream.
    sent : SentRequest or None
        The request that is answered.
    silence : float or None
        Seconds without data after which the connection counts as broken; ``None`` for no limit.
    """

    def __init__(
        self,
        inner: Any,
        *,
        cap: int,
        by_event: bool = False,
        sent: SentRequest | None = None,
        silence: float | None = None,
    ) -> None:
        self._silence = silence
        self._inner = inner
        self._cap = cap
        self._by_event = by_event
        self._sent_request = sent

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
                    raise self._failure(RequestFailure.UNUSABLE, reason)
                if values.count > MOST_VALUES:
                    reason = f"its answer has more than the {MOST_VALUES:,} values that are allowed"
                    raise self._failure(RequestFailure.UNUSABLE, reason)
                yield chunk
        except httpx2.HTTPError as error:
            reason = f"the connection broke in the middle of the answer: {describe(error)}"
            raise self._failure(RequestFailure.INTERRUPTED, reason) from None

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

    def _failure(self, failure: RequestFailure, reason: str) -> httpx2.StreamError:
        if self._sent_request is not None:
            self._sent_request.fail(failure, reason)
        return httpx2.StreamError(reason)

    async def aclose(self) -> None:
        """Close the body."""
        await self._inner.aclose()


def cap_body(response: httpx2.Response, cap: int, **options: Any) -> None:
    """Limit the body of a response, and do not decompress it: nobody asked for that, and the limit is on what is sent.

    Parameters
    ----------
    options
        As for `CappedBody`.
    """
    response.headers.pop("Content-Encoding", None)
    response.stream = CappedBody(response.stream, cap=cap, **options)


async def drop_body(response: httpx2.Response) -> None:
    """Discard the body of a response that is followed by another request: the client would read all of it."""
    await cast(httpx2.AsyncByteStream, response.stream).aclose()
    response.stream = httpx2.ByteStream(b"")


def longest_silence(headers: Mapping[str, str]) -> float | None:
    """Return the maximum silence, in seconds, of a server that announces a heartbeat; ``None`` without one."""
    try:
        seconds = 2 * float(headers.get(_HEARTBEAT_HEADER, ""))
    except ValueError:
        return None
    return seconds if 0 < seconds < _LONGEST_SILENCE else None


def describe(error: Exception) -> str:
    """Describe an error: some of the client's errors have no message."""
    return str(error) or type(error).__name__
