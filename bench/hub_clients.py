"""Those who use the Hub service in ``bench.hub``: users' servers that call tools, and a browser of an approver."""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import Any

from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest, HTTPResponse

from .hub_service import WAIT, Place

#: What proxies answer in the place of a service that they do not reach.
_NOT_REACHED = (502, 503, 504)
#: Seconds without a heartbeat of the service after which users' servers take a connection for broken.
SILENCE = 30.0


class Approver:
    """A browser in which an approver logged in."""

    def __init__(self, service: Place) -> None:
        self._service = service
        self._cookies: SimpleCookie = SimpleCookie()

    async def get(self, path: str) -> HTTPResponse:
        """Open a page, and keep its cookies."""
        answer = await self._service.ask(path, Cookie=self._sent())
        for line in answer.headers.get_list("Set-Cookie"):
            self._cookies.load(line)
        return answer

    async def log_in(self) -> None:
        """Log in, as the Hub would let them."""
        self._cookies = SimpleCookie()
        login = await self.get("")
        state = re.search(r"state=([^&]+)", login.headers.get("Location", ""))
        if state is not None:
            await self.get(f"oauth_callback?code=approver&state={state[1]}")
            await self.get("")

    async def pending(self) -> list[Any]:
        """Return what waits, if it can be had."""
        listed = await self.get("api/requests")
        if listed.code == 403:
            await self.log_in()
            listed = await self.get("api/requests")
        found: list[Any] = json.loads(listed.body)["pending"] if listed.code == 200 else []
        return found

    async def allow_all(self) -> int:
        """Allow all that waits; return how many were allowed."""
        answers = [
            {"id": one["id"], "decision": "allow_once", "digest": one["call"]["digest"]}
            for one in (await self.pending())[:500]
        ]
        if not answers:
            return 0
        xsrf = self._cookies["_xsrf"].value if "_xsrf" in self._cookies else ""
        decided = await self._service.ask(
            "api/decisions", {"decisions": answers}, Cookie=self._sent(), X_XSRFToken=xsrf
        )
        if decided.code != 200:
            return 0
        return sum(one["status"] == 200 for one in json.loads(decided.body)["decisions"])

    def _sent(self) -> str:
        return "; ".join(f"{one.key}={one.value}" for one in self._cookies.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a caller knows of their call in the end.

    Parameters
    ----------
    state : str
        ``succeeded``, ``failed``, ``refused``, ``broken`` (before it could come back) or ``no answer``.
    text : str
        What the tool or the service said.
    event : str
        What the caller came back with, or would have; empty if nobody was asked.
    """

    state: str
    text: str = ""
    event: str = ""


async def call(
    service: Place, user: str, tool: str, id: str, waiting: asyncio.Event | None = None, *, server: str = "bench"
) -> Told:
    """Call a tool, and come back for the answer as often as it takes; return what the caller knows of it then."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {"id": id}}}
    last, until = "", time.monotonic() + WAIT
    while time.monotonic() < until:
        text, heard = bytearray(), [math.inf]  # before an answer begins, nobody knows that there is a heartbeat

        def take(data: bytes, text: bytearray = text, heard: list[float] = heard) -> None:
            text.extend(data)
            heard[0] = time.monotonic()
            if waiting is not None and b"\nretry:" in text:
                waiting.set()

        request = HTTPRequest(
            f"{service.url}mcp/{server}",
            method="GET" if last else "POST",
            body=None if last else json.dumps(body),
            headers={"Authorization": f"Bearer {user}", **({"Last-Event-ID": last} if last else {})},
            streaming_callback=take,
            connect_timeout=WAIT,
            request_timeout=WAIT,
        )
        try:
            code = await _code(request, heard)
        except ConnectionRefusedError:  # it never got there
            await asyncio.sleep(0.2)
            continue
        found = re.search(rb'data: (\{"jsonrpc": "2.0", "id".*)', text)
        if found is not None:
            result = json.loads(found[1])["result"]
            said = str(result["content"][0]["text"])
            return Told(state="failed" if result["isError"] else "succeeded", text=said, event=last)
        begun = re.search(rb"id: (\S+)\n", text)
        last = last or (begun[1].decode() if begun is not None else "")
        if code not in (200, 599) and not (last and code in _NOT_REACHED):
            return Told(state="refused", text=f"{code}: {text.decode(errors='replace'):.200}", event=last)
        if not last:
            return Told(state="broken")
        await asyncio.sleep(0.2)
    return Told(state="no answer", event=last)


async def _code(request: HTTPRequest, heard: list[float]) -> int:
    """Return the status of the answer once it is there; 599 if the connection broke, or was silent for too long."""
    fetching = asyncio.ensure_future(AsyncHTTPClient().fetch(request, raise_error=False))
    fetching.add_done_callback(asyncio.Future.exception)  # one that was silent is left alone, and nobody looks
    try:
        while not fetching.done():
            if heard[0] + SILENCE < time.monotonic():
                return 599
            await asyncio.wait([fetching], timeout=1)
        return int(fetching.result().code)
    except ConnectionRefusedError:
        raise
    except (HTTPClientError, OSError):
        return 599
