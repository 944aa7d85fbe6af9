"""Audit sink for syslog (RFC 5424): over a local socket, UDP, TCP (RFC 6587) or TLS (RFC 5425)."""

from __future__ import annotations

import errno
import os
import select
import socket
import ssl
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from jupyter_agentbox.background import in_thread
from jupyter_agentbox.exceptions import RecordsRejectedError

if sys.platform == "linux":
    import fcntl
    import termios

#: The facility "log audit" (13) with the severity "informational" (6).
_PRIORITY: Final = 13 * 8 + 6
#: Maximum time for connecting, and then for all records, in seconds. A service that stops waits for it.
_PATIENCE: Final = 10.0
#: How long to wait for a receiver to close the connection, in seconds.
_FAREWELL: Final = 2.0
#: How many bytes are given to a connection at once: TLS has its own timeout for each piece.
_PIECE: Final = 16_384
_ANSWERS: Final = "it answers, which no syslog receiver does"
_TOO_SLOW: Final = f"it did not take all records within {_PATIENCE:g} s"
_CLOSES_EARLY: Final = "it closed the connection before it had all records"


class SyslogSink:
    """An `AuditSink` that sends to a syslog receiver.

    Only a local socket confirms that a record arrived. Over TCP and TLS, records count as sent once the receiver has
    closed the connection in order, which shows that it has read them; one that keeps it open is trusted. One that says
    anything, such as that it wants a certificate, is no syslog receiver or did not read them. Datagrams can be lost.

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
            end = time.monotonic() + _PATIENCE
            if connection.type == socket.SOCK_STREAM:
                for message in messages:
                    _send_all(connection, b"%d %s" % (len(message), message), end)
                _finish(connection)
                return
            for message in messages:
                _send_datagram(connection, message, end)

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


def _send_datagram(connection: socket.socket, message: bytes, end: float) -> None:
    _wait_until(connection, end)
    try:
        connection.send(message)
    except OSError as error:
        if error.errno == errno.EMSGSIZE:
            raise RecordsRejectedError(f"{len(message):,} bytes are too many for the syslog receiver") from error
        raise


def _send_all(connection: socket.socket, message: bytes, end: float) -> None:
    rest = memoryview(message)
    while rest:
        _wait_until(connection, end)
        rest = rest[connection.send(rest[:_PIECE]) :]


def _wait_until(connection: socket.socket, end: float) -> None:
    """Set the time that a connection may take for what comes next."""
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError(_TOO_SLOW)
    connection.settimeout(left)


def _finish(connection: socket.socket) -> None:
    """End a connection, and wait until the receiver ends it, too.

    Raises
    ------
    OSError
        The receiver broke off, or said something, so it may not have read everything.
    """
    _check_is_open(connection)
    if isinstance(connection, ssl.SSLSocket):
        _end_tls(connection)
    else:
        connection.shutdown(socket.SHUT_WR)
    connection.settimeout(_FAREWELL)
    try:
        said = _last_of(connection)
    except TimeoutError:
        return  # it keeps the connection open
    if said:
        raise OSError(_ANSWERS)
    if _is_unread(connection):
        raise OSError(_CLOSES_EARLY)


def _end_tls(connection: ssl.SSLSocket) -> None:
    """Send the end of TLS. `unwrap` must not wait for the receiver's: it would mistake a refusal for it."""
    connection.setblocking(False)
    poll = select.poll()
    poll.register(connection, select.POLLOUT)
    while True:
        try:
            connection.unwrap()
        except ssl.SSLWantReadError:
            return
        except ssl.SSLWantWriteError:
            if not poll.poll(_PATIENCE * 1000):
                raise TimeoutError(_TOO_SLOW) from None
        else:
            raise OSError(_CLOSES_EARLY)


def _last_of(connection: socket.socket) -> bytes:
    """Return what the receiver says before it ends the connection; nothing, if all is in order."""
    if isinstance(connection, ssl.SSLSocket):
        with suppress(ssl.SSLZeroReturnError):  # the end of TLS; some receivers leave it out
            if said := connection.recv(1):
                return said
        connection.shutdown(socket.SHUT_WR)  # as of now, it is not encrypted
    return connection.recv(1)


def _is_unread(connection: socket.socket) -> bool:
    """Whether the receiver's system has not confirmed everything, although it has closed the connection."""
    if sys.platform != "linux":
        return False
    return any(fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4)))


def _check_is_open(connection: socket.socket) -> None:
    """Raise `OSError` if the receiver has already closed the connection: it cannot have read the rest."""
    connection.setblocking(False)
    try:
        said = connection.recv(1)
    except (BlockingIOError, ssl.SSLWantReadError):
        return
    raise OSError(_ANSWERS if said else _CLOSES_EARLY)


def _message(line: bytes, service: str) -> bytes:
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    head = f"<{_PRIORITY}>1 {now} {socket.gethostname() or '-'} {service} {os.getpid()} audit - "
    return head.encode("ascii", "replace") + line
