"""The line to a gateway that does as a test tells it: connections that break, answers that do not come."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from jupyter_server.gateway.gateway_client import GatewayClient
from jupyter_server.gateway.managers import GatewayKernelManager
from jupyter_server.services.kernels.connection.base import deserialize_msg_from_ws_v1
from tornado import web, websocket
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port

from jupyter_agentbox.bridge import gateway_channel
from jupyter_agentbox.bridge.channel import Received
from jupyter_agentbox.bridge.gateway_channel import GatewayKernelChannel
from jupyter_agentbox.bridge.websocket_messages import V1
from jupyter_agentbox.core.isolation import Isolation

from .test_websocket_messages import OURS, from_gateway

TIMEOUT = 60


class Gateway:
    """What the tests see of a gateway, and tell it."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.has_kernel = True
        self.refuses = 0
        self.tokens: list[str | None] = []
        self.subprotocols: tuple[str, ...] = (V1,)
        self.sockets: list[Channels] = []
        self.got: list[Any] = []
        self.drops_after: int | None = None
        self.answers_pings = True
        self._changed = asyncio.Event()

    def note(self) -> None:
        """Something happened."""
        self._changed.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until this holds."""
        async with asyncio.timeout(TIMEOUT):
            while not holds():
                self._changed.clear()
                await self._changed.wait()


class Channels(websocket.WebSocketHandler):
    """A kernel's websocket."""

    def prepare(self) -> None:
        """Refuse, if that was asked for."""
        gateway: Gateway = self.settings["gateway"]
        gateway.tokens.append(self.request.headers.get("Authorization"))
        if gateway.refuses:
            gateway.refuses -= 1
            gateway.note()
            raise web.HTTPError(503)

    def select_subprotocol(self, subprotocols: list[str]) -> str | None:
        """Speak what the gateway speaks."""
        return next((one for one in subprotocols if one in self.settings["gateway"].subprotocols), None)

    def open(self, *_: str, **__: str) -> None:
        """Be there."""
        if not self.settings["gateway"].answers_pings:
            assert self.ws_connection is not None
            self.ws_connection._send_pong = lambda _: None
        self.settings["gateway"].sockets.append(self)
        self.settings["gateway"].note()

    def on_message(self, message: str | bytes) -> None:
        """Take a message; break the connection then, if that was asked for."""
        gateway: Gateway = self.settings["gateway"]
        if isinstance(message, bytes):
            channel, parts = deserialize_msg_from_ws_v1(message)
            gateway.got.append((channel, json.loads(parts[3])))
        else:
            told = json.loads(message)
            gateway.got.append((told["channel"], told["content"]))
        if gateway.drops_after is not None and len(gateway.got) >= gateway.drops_after:
            gateway.drops_after = None
            assert self.ws_connection is not None
            self.ws_connection._abort()
        gateway.note()

    def raw(self, data: bytes) -> None:
        """Send bytes as they are."""
        assert self.ws_connection is not None
        self.ws_connection.stream.write(data)


class Kernel(web.RequestHandler):
    """A kernel's model."""

    def get(self, *_: str) -> None:
        """Say whether it is there."""
        if not self.settings["gateway"].has_kernel:
            raise web.HTTPError(404)
        self.finish({"id": "k1"})


@pytest.fixture
def gateway(jp_asyncio_loop: asyncio.AbstractEventLoop) -> Iterator[Gateway]:
    """A gateway, and Jupyter's client for it."""
    socket, port = bind_unused_port()

    async def start() -> tuple[Gateway, HTTPServer]:
        gateway = Gateway(port)
        routes = [(r"/api/kernels/([^/]+)/channels", Channels), (r"/api/kernels/([^/]+)", Kernel)]
        server = HTTPServer(web.Application(routes, gateway=gateway))
        server.add_socket(socket)
        return gateway, server

    gateway, server = jp_asyncio_loop.run_until_complete(start())
    GatewayClient.clear_instance()
    GatewayClient.instance(
        url=gateway.url,
        auth_token="t1",
        gateway_retry_interval=0.01,
        gateway_retry_interval_max=0.02,
        gateway_retry_max=3,
    )
    yield gateway
    GatewayClient.clear_instance()
    server.stop()
    jp_asyncio_loop.run_until_complete(server.close_all_connections())


class Line:
    """A channel to the kernel of the gateway, and what it told."""

    def __init__(self, gateway: Gateway) -> None:
        manager = GatewayKernelManager()
        manager.kernel_id, manager.kernel_url = "k1", f"{gateway.url}/api/kernels/k1"
        self.heard: list[Received] = []
        self.restarts = 0
        self.ends: list[bool] = []
        self._gateway = gateway
        self.channel = GatewayKernelChannel(
            manager=manager, receive=self._receive, on_restart=self._restarted, on_end=self._ended
        )

    def _receive(self, received: Received) -> None:
        self.heard.append(received)
        self._gateway.note()

    def _restarted(self) -> None:
        self.restarts += 1
        self._gateway.note()

    def _ended(self, is_gone: bool) -> None:
        self.ends.append(is_gone)
        self._gateway.note()


