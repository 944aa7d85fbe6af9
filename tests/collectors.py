"""A receiver of records over HTTP, for tests: it listens on this machine, and can be told to refuse."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tornado import httpserver, netutil, web


class Collector:
    """What was received.

    Attributes
    ----------
    url : str
        Where it listens.
    status : int
        What it answers.
    answer : bytes
        The body of its answers.
    bodies : list of bytes
        What was posted, also what was refused.
    headers : list
        The headers of each.
    lines : list of str
        The lines of what was not refused.
    """

    def __init__(self) -> None:
        self.url = ""
        self.status = 200
        self.answer = b""
        self.bodies: list[bytes] = []
        self.headers: list[Any] = []
        self.lines: list[str] = []
        self._changed = asyncio.Condition()

    async def take(self, body: bytes, headers: Any) -> None:
        self.bodies.append(body)
        self.headers.append(headers)
        async with self._changed:
            if self.status == 200:
                self.lines += body.decode().splitlines()
            self._changed.notify_all()

    async def has_bodies(self, count: int) -> None:
        """Wait until so much was posted."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.bodies) >= count)

    async def has(self, event: str, count: int = 1) -> list[dict[str, Any]]:
        """Wait for records of an event, and return all."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.events.count(event) >= count)
        return self.records

    @property
    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]

    @property
    def events(self) -> list[str]:
        return [record["event"] for record in self.records]


class _Handler(web.RequestHandler):
    def initialize(self, collector: Collector) -> None:
        self._collector = collector

    async def post(self) -> None:
        await self._collector.take(self.request.body, self.request.headers)
        self.set_status(self._collector.status)
        self.finish(self._collector.answer)


@asynccontextmanager
async def collecting(collector: Collector | None = None) -> AsyncIterator[Collector]:
    """Listen for records."""
    collector = collector or Collector()
    sockets = netutil.bind_sockets(0, "127.0.0.1")
    server = httpserver.HTTPServer(web.Application([("/.*", _Handler, {"collector": collector})]))
    server.add_sockets(sockets)
    collector.url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}"
    try:
        yield collector
    finally:
        server.stop()
        await server.close_all_connections()
