"""What the requests to a proxy ask for, and which parts of them are passed on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import h11

from jupyter_agentbox.core.egress_domains import HTTP_PORT, HTTPS_PORT, authority_of

Headers = list[tuple[bytes, bytes]]

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)")
_PATH: Final = re.compile(r"[/?]")
#: Between two neighbors only (RFC 9110, 7.6.1), or the proxy's own.
_BETWEEN_NEIGHBOURS: Final = frozenset(
    (
        *(b"connection", b"keep-alive", b"te", b"trailer", b"upgrade", b"expect"),
        *(b"proxy-connection", b"proxy-authorization", b"proxy-authenticate"),
    )
)
_FRAMING: Final = frozenset((b"host", b"content-length", b"transfer-encoding"))


class RefusedRequestError(Exception):
    """A request is not passed on.

    Parameters
    ----------
    status : int
        The status of the answer.
    reason : str
        Why; many programs show nothing else.
    advice : str
        What to do about it.
    """

    def __init__(self, status: int, reason: str, advice: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.advice = advice


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a request asks for.

    Parameters
    ----------
    host : str
        In the form of `host_of`.
    port : int
        The port.
    path : str
        With the query; empty for a tunnel.
    """

    host: str
    port: int
    path: str = ""

    @property
    def authority(self) -> str:
        """The host, and the port if it is not HTTP's own, as a ``Host`` header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == HTTP_PORT else f"{host}:{self.port}"


def target_of(request: h11.Request) -> Target:
    """Return what a request asks for.

    Raises
    ------
    RefusedRequestError
        If it is not a request to a proxy, or contradicts itself.
    """
    names = [name for name, _ in request.headers]
    text = request.target.decode("ascii")
    if request.method == b"CONNECT":
        if b"content-length" in names or b"transfer-encoding" in names:
            raise RefusedRequestError(400, "A CONNECT request cannot have a body")
        return _target(text, HTTPS_PORT, path="")
    if b"content-length" in names and b"transfer-encoding" in names:
        raise RefusedRequestError(400, "The length of the body is given twice")
    if b"transfer-encoding" in names and request.http_version < b"1.1":
        raise RefusedRequestError(400, "HTTP/1.0 has no transfer encodings")
    found = _SCHEME.fullmatch(text)
    if found is None or "#" in text:
        raise RefusedRequestError(400, "This is a proxy: the request needs a full URL")
    if found[1].lower() != "http":
        raise RefusedRequestError(400, "Only http is forwarded; everything else needs CONNECT")
    authority = _PATH.split(found[2], maxsplit=1)[0]
    path = found[2].removeprefix(authority)
    target = _target(authority, HTTP_PORT, path=path if path.startswith("/") else f"/{path}")
    for name, value in request.headers:
        if name == b"host" and not _is_authority(value.decode("latin-1"), target):
            raise RefusedRequestError(400, "The Host header and the URL name different hosts")
    return target


def _target(authority: str, port: int, *, path: str) -> Target:
    try:
        host, named = authority_of(authority)
    except ValueError as error:
        raise RefusedRequestError(400, "The host is not a host name or an address in its usual form") from error
    return Target(host=host, port=named or port, path=path)


def _is_authority(text: str, target: Target) -> bool:
    try:
        host, port = authority_of(text)
    except ValueError:
        return False
    return (host, port or HTTP_PORT) == (target.host, target.port)


def onward(request: h11.Request, target: Target) -> h11.Request:
    """Return the request as the target gets it: rewritten, for a connection that serves only this request."""
    headers = [(b"Host", target.authority.encode()), *_end_to_end(request.headers, drop=frozenset((b"host",)))]
    return h11.Request(method=request.method, target=target.path, headers=[*headers, (b"Connection", b"close")])


def back(response: h11.Response) -> h11.Response:
    """Return a server's response as the client gets it."""
    is_chunked = any(name == b"transfer-encoding" for name, _ in response.headers)
    headers = _end_to_end(response.headers, drop=frozenset((b"content-length",) if is_chunked else ()))
    return h11.Response(status_code=response.status_code, reason=response.reason, headers=headers)


def _end_to_end(headers: Iterable[tuple[bytes, bytes]], *, drop: frozenset[bytes] = frozenset()) -> Headers:
    headers = list(headers)
    named = {
        one.strip().lower() for name, value in headers if name == b"connection" for one in value.split(b",")
    } - _FRAMING  # fmt: skip
    return [(name, value) for name, value in headers if name not in _BETWEEN_NEIGHBOURS | named | drop]