@asynccontextmanager
async def connected(gateway: Gateway) -> AsyncIterator[tuple[Line, Channels]]:
    """Open a line and wait until it is there."""
    line = Line(gateway)
    try:
        await gateway.until(lambda: bool(gateway.sockets))
        yield line, gateway.sockets[0]
    finally:
        await line.channel.close()


def comm(data: Any) -> bytes:
    return from_gateway("comm_msg", {"data": data, "comm_id": "agentbox-1"})


async def test_both_forms_are_spoken(gateway: Gateway) -> None:
    for is_v1 in (True, False):
        gateway.subprotocols = (V1,) if is_v1 else ()
        gateway.sockets.clear()
        async with connected(gateway) as (line, socket):
            assert (line.channel.isolation, line.channel.is_lossy) == (Isolation.REMOTE, True)
            line.channel.send("agentbox-1", {"type": "reply", "text": "lone \ud800"})
            await gateway.until(lambda: bool(gateway.got))
            assert gateway.got.pop() == (
                *("control", {"comm_id": "agentbox-1", "data": {"type": "reply", "text": "lone \ud800"}}),
            )
            await socket.write_message(from_gateway("comm_msg", OURS, is_v1=is_v1), binary=is_v1)
            await gateway.until(lambda: bool(line.heard))
            assert [(one.comm_id, one.data) for one in line.heard] == [("agentbox-1", {"type": "hello"})]


def frame(opcode: int, data: bytes, *, is_final: bool = True, size: int | None = None) -> bytes:
    """A frame as a server sends it, which may lie about its size."""
    return bytes([(0x80 if is_final else 0) | opcode, 127]) + (len(data) if size is None else size).to_bytes(8) + data


async def test_outputs_are_dropped_while_they_arrive_and_frames_are_put_together(gateway: Gateway) -> None:
    async with connected(gateway) as (line, socket):
        tracemalloc.start()
        try:
            head = from_gateway("stream", {"name": "stdout", "text": "x" * 10_000})
            socket.raw(frame(2, head, size=len(head) + 100 * 1_000_000))
            for _ in range(100):
                socket.raw(b"x" * 1_000_000)
                assert socket.ws_connection is not None
                await socket.ws_connection.stream.write(b"")
            whole = comm("in parts")
            socket.raw(frame(2, whole[:5_000], is_final=False) + frame(9, b"ping"))
            socket.raw(frame(0, whole[5_000:]))
            await gateway.until(lambda: bool(line.heard))
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert [one.data for one in line.heard] == ["in parts"]
        assert most < 20_000_000


@pytest.mark.parametrize(
    "attack",
    [
        frame(2, b""),
        frame(2, b"\xff" * 5_000),
        frame(1, b"not JSON"),
        frame(2, from_gateway("comm_msg", "agentbox-")),
        frame(2, from_gateway("comm_msg", {"comm_id": ["agentbox-"], "data": 1})),
        frame(2, from_gateway("status", [])),
        frame(2, from_gateway("status", {"execution_state": ["dead"]})),
        frame(2, from_gateway("execute_reply", {"status": "ok"}, channel="shell")),
        frame(2, from_gateway("comm_msg", OURS, header={"msg_type": ["comm_msg"]})),
    ],
)
async def test_what_cannot_be_read_is_dropped_and_the_line_goes_on(gateway: Gateway, attack: bytes) -> None:
    async with connected(gateway) as (line, socket):
        socket.raw(attack)
        await socket.write_message(comm("after"), binary=True)
        await gateway.until(lambda: bool(line.heard))
        assert ([one.data for one in line.heard], line.restarts, line.ends, len(gateway.sockets)) == (
            ["after"],
            0,
            [],
            1,
        )


@pytest.mark.parametrize(
    "attack", [frame(0, b"x"), frame(3, b"x"), b"\xf2\x00", b"\x82\x81", b"\x09\x00", b"\x89\x7e\x01\x00"]
)
async def test_a_gateway_that_breaks_the_protocol_is_left_and_connected_to_again(
    gateway: Gateway, attack: bytes
) -> None:
    async with connected(gateway) as (line, socket):
        socket.raw(attack)
        await gateway.until(lambda: len(gateway.sockets) == 2)
        await gateway.sockets[1].write_message(comm("again"), binary=True)
        await gateway.until(lambda: bool(line.heard))


