"""The only way from a sandbox to the network: an HTTP proxy that knows which domains are allowed.

It accepts ``CONNECT``, after which it passes bytes on unread, and plain requests for ``http`` URLs, each of which it
parses, checks, rewrites and sends on a separate connection. It resolves each name itself, checks every address that
the name resolves to, and connects to an address that passed the check, never to the name.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, Protocol

import h11

from jupyter_agentbox.core.egress_domains import Address, DomainCheck, DomainRules

from .proxy_requests import RefusedRequestError, Target, back, onward, target_of
from .streams import BLOCK, Stream, close, join

_CHANGE: Final = (
    "What a sandboxed kernel can reach is set by `allowed_domains` (and `private_domains`, for what is not on the"
    " internet): in its kernelspec, as SandboxProvisioner.allowed_domains, or in `sandbox_config`. It holds for kernels"
    " that are started afterwards."
)
#: So that a kernel cannot fill the log.
_MOST_NOTES: Final = 200
#: What is still read of a request that was refused: a client that is cut off while it writes sees no answer.
_MOST_DRAINED: Final = 1 << 20


class Resolver(Protocol):
    """Looks up where a name leads."""

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses, the best first.

        Raises
        ------
        OSError
            If there are none.
        """


async def system_resolver(host: str, port: int) -> Sequence[str]:
    """Look up a name as programs of this machine do. Implements `Resolver`."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What one sandbox may use of its proxy.

    Parameters
    ----------
    connections : int
        Open connections at a time.
    head : int
        Bytes of the head of a request or response.
    patience : float
        Seconds that a client may take to send the head of a request.
    connect : float
        Seconds that looking up a name and connecting may take.
    idle : float
        Seconds in which nothing needs to come from either side.
    """

    connections: int = 64
    head: int = 65536
    patience: float = 60.0
    connect: float = 30.0
    idle: float = 600.0


