from __future__ import annotations

import errno
import socket
from urllib.error import HTTPError, URLError

import pytest

from jupyter_agentbox.kernel.network_errors import is_network_error

REFUSED = "example.com is not an allowed domain (see allowed_domains)"


def caused(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


def forbidden_socket() -> BaseException:
    """Return the error of a socket that may not be made, as the module ``socket`` raises it."""

    class Forbidden(socket.socket):
        pass

    try:
        Forbidden(family=-12345)
    except OSError as error:
        error.errno = errno.EPERM
        return error
    raise AssertionError


@pytest.mark.parametrize(
    "error",
    [
        socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"),
        OSError(errno.ENETUNREACH, "Network is unreachable"),
        URLError(socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")),
        caused(RuntimeError("All connection attempts failed"), OSError(errno.ENETUNREACH, "unreachable")),
        Exception(URLError(OSError(f"Tunnel connection failed: 403 {REFUSED}"))),
        HTTPError("http://example.com", 403, REFUSED, {}, None),  # type: ignore[arg-type]  # no headers
        forbidden_socket(),
    ],
    ids=["name", "address", "urllib", "cause", "tunnel", "proxy", "socket"],
)
def test_what_a_sandbox_stops_is_recognized(error: BaseException) -> None:
    assert is_network_error(error)


@pytest.mark.parametrize(
    "error",
    [
        ZeroDivisionError(),
        PermissionError(errno.EACCES, "Permission denied", "/etc/shadow"),
        PermissionError(errno.EPERM, "Operation not permitted"),
        ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"),
        HTTPError("http://example.com", 403, "Forbidden", {}, None),  # type: ignore[arg-type]  # no headers
    ],
    ids=["other", "file", "process", "refused", "forbidden"],
)
def test_other_errors_are_not_blamed_on_the_sandbox(error: BaseException) -> None:
    assert not is_network_error(error)


def test_errors_that_lead_to_each_other_come_to_an_end() -> None:
    one, other = ValueError(), ValueError()
    one.__context__ = other
    other.__cause__ = one

    assert not is_network_error(one)


def test_an_error_of_the_cell_whose_own_methods_fail_breaks_nothing() -> None:
    class OddError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

        def __eq__(self, other: object) -> bool:
            raise RuntimeError

        __hash__ = None

    odd = OddError(OddError())
    odd.__cause__ = OSError(errno.ENETUNREACH, "Network is unreachable")
    assert is_network_error(odd)
    odd.__cause__ = None
    assert not is_network_error(odd)