async def test_what_a_gateway_did_not_take_is_sent_again_but_never_code_to_run(gateway: Gateway) -> None:
    gateway.drops_after, gateway.answers_pings = 3, False
    async with connected(gateway) as (line, _):
        for kind in ("running", "run_code", "reply"):
            line.channel.send("agentbox-1", {"type": kind, "id": "1"})
        await gateway.until(lambda: len(gateway.sockets) == 2 and len(gateway.got) >= 5)
        line.channel.send("agentbox-1", {"type": "reply", "id": "last"})
        await gateway.until(lambda: gateway.got[-1][1]["data"].get("id") == "last")
    assert [content["data"]["type"] for _, content in gateway.got] == [
        *("running", "run_code", "reply"),
        *("running", "reply", "reply"),
    ]


async def test_each_attempt_has_the_token_of_its_time(gateway: Gateway) -> None:
    async with connected(gateway) as (_, socket):
        GatewayClient.instance().auth_token = "t2"
        socket.close()
        await gateway.until(lambda: len(gateway.sockets) == 2)
    assert gateway.tokens == ["token t1", "token t2"]


async def test_a_kernel_that_its_gateway_no_longer_has_is_gone(gateway: Gateway) -> None:
    async with connected(gateway) as (line, socket):
        gateway.has_kernel = False
        socket.close()
        await gateway.until(lambda: line.ends == [True])


async def test_a_gateway_that_refuses_is_asked_so_often_and_the_log_says_what_to_do(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    gateway.refuses = 100
    line = Line(gateway)
    await gateway.until(lambda: line.ends == [False])
    assert len(gateway.tokens) == 4
    assert "it answered HTTP 503" in caplog.text
    assert "Check that the gateway runs" in caplog.text
    assert "t1" not in caplog.text.replace("http1", "")
    await line.channel.close()


async def test_a_token_that_no_header_can_have_is_not_in_the_log(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    GatewayClient.instance().auth_token = "hidden\nwords"
    line = Line(gateway)
    await gateway.until(lambda: line.ends == [False])
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("jupyter_agentbox")]
    assert "cannot be reached at the gateway" in ours[-1]
    assert not any("hidden" in said for said in ours)
    await line.channel.close()


@pytest.mark.parametrize(
    ("state", "restarts", "ends"), [("restarting", 1, []), ("starting", 1, []), ("dead", 0, [True])]
)
async def test_a_kernels_process_is_followed(gateway: Gateway, state: str, restarts: int, ends: list[bool]) -> None:
    async with connected(gateway) as (line, socket):
        for one in ("busy", state):
            await socket.write_message(from_gateway("status", {"execution_state": one}), binary=True)
        await gateway.until(lambda: (line.restarts, line.ends) == (restarts, ends))


async def test_a_kernel_that_claims_one_restart_after_another_is_left_alone(gateway: Gateway) -> None:
    async with connected(gateway) as (line, socket):
        with suppress(websocket.WebSocketClosedError):
            for _ in range(100):
                await socket.write_message(from_gateway("status", {"execution_state": "starting"}), binary=True)
        await gateway.until(lambda: line.ends == [False])
        assert line.restarts == 5


async def test_an_answer_that_no_gateway_takes_is_a_failure_that_says_so(gateway: Gateway) -> None:
    async with connected(gateway) as (line, _):
        line.channel.send("agentbox-1", {"type": "reply", "id": "1", "content": {"text": "x" * 11_000_000}})
        await gateway.until(lambda: bool(gateway.got))
    ((_, content),) = gateway.got
    assert (content["data"]["type"], content["data"]["id"]) == ("failure", "1")
    assert "a gateway takes" in content["data"]["message"]


async def test_what_cannot_be_said_in_json_is_refused_to_who_sends_it(gateway: Gateway) -> None:
    async with connected(gateway) as (line, _):
        with pytest.raises((TypeError, ValueError)):
            line.channel.send("agentbox-1", {"value": object()})  # type: ignore[dict-item]


async def test_a_kernel_that_takes_no_answers_is_not_heard_until_they_are_gone(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_channel, "_FULL", 100_000)
    gateway.refuses = 2
    line = Line(gateway)
    for _ in range(20):
        line.channel.send("agentbox-1", {"type": "reply", "text": "x" * 10_000})
    assert line.channel._most_bytes(comm("too early"), is_v1=True) == 0
    await gateway.until(lambda: len(gateway.got) == 20)
    await gateway.sockets[0].write_message(comm("now"), binary=True)
    await gateway.until(lambda: [one.data for one in line.heard] == ["now"])
    await line.channel.close()


async def test_a_message_that_is_too_large_is_refused_to_the_kernel_side(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupyter_agentbox.bridge.channel.MAX_MESSAGE", 100_000)
    async with connected(gateway) as (_, socket):
        await socket.write_message(comm({"type": "call", "id": "big", "text": "x" * 200_000}), binary=True)
        await gateway.until(lambda: bool(gateway.got))
    ((_, content),) = gateway.got
    assert (content["comm_id"], content["data"]["type"], content["data"]["id"]) == ("agentbox-1", "failure", "big")
