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
#: How long to wait for a receiver to close the connection, in seconds.
_FAREWELL: Final = 2.0


class SyslogSink:
    """An `AuditSink` that sends to a syslog receiver.

    Only a local socket confirms that a record arrived. Over TCP and TLS, records count as sent once the receiver has
    closed the connection in order, which shows that it has read them; one that keeps it open is trusted. Datagrams can
    be lost.

    Parameters
    ----------
    path : str
        Path of a local socket; empty if a host is given.
    host, port : str, int
        The receiver's address.
    transport : str
        ``udp``, ``tcp`` or ``tls``.
    service : str
        The sender's name in messages.
    """

    def __init__(
        self,
        *,
        path: str = "",
        host: str = "",
        port: int = 0,
        transport: str = "udp",
        service: str = "jupyter-agentbox",
    ) -> None:
        self._path = path
        self._service = service
        self._address = (host, port)
        self._transport = transport
        self.name = f"syslog at `{path}`" if path else f"syslog at `{host}:{port}` ({transport})"

    async def send(self, lines: Sequence[bytes]) -> None:
        """Send records, one message each."""
        await in_thread(self._send, [_message(line, self._service) for line in lines])

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
            if is_stream:
                _finish(connection)

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


def _finish(connection: socket.socket) -> None:
    """End a connection, and wait until the receiver ends it, too.

    Raises
    ------
    OSError
        The receiver broke off, so it may not have read everything.
    """
    try:
        _check_is_open(connection)
        if isinstance(connection, ssl.SSLSocket):
            connection.settimeout(_FAREWELL)
            connection.unwrap()
            return
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(_FAREWELL)
        while connection.recv(4096):
            pass  # receivers have nothing to say
    except (TimeoutError, ssl.SSLError):
        return  # it keeps the connection open, or does not end TLS properly


def _check_is_open(connection: socket.socket) -> None:
    """Raise `OSError` if the receiver has already closed the connection: it cannot have read the rest."""
    if isinstance(connection, ssl.SSLSocket):
        return
    connection.setblocking(False)
    try:
        has_closed = connection.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        has_closed = False
    connection.settimeout(_PATIENCE)
    if has_closed:
        raise OSError("it closed the connection before it had all records")


def _message(line: bytes, service: str) -> bytes:
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    head = f"<{_PRIORITY}>1 {now} {socket.gethostname() or '-'} {service} {os.getpid()} audit - "
    return head.encode("ascii", "replace") + line
