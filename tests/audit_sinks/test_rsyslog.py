"""rsyslog itself, with the configuration that the how-to guide has: skipped where it is not installed."""

from __future__ import annotations

import asyncio
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from jupyter_agentbox.audit_sinks.sinks import sink_of
from tests.certificates import make_certificate
from tests.ports import kept_port

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "hub-service.md"
RSYSLOG = shutil.which("rsyslogd") or shutil.which("/usr/sbin/rsyslogd")
#: A short record, one whose text rsyslog could change, and one of the length that the guide promises.
RECORDS = [
    b'{"sequence": 1}',
    '{"user": "Zoë", "text": "a\\tb\\n %msg% \\u0007"}'.encode(),
    b'{"text": "%s"}' % (b"x" * 60_000),
]

pytestmark = pytest.mark.skipif(RSYSLOG is None, reason="rsyslog is not installed")


def guides_configuration(directory: Path, port: int) -> str:
    """Return the configuration of the guide, with other places and another port."""
    blocks: list[str] = re.findall(r"# /etc/rsyslog.d/30-agentbox.conf\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    [block] = blocks
    for place in ("/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/agentbox/cert.pem"):
        block = block.replace(place, str(directory / "cert.pem"))
    block = block.replace("/etc/ssl/agentbox/key.pem", str(directory / "key.pem"))
    return block.replace("/var/log/agentbox", str(directory)).replace("6514", str(port))


@contextmanager
def rsyslog(directory: Path, *, tls: bool) -> Iterator[int]:
    """Run rsyslog with the guide's configuration; without TLS, changed as the guide says."""
    assert RSYSLOG is not None
    certificate = make_certificate()
    (directory / "cert.pem").write_bytes(certificate.certificate)
    (directory / "key.pem").write_bytes(certificate.key)
    with kept_port() as port:
        text = guides_configuration(directory, port)
        if not tls:
            text = re.sub(r'module\(load="imtcp".*\)', 'module(load="imtcp")', text)
            text = re.sub(r"  defaultNetstreamDriver.*\n", "", text)
        (directory / "rsyslog.conf").write_text(f'global(workDirectory="{directory}")\n{text}')
        options = ["-n", "-f", str(directory / "rsyslog.conf"), "-i", str(directory / "pid")]
        with subprocess.Popen([RSYSLOG, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            try:
                wait_until_it_listens(port)
                yield port
            finally:
                process.terminate()
                output = process.communicate(timeout=30)[0].decode()
        assert process.returncode == 0, output


def wait_until_it_listens(port: int) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
    raise AssertionError("rsyslog does not listen")


@pytest.mark.parametrize("tls", [True, False], ids=["tls", "tcp"])
def test_rsyslog_of_the_guide_has_every_record_as_it_was_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tls: bool
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    with rsyslog(tmp_path, tls=tls) as port:
        scheme = "syslog+tls" if tls else "syslog+tcp"
        sink = sink_of(f"{scheme}://localhost:{port}", names={"user": "ada", "server": ""})
        asyncio.run(sink.send(RECORDS))
    assert (tmp_path / "record.jsonl").read_bytes().splitlines() == RECORDS
