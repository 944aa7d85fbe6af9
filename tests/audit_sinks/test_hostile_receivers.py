"""Receivers that are broken or hostile: none has what it did not read, keeps a thread, or fills the memory."""

from __future__ import annotations

import asyncio
import gzip
import os
import select
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.client import parse_headers
from pathlib import Path
from typing import Final

import pytest

from jupyter_agentbox.audit_sinks.sinks import sink_of
from tests.certificates import make_certificate

TIMEOUT: Final = 60
RECORDS: Final = [b"1" * 500] * 3


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no receiver pass for one that keeps its connection open because this machine is slow."""
    monkeypatch.setattr("jupyter_agentbox.audit_sinks.syslog._FAREWELL", TIMEOUT)


@contextmanager
def receiver(talk: Callable[[socket.socket], None]) -> Iterator[int]:
    """Do this in a thread with the first connection; yield the port."""
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as threads:
        server.settimeout(TIMEOUT)

        def serve() -> None:
            with server.accept()[0] as connection:
                connection.settimeout(TIMEOUT)
                with suppress(OSError):
                    talk(connection)

        serving = threads.submit(serve)
        yield server.getsockname()[1]
        serving.result(TIMEOUT)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with a certificate for `localhost`, and its key."""
    made = make_certificate()
    path = tmp_path_factory.mktemp("tls") / "certificate.pem"
    path.write_bytes(made.certificate + made.key)
    return path


@pytest.fixture
def tls(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """Return what a receiver needs whom senders trust."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def reset(connection: socket.socket) -> None:
    """Break off a connection."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


async def test_a_receiver_over_tls_that_reads_everything_and_says_goodbye_has_the_records(tls: ssl.SSLContext) -> None:
    received = bytearray()

    def read(connection: socket.socket) -> None:
        with tls.wrap_socket(connection, server_side=True) as secure:
            while piece := secure.recv(4096):
                received.extend(piece)
            secure.unwrap()

    with receiver(read) as port:
        await sink_of(f"syslog+tls://localhost:{port}", names={}).send(RECORDS)
    assert received.count(b" audit - 111") == 3


async def test_a_receiver_that_wants_a_certificate_of_the_sender_has_no_records(
    tls: ssl.SSLContext, certificate: Path
) -> None:
    tls.verify_mode = ssl.CERT_REQUIRED
    tls.load_verify_locations(certificate)

    def refuse(connection: socket.socket) -> None:
        secure = tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        with secure:
            with suppress(ssl.SSLError):  # in TLS 1.3, the sender hears of it only after it has sent the records
                secure.do_handshake()
            while socket.socket.recv(secure, 4096):
                pass

    with receiver(refuse) as port, pytest.raises(OSError):
        await sink_of(f"syslog+tls://localhost:{port}", names={}).send(RECORDS)


async def test_a_receiver_over_tls_that_says_goodbye_before_it_has_read_anything_has_no_records(
    tls: ssl.SSLContext,
) -> None:
    def leave(connection: socket.socket) -> None:
        with tls.wrap_socket(connection, server_side=True) as secure:
            secure.setblocking(False)
            with suppress(ssl.SSLError):
                secure.unwrap()
            select.select([secure], [], [], TIMEOUT)  # something has come, and it does not read it
            reset(secure)

    with receiver(leave) as port, pytest.raises(OSError):
        await sink_of(f"syslog+tls://localhost:{port}", names={}).send(RECORDS)


async def test_a_receiver_with_another_name_gets_nothing(tls: ssl.SSLContext) -> None:
    said = bytearray()

    def listen(connection: socket.socket) -> None:
        with tls.wrap_socket(connection, server_side=True) as secure:
            said.extend(secure.recv(4096))

    with receiver(listen) as port, pytest.raises(OSError, match="mismatch"):
        await sink_of(f"syslog+tls://127.0.0.1:{port}", names={}).send(RECORDS)
    assert not said


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"?" * 1_000_000])
async def test_what_answers_is_no_receiver_of_syslog(answer: bytes) -> None:
    def talk(connection: socket.socket) -> None:
        connection.recv(10)
        connection.sendall(answer)
        while connection.recv(65_536):
            pass

    with receiver(talk) as port, pytest.raises(OSError):
        await sink_of(f"syslog+tcp://127.0.0.1:{port}", names={}).send(RECORDS)


