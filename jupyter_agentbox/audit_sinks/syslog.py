"""Audit sink for syslog (RFC 5424): over a local socket, UDP, TCP (RFC 6587) or TLS (RFC 5425)."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from jupyter_agentbox.background import in_thread
from jupyter_agentbox.exceptions import RecordsRejectedError

#: The facility "log audit" (13) with the severity "informational" (6).
_PRIORITY: Final = 13 * 8 + 6
#: Maximum time that sending may take, in seconds.
_PATIENCE: Final = 10.0


class SyslogSink:
    """An `AuditSink` that sends to a syslog receiver.

    Only a local socket confirms that a record arrived; when a connection breaks, the last records may be lost.

    Parameters
    ----------
    path : str
        Path of a local socket; empty if a host is given.
    host, port : str, int
        The receiver's address.
    transport : str
        ``udp``, ``tcp`` or ``tls``.
    """

    def __init__(self, *, path: str = "", host: str = "", port: int = 0, transport: str = "udp") -> None:
        self._path = path
        self._address = (host, port)
        self._transport = transport
        self.name = f"syslog at `{path}`" if path else f"syslog at `{host}:{port}` ({transport})"

    async def send(self, lines: Sequence[bytes]) -> None:
        """Send records, one message each."""
        await in_thread(self._send, [_message(line) for line in lines])

    def _send(self, messages: Sequence[bytes]) -> None:
        with self._connect() as connection:
            is_stream = connection.type == socket.SOCK_STREAM
            for message in messages:
                try:
                    connection.sendall(b"%d %s" % (len(message), message) if is_stream else message)
                except OSError as error:
                    if error.errno == errno.EMSGSIZE:
                        raise RecordsRejectedError(
                            f"{len(message):,} bytes are too many for the syslog receiver"
                        ) from error
                    raise

    def _connect(self) -> socket.socket:
        if self._path:
            return _connected(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM), self._path)
        if self._transport == "udp":
            family, kind, protocol, _, address = socket.getaddrinfo(*self._address, type=socket.SOCK_DGRAM)[0]
            return _connected(socket.socket(family, kind, protocol), address)
        plain = socket.create_connection(self._address, timeout=_PATIENCE)
        if self._transport == "tcp":
            return plain
        try:
            return ssl.create_default_context().wrap_socket(plain, server_hostname=self._address[0])
        except BaseException:
            plain.close()
            raise


def _connected(made: socket.socket, address: object) -> socket.socket:
    try:
        made.settimeout(_PATIENCE)
        made.connect(address)  # type: ignore[arg-type]  # what getaddrinfo gave, or a path
    except BaseException:
        made.close()
        raise
    return made


def _message(line: bytes) -> bytes:
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    head = f"<{_PRIORITY}>1 {now} {socket.gethostname() or '-'} jupyter-agentbox {os.getpid()} audit - "
    return head.encode("ascii", "replace") + line
