"""The proxy between real clients and real servers on this machine; only the table of names is ours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_address

import pytest

from jupyter_agentbox.core.egress_domains import DomainRules
from jupyter_agentbox.sandbox.egress.proxy import Bounds, Proxy
from jupyter_agentbox.sandbox.egress.streams import Stream, close

TIMEOUT = 60
Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Names:
    """A table of names that keeps what was asked. Implements `Resolver`."""

    table: dict[str, list[str]]
    asked: list[str] = field(default_factory=list)

    async def __call__(self, host: str, port: int) -> Sequence[str]:  # noqa: ARG002  # as the real one
        self.asked.append(host)
        if host not in self.table:
            raise OSError("no such name")
        return self.table[host]


@dataclass
class Stand:
    """A proxy, what it was asked for, and what came to the server behind it."""

    proxy: Proxy
    port: int
    names: Names
    notes: list[str]
    heard: list[bytes]
    place: int

    async def open(self) -> Stream:
        return Stream(*await asyncio.open_connection("127.0.0.1", self.place))

    async def say(self, text: str) -> bytes:
        """Say all at once, and return all that is answered. ``PORT`` is the server's port."""
        client = await self.open()
        client.writer.write(text.replace("PORT", str(self.port)).replace("\n", "\r\n").encode())
        client.writer.write_eof()
        async with asyncio.timeout(TIMEOUT):
            said = await client.reader.read()
        await close(client)
        return said