async def test_a_receiver_that_reads_slowly_keeps_no_thread_longer_than_one_that_reads_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("jupyter_agentbox.audit_sinks.syslog._PATIENCE", 0.5)
    is_over = threading.Event()

    def read_slowly(connection: socket.socket) -> None:
        while not is_over.wait(0.1):
            connection.recv(65_536)

    with receiver(read_slowly) as port:
        try:
            async with asyncio.timeout(20):
                with pytest.raises(TimeoutError):
                    await sink_of(f"syslog+tcp://127.0.0.1:{port}", names={}).send([b"1" * 60_000] * 1000)
        finally:
            is_over.set()


@pytest.mark.parametrize("encoding", [b"", b"Content-Encoding: gzip\r\n"])
async def test_a_long_response_is_not_read_and_a_compressed_one_not_decompressed(encoding: bytes) -> None:
    zeros = bytes(50_000_000)
    body = gzip.compress(zeros) if encoding else zeros
    sent = []

    def answer(connection: socket.socket) -> None:
        with connection.makefile("rb") as request:  # all of it: what is left unread would break off the response
            request.readline()
            request.read(int(parse_headers(request)["Content-Length"]))
        connection.sendall(b"HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\n\r\n" % (encoding, len(body)))
        connection.sendall(body)
        sent.append(True)

    with receiver(answer) as port:
        sending = sink_of(f"otlp+http://127.0.0.1:{port}/", names={}).send(RECORDS)
        if encoding:
            await sending
        else:
            with pytest.raises(OSError):
                await sending
    assert bool(sent) is bool(encoding)


async def test_no_error_has_the_token_whatever_is_in_its_file(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("hunter2hunter2\nhunter3hunter3\n")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/"
        with pytest.raises(OSError, match=str(token)) as refused:
            await sink_of(address, names={}, token_file=str(token)).send(RECORDS)
    assert "hunter" not in str(refused.value)


async def test_a_pipe_that_nobody_reads_keeps_no_thread(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    async with asyncio.timeout(TIMEOUT):
        with pytest.raises(OSError):
            await sink_of(f"file://{pipe}", names={}).send([b"1"])


async def test_a_pipe_that_takes_a_part_keeps_no_thread_and_the_next_record_stands_on_a_line_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupyter_agentbox.audit_sinks.files._PATIENCE", 0.1)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        sink = sink_of(f"file://{pipe}", names={})
        with pytest.raises(TimeoutError):
            await sink.send([b"1" * 1_000_000])
        first = os.read(reader, 10_000_000)
        await sink.send([b"2"])
        assert (set(first), os.read(reader, 100)) == ({ord("1")}, b"\n2\n")
    finally:
        os.close(reader)


async def test_standard_output_that_takes_a_part_gets_the_next_record_on_a_line_of_its_own(
    capfd: pytest.CaptureFixture[str], fill_disk: Callable[[], None]
) -> None:
    sink = sink_of("stdout:", names={})
    fill_disk()
    with pytest.raises(OSError, match="no space"):
        await sink.send([b"first"])
    await sink.send([b"first", b"second"])
    assert capfd.readouterr().out == "fir\nfirst\nsecond\n"


async def test_a_file_has_records_only_once_they_are_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError("no space left")  # as a network's file system says it

    sink = sink_of(f"file://{tmp_path}/log", names={})
    with monkeypatch.context() as patched:
        patched.setattr("jupyter_agentbox.audit_sinks.files.os.fsync", full)
        with pytest.raises(OSError, match="no space"):
            await sink.send([b"1"])
    await sink.send([b"1"])
    assert (tmp_path / "log").read_bytes() == b"1\n1\n"
