"""``python -m bench.hub_flood URL SERVER``: a user who floods the Hub service while the standard input says so.

It is a process of its own, as the flood of a real user comes from another machine: what it costs to send it must not
slow those whose calls are measured. Each line of the input is `flood`, or `rest`, which is answered with a line once
nothing of the flood is left. At the end of the input it prints what became of its calls, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter

from tornado.httpclient import AsyncHTTPClient

from .hub_clients import call
from .hub_service import Place

#: Calls that are on their way at the same time: more than the service takes of one user.
MOST = 200


class Flood:
    """More calls of one user than the service takes, again and again and without a pause."""

    def __init__(self, service: Place, server: str) -> None:
        self.states: Counter[str] = Counter()
        self._service = service
        self._server = server
        self._ended = asyncio.Event()
        self._pouring: list[asyncio.Task[None]] = []
        self._number = 0

    def begin(self) -> None:
        """Begin to call."""
        self._ended = asyncio.Event()
        self._pouring = [asyncio.create_task(self._pour(self._ended)) for _ in range(MOST)]

    async def end(self) -> None:
        """End it, once each call has its answer."""
        self._ended.set()
        await asyncio.gather(*self._pouring)

    async def _pour(self, ended: asyncio.Event) -> None:
        while not ended.is_set():
            self._number += 1
            id = f"flood-{self._server}-{self._number}"
            told = await call(self._service, "flood", "allowed", id, server=self._server)
            self.states[told.state] += 1


async def main(url: str, server: str) -> None:
    """Do what the input says."""
    AsyncHTTPClient.configure(None, max_clients=MOST)
    flood = Flood(Place(url), server)
    print("ready", flush=True)
    while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
        if line == "flood":
            flood.begin()
        else:
            await flood.end()
            print("rested", flush=True)
    print(json.dumps(flood.states), flush=True)


if __name__ == "__main__":
    os.nice(10)  # where processors are short, it waits for those that are measured
    asyncio.run(main(*sys.argv[1:]))