@asynccontextmanager
async def stand(
    *rules: str,
    private: Sequence[str] = ("web.example:PORT",),
    table: dict[str, list[str]] | None = None,
    own: Sequence[str] = (),
    bounds: Bounds | None = None,
    answer: Answer | None = None,
) -> AsyncIterator[Stand]:
    """Serve on this machine, under a name that the proxy knows."""
    heard: list[bytes] = []
    notes: list[str] = []
    tasks: set[asyncio.Task[None]] = set()
    names = Names({"web.example": ["127.0.0.1"]} if table is None else table)

    def tracked(serve: Answer) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        return lambda reader, writer: tasks.add(asyncio.ensure_future(serve(reader, writer)))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await (answer or keep)(reader, writer)
        await close(Stream(reader, writer))

    async def keep(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(head := await reader.readuntil(b"\r\n\r\n"))
        lines = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
        if length := int(lines.get(b"content-length", 0)):
            heard.append(await reader.readexactly(length))
        elif b"transfer-encoding" in lines:
            heard.append(await reader.readuntil(b"\r\n0\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Mark: yes\r\n\r\nhello")
        await writer.drain()

    server = await asyncio.start_server(tracked(serve), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    spelled = [[one.replace("PORT", str(port)) for one in kind] for kind in (rules, private)]
    proxy = Proxy(
        DomainRules.of(*spelled),
        resolve=names,
        own=lambda: {ip_address(one) for one in own},
        on_refused=notes.append,
        bounds=bounds or Bounds(),
    )
    front = await asyncio.start_server(tracked(proxy.serve), "127.0.0.1", 0)
    try:
        yield Stand(proxy, port, names, notes, heard, front.sockets[0].getsockname()[1])
    finally:
        front.close()
        server.close()
        async with asyncio.timeout(TIMEOUT):
            while tasks:  # a client has gone, so both its servers end
                await tasks.pop()


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


GET = "GET http://web.example:PORT/a?b=c HTTP/1.1\nHost: web.example:PORT\n"


async def test_plain_request_is_written_anew_and_its_answer_comes_back() -> None:
    async with stand() as one:
        answer = await one.say(
            GET + "Accept: text/plain\nProxy-Authorization: Basic c2VjcmV0\nConnection: x-hop\nX-Hop: 1\n\n"
        )

    assert one.heard == [
        f"GET /a?b=c HTTP/1.1\r\nHost: web.example:{one.port}\r\naccept: text/plain\r\n"
        "Connection: close\r\n\r\n".encode()
    ]
    assert status(answer) == 200
    assert b"x-mark: yes" in answer.lower()
    assert answer.endswith(b"\r\n\r\nhello")


@pytest.mark.parametrize(
    ("framing", "body"), [("Content-Length: 7", "payload"), ("Transfer-Encoding: chunked", "7\npayload\n0\n\n")]
)
async def test_body_goes_on(framing: str, body: str) -> None:
    async with stand() as one:
        answer = await one.say(GET.replace("GET", "POST") + f"{framing}\n\n{body}")

    assert b"payload" in one.heard[1]
    assert status(answer) == 200


async def test_client_that_waits_before_it_sends_a_body_is_told_to_go_on() -> None:
    async with stand() as one:
        client = await one.open()
        head = GET.replace("GET", "POST") + "Content-Length: 7\nExpect: 100-continue\n\n"
        client.writer.write(head.replace("PORT", str(one.port)).replace("\n", "\r\n").encode())
        async with asyncio.timeout(TIMEOUT):
            assert (await client.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
            client.writer.write(b"payload")
            client.writer.write_eof()
            assert (await client.reader.read()).endswith(b"hello")
        await close(client)

    assert one.heard[1] == b"payload"


async def test_every_request_of_a_connection_is_checked() -> None:
    async with stand() as one:
        answer = await one.say(
            GET + "\n" + GET + "\nGET http://other.example/ HTTP/1.1\nHost: other.example\n\n" + GET + "\n"
        )

    assert len(one.heard) == 2
    assert answer.count(b"hello") == 2
    assert answer.count(b"HTTP/1.1 403 other.example is not an allowed domain") == 1


async def test_tunnel_passes_bytes_on_and_either_side_may_end_first() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"first:")
        writer.write((await reader.read())[::-1])  # until the client has ended
        await writer.drain()

    async with stand(answer=echo) as one:
        answer = await one.say("CONNECT web.example:PORT HTTP/1.1\nHost: web.example:PORT\n\nabc")

    head, _, rest = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert rest == b"first:cba"


async def test_much_passes_through_a_tunnel_whole() -> None:
    block = bytes(range(256)) * 4096

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while part := await reader.read(1 << 16):
            writer.write(part)
            await writer.drain()

    async with stand(answer=echo) as one:
        client = await one.open()
        client.writer.write(f"CONNECT web.example:{one.port} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        async with asyncio.timeout(TIMEOUT):
            await client.reader.readuntil(b"\r\n\r\n")

            async def write() -> None:
                for _ in range(8):
                    client.writer.write(block)
                    await client.writer.drain()
                client.writer.write_eof()

            _, got = await asyncio.gather(write(), client.reader.read())
        await close(client)

    assert got == block * 8


@pytest.mark.parametrize(
    "request_",
    [
        "CONNECT other.example:443 HTTP/1.1\nHost: other.example:443\n\n",
        "CONNECT other.example:443 HTTP/1.1\nHost: web.example:PORT\n\n",
        "GET http://other.example/ HTTP/1.1\nHost: other.example\n\n",
        "POST http://other.example/ HTTP/1.1\nHost: other.example\nContent-Length: 4\n\nbody",
    ],
)
async def test_other_domain_is_refused_by_name_and_never_looked_up(request_: str) -> None:
    async with stand() as one:
        answer = await one.say(request_)
        await one.say(request_)

    assert answer.startswith(b"HTTP/1.1 403 other.example is not an allowed domain")
    assert b"`allowed_domains`" in answer
    assert one.names.asked == []
    assert one.heard == []
    assert len(one.notes) == 1
    assert "other.example" in one.notes[0]


@pytest.mark.parametrize(
    "request_",
    [
        "CONNECT web.example:22 HTTP/1.1\nHost: web.example:22\n\n",
        "CONNECT web.example HTTP/1.1\nHost: web.example\n\n",
        "GET http://web.example/ HTTP/1.1\nHost: web.example\n\n",
    ],
)
async def test_other_port_is_refused(request_: str) -> None:
    async with stand() as one:
        assert status(await one.say(request_)) == 403

    assert one.names.asked == []


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "127.0.0.1.", "[::1]", "[::ffff:127.0.0.1]"),
        *("[::ffff:7f00:1]", "[::1%25lo]", "web.example@127.0.0.1", "web.example%00.evil.example", "web.example\\x"),
        *("xn--web.example", "web.example.evil.example", "localhost", "0", "[64:ff9b::7f00:1]"),
    ],
)
@pytest.mark.parametrize("method", ["CONNECT", "GET"])
async def test_no_other_spelling_of_a_host_leads_anywhere(host: str, method: str) -> None:
    target = f"{host}:PORT" if method == "CONNECT" else f"http://{host}:PORT/"
    async with stand() as one:
        answer = await one.say(f"{method} {target} HTTP/1.1\nHost: {host}:PORT\n\n")

    assert status(answer) in (400, 403)
    assert one.names.asked == []
    assert one.heard == []


@pytest.mark.parametrize(
    "request_",
    [
        GET.replace("Host: web.example:PORT", "Host: other.example"),
        GET.replace("Host: web.example:PORT", "Host: web.example"),
        GET.replace("Host: web.example:PORT", "Host: web.example:PORT, other.example"),
        GET + "Host: other.example\n",
        GET + "Content-Length: 5\nTransfer-Encoding: chunked\n",
        GET + "Content-Length: 5\nContent-Length: 6\n",
        GET + "Content-Length: +5\n",
        GET + "Transfer-Encoding: xchunked\n",
        GET + "Transfer-Encoding : chunked\n",
        GET.replace("HTTP/1.1", "HTTP/1.0") + "Transfer-Encoding: chunked\n",
        GET.replace("GET http://web.example:PORT/", "GET /"),
        GET.replace("GET http:", "GET https:"),
        GET.replace("GET http:", "GET ftp:"),
        GET.replace("/a?b=c", "/a#b"),
        "CONNECT web.example:PORT HTTP/1.1\nHost: web.example:PORT\nContent-Length: 5\n",
        "CONNECT http://web.example:PORT/ HTTP/1.1\nHost: web.example:PORT\n",
        "GET http://:PORT/ HTTP/1.1\nHost: :PORT\n",
        "nonsense\n",
    ],
)
async def test_request_that_says_two_things_goes_nowhere(request_: str) -> None:
    async with stand() as one:
        answer = await one.say(
            request_ + "\n0\n\nGET http://web.example:PORT/second HTTP/1.1\nHost: web.example:PORT\n\n"
        )

    assert status(answer) in (400, 501)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert one.heard == []


async def test_connection_header_cannot_take_the_framing_away() -> None:
    async with stand() as one:
        await one.say(GET.replace("GET", "POST") + "Connection: content-length, host\nContent-Length: 7\n\npayload")

    assert f"host: web.example:{one.port}".encode() in one.heard[0].lower()
    assert b"content-length: 7" in one.heard[0].lower()


@pytest.mark.parametrize(
    ("leads_to", "said"),
    [
        (["127.0.0.1"], "this machine"),
        (["::1"], "this machine"),
        (["::ffff:127.0.0.1"], "this machine"),
        (["10.9.8.7"], "this machine"),
        (["10.0.0.1"], "a private address"),
        (["169.254.169.254"], "is never allowed"),
        (["fe80::1%eth0"], "is never allowed"),
        (["224.0.0.1", "127.0.0.1"], "is never allowed"),
    ],
)
async def test_allowed_name_that_leads_inside_is_refused(leads_to: list[str], said: str) -> None:
    async with stand("web.example:PORT", private=(), table={"web.example": leads_to}, own=["10.9.8.7"]) as one:
        answer = await one.say(GET + "\n")

    assert answer.startswith(b"HTTP/1.1 403 web.example leads to ")
    assert said.encode() in answer
    assert one.heard == []


async def test_address_that_was_checked_is_the_one_that_is_used() -> None:
    table = {"web.example": ["169.254.169.254", "127.0.0.1"]}
    async with stand(table=table) as one:
        assert status(await one.say(GET + "\n")) == 200

    assert one.names.asked == ["web.example"]


async def test_address_can_be_allowed_itself() -> None:
    async with stand("127.0.0.1:PORT", private=()) as one:
        answer = await one.say(GET.replace("web.example", "127.0.0.1") + "\n")

    assert status(answer) == 200
    assert one.names.asked == []


@pytest.mark.parametrize("table", [{}, {"web.example": []}])
async def test_name_that_leads_nowhere_is_named(table: dict[str, list[str]]) -> None:
    async with stand(table=table) as one:
        assert (await one.say(GET + "\n")).startswith(b"HTTP/1.1 502 web.example cannot be reached")


@pytest.mark.parametrize("said", [b"", b"SSH-2.0-OpenSSH\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Le"])
async def test_server_that_speaks_no_http_is_named(said: bytes) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        await writer.drain()

    async with stand(answer=answer) as one:
        assert (await one.say(GET + "\n")).startswith(b"HTTP/1.1 502 web.example did not answer")


async def test_answer_that_is_cut_off_is_not_passed_off_as_whole() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        await writer.drain()

    async with stand(answer=answer) as one:
        with suppress(ConnectionResetError):  # before anything was read: as good
            assert not (await one.say(GET + "\n")).endswith(b"0\r\n\r\n")


async def test_answer_before_the_body_was_read_reaches_the_client() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too large\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()

    async with stand(answer=answer) as one:
        client = await one.open()
        head = GET.replace("GET", "POST") + "Content-Length: 100000\n\n"
        client.writer.write(head.replace("PORT", str(one.port)).replace("\n", "\r\n").encode())
        async with asyncio.timeout(TIMEOUT):
            assert (await client.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 413 ")
        await close(client)


async def test_body_that_breaks_off_in_its_framing_ends_both_sides() -> None:
    ended = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        ended.set()

    async with stand(answer=answer) as one:
        said = await one.say(GET.replace("GET", "POST") + "Transfer-Encoding: chunked\n\nnot a size\n")
        async with asyncio.timeout(TIMEOUT):
            await ended.wait()

    assert status(said) == 400


async def test_head_that_does_not_end_is_refused() -> None:
    async with stand(bounds=Bounds(head=2000)) as one:
        assert status(await one.say(GET + "X: " + "a" * 70000 + "\n\n")) == 431


async def test_client_that_says_nothing_is_let_go() -> None:
    async with stand(bounds=Bounds(patience=0.1)) as one:
        client = await one.open()
        client.writer.write(b"GET http://web.exa")
        async with asyncio.timeout(TIMEOUT):
            with suppress(ConnectionResetError):
                assert await client.reader.read() == b""
        await close(client)


async def test_tunnel_in_which_nothing_is_said_ends() -> None:
    ended = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.read()
        finally:
            ended.set()

    async with stand(answer=answer, bounds=Bounds(idle=0.1)) as one:
        client = await one.open()
        client.writer.write(f"CONNECT web.example:{one.port} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        async with asyncio.timeout(TIMEOUT):
            await ended.wait()
        await close(client)


async def test_connections_beyond_the_bound_are_told_so() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with stand(answer=answer, bounds=Bounds(connections=1)) as one:
        first = await one.open()
        first.writer.write(f"CONNECT web.example:{one.port} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        async with asyncio.timeout(TIMEOUT):
            await first.reader.readuntil(b"\r\n\r\n")
        assert status(await one.say(GET + "\n")) == 503
        await close(first)


async def test_log_cannot_be_filled() -> None:
    async with stand() as one:
        for number in range(250):
            await one.say(f"CONNECT n{number}.example:443 HTTP/1.1\nHost: x\n\n")

    assert len(one.notes) == 200


async def test_what_is_noted_has_no_credentials() -> None:
    async with stand() as one:
        await one.say(
            "GET http://other.example/path?token=secret HTTP/1.1\nHost: other.example\nAuthorization: Bearer secret\n\n"
        )
        await one.say("GET http://user:secret@other.example/ HTTP/1.1\nHost: other.example\n\n")

    assert len(one.notes) == 1
    assert "secret" not in one.notes[0]
