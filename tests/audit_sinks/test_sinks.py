"""What the address of an audit sink names, and what each sink gets."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import SEVERITY_NUMBER_INFO, LogRecord

from jupyter_agentbox.audit_sinks.files import FileSink, StandardOutputSink
from jupyter_agentbox.audit_sinks.http import HttpSink, HubServiceSink, OtlpSink
from jupyter_agentbox.audit_sinks.sinks import sink_of
from jupyter_agentbox.audit_sinks.syslog import SyslogSink
from jupyter_agentbox.core.audit_trail import TrailEnd
from jupyter_agentbox.exceptions import RecordsRejectedError
from tests.collectors import collecting

ADA = {"user": "ada", "server": "gpu"}


def line(**fields: str) -> bytes:
    return TrailEnd().then({"time": "2026-05-01T12:00:00.000012Z", "event": "asked", "user": "ada", **fields})[1]


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("stdout:", StandardOutputSink),
        ("file:///var/log/agentbox/{user}.jsonl", FileSink),
        ("syslog:///dev/log", SyslogSink),
        ("syslog://log.example", SyslogSink),
        ("syslog+tcp://log.example:1601", SyslogSink),
        ("syslog+tls://log.example", SyslogSink),
        ("https://log.example/in?key=secret", HttpSink),
        ("http://log.example/in", HttpSink),
        ("otlp+https://log.example/v1/logs", OtlpSink),
        ("otlp+http://log.example/v1/logs", OtlpSink),
        ("agentbox+https://hub.example/services/agentbox/", HubServiceSink),
    ],
)
def test_an_address_names_a_place_without_its_secrets(address: str, kind: type) -> None:
    sink = sink_of(address, names=ADA)
    assert type(sink) is kind
    assert "secret" not in sink.name


@pytest.mark.parametrize(
    "address",
    ["", "file:", "file://host/path", "syslog:", "ftp://log.example", "otlp://log.example", "https://", "/var/log/a"],
)
def test_what_names_no_place_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="not the address of an audit sink"):
        sink_of(address, names=ADA)


@pytest.mark.parametrize(
    "address",
    [
        "otlp+https//user:hunter2@log.example",
        "ftp://user:hunter2@log.example",
        "https://user:hunt/er2@log.example",
        "https://log.example:hunter2/",
        "syslog+tls://hunter2@log.example",
        "syslog://log.example/?key=hunter2",
        "https://[hunter2/",
        " https://log.example/?key=hunter2",
    ],
)
def test_no_error_has_the_secrets_of_an_address(address: str) -> None:
    with pytest.raises(ValueError, match="not the address of an audit sink") as refused:
        sink_of(address, names={})
    assert "hunt" not in str(refused.value)


@pytest.mark.parametrize(
    "address", ["file:/var/log/a", "file:log", "stdout:a", "file:///a\nb", "file:///a ", "syslog:/a"]
)
def test_an_address_that_would_name_another_place_than_it_seems_to_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="not the address of an audit sink"):
        sink_of(address, names={})


async def test_the_kind_of_an_address_may_be_in_capitals(tmp_path: Path) -> None:
    await sink_of(f"FILE://{tmp_path}/log", names={}).send([b"1"])
    assert (tmp_path / "log").read_bytes() == b"1\n"


@pytest.mark.parametrize(
    ("user", "name"),
    [("j.doe@uni.org", "j.doe@uni.org"), ("../eve", "%2E.%2Feve"), ("..", "%2E."), ("a b", "a%20b")],
)
async def test_a_file_is_in_its_directory_whatever_the_user_is_called(tmp_path: Path, user: str, name: str) -> None:
    sink = sink_of(f"file://{tmp_path}/{{user}}/log", names={"user": user})
    (tmp_path / name).mkdir()
    await sink.send([b"1"])
    assert (tmp_path / name / "log").read_bytes() == b"1\n"


async def test_a_file_is_added_to_and_its_owners(tmp_path: Path) -> None:
    path = tmp_path / "log"
    sink = sink_of(f"file://{path}", names=ADA)
    await sink.send([b"1", b"2"])
    path.rename(tmp_path / "log.1")
    await sink.send([b"3"])
    assert ((tmp_path / "log.1").read_bytes(), path.read_bytes()) == (b"1\n2\n", b"3\n")
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_file_that_cannot_be_written_has_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError):
        await sink_of(f"file://{tmp_path}", names=ADA).send([b"1"])


async def test_a_record_after_half_a_one_stands_on_a_line_of_its_own(
    tmp_path: Path, fill_disk: Callable[[], None]
) -> None:
    sink = FileSink(str(tmp_path / "audit.jsonl"))
    fill_disk()
    with pytest.raises(OSError, match="no space"):
        await sink.send([b"first"])
    await sink.send([b"first"])
    await sink.send([b"second"])
    assert (tmp_path / "audit.jsonl").read_text() == "fir\nfirst\nsecond\n"


@pytest.mark.parametrize(("before", "after"), [(b"", b"2\n"), (b"1\n", b"1\n2\n"), (b'{"a', b'{"a\n2\n')])
async def test_a_record_after_one_that_a_killed_process_wrote_in_part_stands_on_a_line_of_its_own(
    tmp_path: Path, before: bytes, after: bytes
) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(before)
    await sink_of(f"file://{path}", names=ADA).send([b"2"])
    assert path.read_bytes() == after


async def test_a_file_that_cannot_be_read_may_end_with_a_part_of_a_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b"1\n")

    open_it = os.open

    def refuse(path: Path, flags: int, *mode: int) -> int:
        if not flags & os.O_WRONLY:
            raise PermissionError
        return open_it(path, flags, *mode)

    with monkeypatch.context() as patched:
        patched.setattr("jupyter_agentbox.audit_sinks.files.os.open", refuse)
        await sink_of(f"file://{path}", names=ADA).send([b"2"])
    assert path.read_bytes() == b"1\n\n2\n"


async def test_standard_output_gets_lines(capfd: pytest.CaptureFixture[str]) -> None:
    await sink_of("stdout:", names=ADA).send([b"1", b"2"])
    assert capfd.readouterr().out == "1\n2\n"


async def test_syslog_of_this_machine_gets_a_message_each(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "log"))
        await sink_of(f"syslog://{tmp_path}/log", names=ADA).send([b"1", b"2"])
        first, second = receiver.recv(4096), receiver.recv(4096)
    head = first.split(b" ", 7)
    assert (head[0], head[3], head[4], head[5], head[6]) == (
        b"<110>1",
        b"jupyter-agentbox",
        str(os.getpid()).encode(),
        b"audit",
        b"-",
    )
    assert (head[7], second[-1:]) == (b"1", b"2")


async def test_syslog_by_udp_gets_a_datagram_each() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        port = receiver.getsockname()[1]
        await sink_of(f"syslog://127.0.0.1:{port}", names=ADA).send([line()])
        assert receiver.recv(65_507).endswith(line())


@contextmanager
def stream_receiver() -> Iterator[tuple[int, list[bytes], threading.Thread]]:
    """Take one connection, and all that comes by it."""
    received: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)

        def receive() -> None:
            connection, _ = server.accept()
            with connection, connection.makefile("rb") as file:
                received.append(file.read())

        thread = threading.Thread(target=receive)
        thread.start()
        try:
            yield server.getsockname()[1], received, thread
        finally:
            thread.join(60)


async def test_syslog_by_tcp_counts_octets() -> None:
    with stream_receiver() as (port, received, thread):
        await sink_of(f"syslog+tcp://127.0.0.1:{port}", names=ADA).send([b"1", b"2"])
        await asyncio.to_thread(thread.join, 60)
    length, _, rest = received[0].partition(b" ")
    message = rest[: int(length)]
    assert message.startswith(b"<110>1 ")
    assert message.endswith(b" audit - 1")
    assert rest[int(length) :].endswith(b" audit - 2")


async def test_a_receiver_of_syslog_that_closes_before_it_has_all_is_tried_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def close() -> None:
            server.accept()[0].close()

        closing = asyncio.create_task(asyncio.to_thread(close))
        with pytest.raises(OSError):
            await sink_of(f"syslog+tcp://127.0.0.1:{server.getsockname()[1]}", names=ADA).send([b"1" * 60_000] * 100)
        await closing


async def test_a_receiver_of_syslog_that_keeps_the_connection_open_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jupyter_agentbox.audit_sinks.syslog._FAREWELL", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as server:
        await sink_of(f"syslog+tcp://127.0.0.1:{server.getsockname()[1]}", names=ADA).send([b"1"])
        with server.accept()[0] as connection:
            assert connection.recv(4096).endswith(b" audit - 1")


async def test_the_sender_has_the_name_that_it_was_given() -> None:
    with stream_receiver() as (port, received, thread):
        await sink_of(f"syslog+tcp://127.0.0.1:{port}", names=ADA, service="a-hub").send([b"1"])
        await asyncio.to_thread(thread.join, 60)
    assert received[0].split(b" ")[4] == b"a-hub"
    async with collecting() as collector:
        await sink_of(f"otlp+{collector.url}", names=ADA, service="a-hub").send([line()])
    exported = Parse(collector.bodies[0], ExportLogsServiceRequest())
    assert exported.resource_logs[0].resource.attributes[0].value.string_value == "a-hub"


@pytest.mark.parametrize(
    "kind", ["syslog:///no/socket", "syslog+tcp://127.0.0.1:{port}", "syslog+tls://127.0.0.1:{port}"]
)
async def test_a_receiver_of_syslog_that_is_not_there_has_nothing(kind: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(OSError):
        await sink_of(kind.format(port=port), names=ADA).send([b"1"])


async def test_a_post_has_the_lines_and_the_token_as_the_file_has_it_now(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    async with collecting() as collector:
        sink = sink_of(f"{collector.url}/in", names=ADA, token_file=str(token))
        await sink.send([b"1", b"2"])
        token.write_text("second\n")
        await sink.send([b"3"])
    assert collector.bodies == [b"1\n2\n", b"3\n"]
    assert [each["Authorization"] for each in collector.headers] == ["Bearer first", "Bearer second"]
    assert collector.headers[0]["Content-Type"] == "application/x-ndjson"


@pytest.mark.parametrize(
    ("status", "is_for_ever"),
    [(302, False), (401, False), (408, False), (429, False), (503, False), (400, True), (403, True), (413, True)],
)
async def test_only_what_is_wrong_with_the_records_counts_as_a_refusal_for_ever(status: int, is_for_ever: bool) -> None:
    async with collecting() as collector:
        collector.status = status
        with pytest.raises(OSError) as refused:
            await HttpSink(collector.url).send([line()])
    assert isinstance(refused.value, RecordsRejectedError) is is_for_ever


@pytest.mark.parametrize(
    ("status", "is_for_ever"), [(403, False), (404, False), (429, False), (409, True), (413, True)]
)
async def test_the_hub_service_refuses_records_and_its_proxy_or_the_hub_only_say_later(
    status: int, is_for_ever: bool
) -> None:
    async with collecting() as collector:
        collector.status = status
        sink = sink_of(f"agentbox+{collector.url}/services/agentbox/", names=ADA, hub_token="t1")
        with pytest.raises(OSError) as refused:
            await sink.send([line()])
        assert collector.headers[0]["Authorization"] == "Bearer t1"
    assert isinstance(refused.value, RecordsRejectedError) is is_for_ever


async def test_without_a_token_of_the_hub_nothing_is_sent_and_nothing_refused() -> None:
    async with collecting() as collector:
        with pytest.raises(OSError, match="no JupyterHub token") as refused:
            await sink_of(f"agentbox+{collector.url}/", names=ADA).send([line()])
        assert collector.bodies == []
    assert not isinstance(refused.value, RecordsRejectedError)


async def test_syslog_says_of_a_message_that_is_too_long_that_it_will_never_take_it(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(path))
        with pytest.raises(RecordsRejectedError):
            await sink_of(f"syslog://{path}", names=ADA).send([b"x" * 10_000_000])


@pytest.mark.parametrize("status", [302, 400, 401, 503])
async def test_a_refused_post_has_nothing(status: int) -> None:
    async with collecting() as collector:
        collector.status = status
        with pytest.raises(OSError, match=str(status)):
            await sink_of(collector.url, names=ADA).send([b"1"])


async def test_a_receiver_that_is_not_there_has_nothing(tmp_path: Path) -> None:
    async with collecting() as collector:
        url = collector.url
    with pytest.raises(OSError):
        await sink_of(url, names=ADA).send([b"1"])
    with pytest.raises(OSError):
        await sink_of(url, names=ADA, token_file=str(tmp_path / "none")).send([b"1"])


async def test_opentelemetry_gets_a_log_record_each() -> None:
    async with collecting() as collector:
        sink = sink_of(f"otlp+{collector.url}/v1/logs", names=ADA)
        collector.answer = b'{"partialSuccess": {}}'
        await sink.send([line(request_id="r1")])
        collector.answer = b'{"partialSuccess": {"rejectedLogRecords": "2"}}'
        with pytest.raises(OSError, match="rejected 2"):
            await sink.send([line()])
    (log,) = parsed(collector.bodies[0])
    assert log.body.string_value == line(request_id="r1").decode()
    assert (log.time_unix_nano, log.event_name) == (1777636800000012000, "agentbox.asked")
    assert log.observed_time_unix_nano > log.time_unix_nano
    assert (log.severity_number, log.severity_text) == (SEVERITY_NUMBER_INFO, "INFO")
    attributes = {each.key: each.value for each in log.attributes}
    assert attributes["agentbox.sequence"].int_value == 1
    assert {name: value.string_value for name, value in attributes.items() if name != "agentbox.sequence"} == {
        "agentbox.event": "asked",
        "agentbox.user": "ada",
        "agentbox.request_id": "r1",
    }


def parsed(body: bytes) -> list[LogRecord]:
    """Return what a receiver reads that knows nothing but the protocol: a field that it does not know is an error."""
    request = Parse(body, ExportLogsServiceRequest())
    (resource,) = request.resource_logs
    assert [(one.key, one.value.string_value) for one in resource.resource.attributes] == [
        ("service.name", "jupyter-agentbox")
    ]
    (scope,) = resource.scope_logs
    return list(scope.log_records)


@pytest.mark.parametrize(
    "forged", [b"no JSON", b"[]", b"{}", b'{"time": 3}', b'{"time": "0001-01-01"}', b"\xff", b"[" * 100_000]
)
async def test_what_is_no_record_gets_to_opentelemetry_as_it_is(forged: bytes) -> None:
    async with collecting() as collector:
        await sink_of(f"otlp+{collector.url}/v1/logs", names=ADA).send([forged])
    (log,) = parsed(collector.bodies[0])
    assert log.body.string_value == forged.decode("utf-8", "replace")