class Proxy:
    """Serves the clients of one sandbox.

    Parameters
    ----------
    rules : DomainRules
        What can be reached.
    resolve : Resolver
        Looks up names.
    own : callable
        Returns the addresses of this machine.
    on_refused : callable
        Called once for each host that was refused, with the host and the reason.
    bounds : Bounds
        What a sandbox may use.
    """

    def __init__(
        self,
        rules: DomainRules,
        *,
        resolve: Resolver,
        own: Callable[[], Collection[Address]],
        on_refused: Callable[[str], None],
        bounds: Bounds = Bounds(),
    ) -> None:
        self.bounds = bounds
        self._rules = rules
        self._resolve = resolve
        self._own = own
        self._on_refused = on_refused
        self._noted: set[str] = set()
        self._open = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client until it, or what it talks to, has ended."""
        client = Stream(reader, writer)
        self._open += 1
        if self._open > 2 * self.bounds.connections:
            writer.transport.abort()
        try:
            await _Conversation(client, self).run(is_full=self._open > self.bounds.connections)
        except (OSError, TimeoutError, h11.ProtocolError) as error:
            # one of the two has gone, or broke the protocol in the middle: there is no one to tell
            if isinstance(error, h11.LocalProtocolError):
                sys.stderr.write(f"the proxy of a sandbox: {type(error).__name__}\n")
            writer.transport.abort()
        finally:
            self._open -= 1
            await close(client)

    async def connect(self, target: Target, *, tunnel: bool) -> Stream:
        """Connect to a host, if that is allowed, at an address that passed the check.

        Raises
        ------
        RefusedRequestError
            If it is not allowed, or cannot be reached.
        """
        host, port = target.host, target.port
        verdict = self._rules.find(host, port, tunnel=tunnel)
        if verdict.reason:
            raise self._refusal(verdict)
        try:
            async with asyncio.timeout(self.bounds.connect):
                addresses = await self._addresses(host, port)
                own = self._own()
                verdicts = {one: self._rules.check(host, one, matched=verdict.matched, own=own) for one in addresses}
                allowed = [one for one, found in verdicts.items() if not found.reason]
                if not allowed:
                    raise self._refusal(verdicts[addresses[0]])
                return await self._open_one(allowed, port)
        except TimeoutError as error:
            raise RefusedRequestError(504, f"{host} did not answer in time") from error
        except OSError as error:
            raise RefusedRequestError(502, f"{host} cannot be reached") from error

    async def _addresses(self, host: str, port: int) -> list[Address]:
        try:
            return [ip_address(host)]
        except ValueError:
            found = [ip_address(one.partition("%")[0]) for one in await self._resolve(host, port)]
        if not found:
            raise OSError("it leads nowhere")
        return found

    async def _open_one(self, addresses: Sequence[Address], port: int) -> Stream:
        """Connect to the first address that answers."""
        for address in addresses[:-1]:
            try:
                async with asyncio.timeout(self.bounds.connect / len(addresses)):
                    return Stream(*await asyncio.open_connection(str(address), port))
            except OSError:  # a `TimeoutError` too
                continue
        return Stream(*await asyncio.open_connection(str(addresses[-1]), port))

    def _refusal(self, verdict: DomainCheck) -> RefusedRequestError:
        if verdict.reason not in self._noted and len(self._noted) < _MOST_NOTES:
            self._noted.add(verdict.reason)
            self._on_refused(verdict.reason)
        return RefusedRequestError(403, verdict.reason, _CHANGE)


class _Conversation:
    """The requests and responses on one client's connection."""

    def __init__(self, client: Stream, proxy: Proxy) -> None:
        self._client = client
        self._proxy = proxy
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=proxy.bounds.head)

    async def run(self, *, is_full: bool) -> None:
        goes_on = True
        while goes_on:
            try:
                request = await self._request()
                if request is None:
                    return
                if is_full:
                    raise RefusedRequestError(503, "Too many connections of this sandbox are open")
                target = target_of(request)
                if request.method == b"CONNECT":
                    await self._tunnel(target)
                    return
                await self._forward(request, target)
            except RefusedRequestError as refusal:
                await self._answer(refusal)
            except h11.RemoteProtocolError as error:
                if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
                    raise
                await self._answer(RefusedRequestError(error.error_status_hint, "The request is malformed"))
            goes_on = self._http.our_state is h11.DONE and self._http.their_state is h11.DONE
            if goes_on:
                self._http.start_next_cycle()
        await self._drain()

    async def _request(self) -> h11.Request | None:
        async with asyncio.timeout(self._proxy.bounds.patience):
            event = await self._next()
        return event if isinstance(event, h11.Request) else None

    async def _next(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Return the client's next event."""
        while True:
            event = self._http.next_event()
            if event is not h11.NEED_DATA:
                return event
            if self._http.they_are_waiting_for_100_continue:
                await self._send(h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue"))
            self._http.receive_data(await self._client.reader.read(BLOCK))

    async def _send(self, *events: h11.Event) -> None:
        for event in events:
            self._client.writer.write(self._http.send(event) or b"")
        await self._client.writer.drain()

    async def _answer(self, refusal: RefusedRequestError) -> None:
        text = f"{refusal.reason}.\n{refusal.advice}".rstrip() + "\n"
        body = text.encode()
        headers = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
        headers += [("X-Content-Type-Options", "nosniff"), ("Connection", "close")]
        response = h11.Response(status_code=refusal.status, headers=headers, reason=refusal.reason.encode())
        await self._send(response, h11.Data(data=body), h11.EndOfMessage())

    async def _drain(self) -> None:
        """Read what a client still sends, so that it gets to read the answer."""
        writer = self._client.writer
        if writer.can_write_eof():
            writer.write_eof()
        async with asyncio.timeout(self._proxy.bounds.patience):
            left = _MOST_DRAINED
            while left > 0 and (block := await self._client.reader.read(BLOCK)):
                left -= len(block)

    async def _tunnel(self, target: Target) -> None:
        server = await self._proxy.connect(target, tunnel=True)
        try:
            await self._send(h11.Response(status_code=200, headers=[], reason=b"Connection established"))
            server.writer.write(self._http.trailing_data[0])
            async with asyncio.timeout(self._proxy.bounds.idle) as limit:
                await join(self._client, server, heard=lambda: self._heard(limit))
        finally:
            await close(server)

    async def _forward(self, request: h11.Request, target: Target) -> None:
        server = await self._proxy.connect(target, tunnel=False)
        http = h11.Connection(h11.CLIENT, max_incomplete_event_size=self._proxy.bounds.head)
        try:
            server.writer.write(http.send(onward(request, target)) or b"")
            async with asyncio.timeout(self._proxy.bounds.idle) as limit:
                await _first(
                    self._pass_response(http, server, target, limit), beside=self._pass_body(http, server, limit)
                )
        finally:
            await close(server)

    async def _pass_body(self, http: h11.Connection, server: Stream, limit: asyncio.Timeout) -> None:
        while isinstance(event := await self._next(), h11.Data | h11.EndOfMessage):
            self._heard(limit)
            try:
                server.writer.write(http.send(event) or b"")
                await server.writer.drain()
            except OSError:
                return  # it answers before it has read everything, and says so
            if isinstance(event, h11.EndOfMessage):
                return

    async def _pass_response(
        self, http: h11.Connection, server: Stream, target: Target, limit: asyncio.Timeout
    ) -> None:
        try:
            while not isinstance(event := http.next_event(), h11.EndOfMessage):
                if event is h11.NEED_DATA:
                    http.receive_data(await server.reader.read(BLOCK))
                    self._heard(limit)
                elif isinstance(event, h11.Response):
                    await self._send(back(event))
                elif isinstance(event, h11.Data):
                    await self._send(event)
                elif not isinstance(event, h11.InformationalResponse):
                    raise RefusedRequestError(502, f"{target.host} did not answer")
            await self._send(h11.EndOfMessage())
        except (h11.RemoteProtocolError, ConnectionError) as error:
            if self._http.our_state is not h11.SEND_RESPONSE:
                raise
            raise RefusedRequestError(502, f"{target.host} did not answer with valid HTTP") from error

    def _heard(self, limit: asyncio.Timeout) -> None:
        if not limit.expired():
            limit.reschedule(asyncio.get_running_loop().time() + self._proxy.bounds.idle)


async def _first(main: Coroutine[None, None, None], *, beside: Coroutine[None, None, None]) -> None:
    """Run two coroutines until the main one has ended, or one has failed."""
    tasks = [asyncio.ensure_future(main), asyncio.ensure_future(beside)]
    try:
        while not tasks[0].done():
            await asyncio.wait([task for task in tasks if not task.done()], return_when=asyncio.FIRST_COMPLETED)
            if tasks[1].done():
                tasks[1].result()
        tasks[0].result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
