"""A loop that outlives a test, for files whose tests share something asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from jupyter_core.utils import ensure_event_loop


def loop_of_the_file() -> Iterator[asyncio.AbstractEventLoop]:
    """Stand in for pytest-jupyter's fixture `jp_asyncio_loop`, as one of a wider scope."""
    loop = ensure_event_loop(prefer_selector_loop=True)
    yield loop
    loop.close()
