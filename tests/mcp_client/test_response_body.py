"""How an answer over HTTP is read: here, how long a server may be silent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest

from jupyter_agentbox.mcp_client.response_body import CappedBody, longest_silence
from jupyter_agentbox.mcp_client.sent_requests import RequestFailure, following


async def silent_after(*chunks: bytes) -> AsyncIterator[bytes]:
    """Say something, and then nothing more."""
    for chunk in chunks:
        yield chunk
    await asyncio.Event().wait()


async def test_a_stream_breaks_when_its_server_is_silent_for_longer_than_it_said() -> None:
    with following() as sent:
        chunks = aiter(CappedBody(silent_after(b": here\n\n"), cap=100, sent=sent, silence=0.01))
        assert await anext(chunks) == b": here\n\n"
        with pytest.raises(httpx2.StreamError):
            await asyncio.wait_for(anext(chunks), 60)
    assert sent.failure is RequestFailure.INTERRUPTED


async def test_others_may_be_silent_as_long_as_they_like() -> None:
    chunks = aiter(CappedBody(silent_after(b"1"), cap=100))
    assert await anext(chunks) == b"1"
    rest = asyncio.ensure_future(anext(chunks))
    assert await asyncio.wait([rest], timeout=0.05) == (set(), {rest})
    rest.cancel()


@pytest.mark.parametrize(
    ("heartbeat", "silence"),
    [("15", 30.0), ("", None), ("soon", None), ("0", None), ("-1", None), ("nan", None), ("inf", None)],
)
def test_a_server_says_how_often_it_shows_that_it_is_there(heartbeat: str, silence: float | None) -> None:
    assert longest_silence({"Agentbox-Heartbeat": heartbeat}) == silence
    assert longest_silence({}) is None
