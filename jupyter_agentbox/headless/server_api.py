"""The part of a Jupyter server's REST API that a kernel client needs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest, HTTPResponse
from tornado.simple_httpclient import HTTPStreamClosedError
from tornado.websocket import WebSocketClientConnection, websocket_connect

from jupyter_agentbox.core.sandbox_settings import NO_SANDBOXED_KERNEL
from jupyter_agentbox.exceptions import NeedsPersonError

from .results import ExecutionError

#: Seconds that an answer may take; the start of a kernel is one.
_TIMEOUT = 60.0
#: How much of a server's own words is told, in characters.
_LONGEST_MESSAGE = 2000
_LONGEST_PAGE = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """The URL of a Jupyter server, and the credentials for it.

    Parameters
    ----------
    url : str
        Its base URL, such as ``http://localhost:8888/`` or ``https://hub.example.org/user/ada/``.
    token : str
        Sent in the ``Authorization`` header, never in a URL.
    ping_interval : float
        Seconds between two signs of life on a websocket.
    """

    url: str
    token: str = field(default="", repr=False)
    ping_interval: float = 20.0

    @property
    def headers(self) -> dict[str, str]:
        """The headers of each request."""
        return {"Authorization": f"token {self.token}"} if self.token else {}

    def at(self, *path: str, websocket: bool = False) -> str:
        """Return the URL of a resource."""
        parts = urlsplit(self.url)
        scheme = parts.scheme.replace("http", "ws", 1) if websocket else parts.scheme
        base = parts.path.rstrip("/")
        return urlunsplit((scheme, parts.netloc, "/".join([base, *(quote(each, safe="") for each in path)]), "", ""))


class RefusedError(ExecutionError):
    """The server refused a request.

    Attributes
    ----------
    status : int
        Its answer's status code.
    page : str
        Its answer, if that is a page for people.
    """

    def __init__(self, message: str, *, status: int, page: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.page = page


class ServerApi:
    """Requests to one server.

    Parameters
    ----------
    address : ServerAddress
        The server.
    """

    def __init__(self, address: ServerAddress) -> None:
        self._address = address
        self._client = AsyncHTTPClient(force_instance=True, max_body_size=2**30)

    async def ask(
        self,
        method: str,
        *path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> Any:
        """Send a request and return the answer's JSON; ``None`` if it has none.

        Raises
        ------
        ExecutionError
            If the server cannot be reached or refuses.
        """
        response = await self.send(method, *path, body=body, query=query)
        try:
            return json.loads(response.body) if response.body else None
        except ValueError:
            raise ExecutionError(f"the server at {self._address.url} is not a Jupyter server") from None

    async def send(
        self,
        method: str,
        *path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> HTTPResponse:
        """Send a request and return the answer.

        Raises
        ------
        ExecutionError
            If the server cannot be reached or refuses.
        """
        request = HTTPRequest(
            self._address.at(*path) + (f"?{urlencode(query)}" if query else ""),
            method=method,
            headers={**self._address.headers, "Content-Type": "application/json", **(headers or {})},
            body=json.dumps(body or {}) if method in {"POST", "PATCH", "PUT"} else None,
            connect_timeout=_TIMEOUT,
            request_timeout=_TIMEOUT,
            follow_redirects=False,  # the token is for this server, and for no other
        )
        try:
            return await self._client.fetch(request)
        except HTTPClientError as error:
            text = f"the Jupyter server at {self._address.url} {_refusal(error, path)}"
            raise RefusedError(text, status=error.code, page=_page(error)) from None
        except (OSError, HTTPStreamClosedError) as error:
            raise ExecutionError(f"no Jupyter server answers at {self._address.url}: {error}") from None

    async def open_channels(self, kernel_id: str, session: str) -> WebSocketClientConnection:
        """Open the websocket to a kernel.

        Raises
        ------
        ExecutionError
            If the server cannot be reached or refuses.
        """
        url = self._address.at("api", "kernels", kernel_id, "channels", websocket=True)
        request = HTTPRequest(
            f"{url}?session_id={session}",
            headers=self._address.headers,
            connect_timeout=_TIMEOUT,
            follow_redirects=False,
        )
        try:
            return await websocket_connect(request, max_message_size=2**30, ping_interval=self._address.ping_interval)
        except (HTTPClientError, OSError) as error:
            raise ExecutionError(f"the kernel at {self._address.url} cannot be reached: {error}") from None

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _message(error: HTTPClientError) -> str | None:
    """Return the server's error message, if it has Jupyter's format."""
    try:
        value = json.loads(error.response.body) if error.response is not None else None
    except ValueError:
        return None
    message = value.get("message") if isinstance(value, dict) else None
    return message[:_LONGEST_MESSAGE] if isinstance(message, str) and message else None


def _page(error: HTTPClientError) -> str:
    if error.response is None or not error.response.headers.get("Content-Type", "").startswith("text/html"):
        return ""
    return (error.response.body or b"")[:_LONGEST_PAGE].decode(errors="replace")


def _refusal(error: HTTPClientError, path: Sequence[str]) -> str:
    if (reason := _reason(error)) is not None:
        return f"refused: {reason}"
    if error.code in {401, 403}:
        # A Jupyter server says in JSON why; the page of a Hub stands for a user's server that is not there.
        hub = (
            "" if _message(error) is not None else "; if this is a Hub, the user's server may have to be started first"
        )
        return f"refused ({error.code}): its token is missing or wrong{hub}"
    if 300 <= error.code < 400:
        place = error.response.headers.get("Location", "") if error.response is not None else ""
        host = urlsplit(place).netloc
        to = f"to {host}" if host else "elsewhere, perhaps to its login page"
        return f"redirects {to} ({error.code}): give the address at which it answers directly, and its token"
    if error.code == 404 and path[:2] == ("api", "kernels") and len(path) > 2:
        return "has no such kernel (404)"
    if (message := _message(error)) is not None:
        return f"answers: {message} ({error.code})"
    if error.code == 404:
        return f"has no `{'/'.join(path)}` (404): is this its base URL, and is what serves that installed there?"
    if error.code in {424, 502, 503}:
        return f"does not run ({error.code}): start it, on a Hub on its home page"
    return f"failed: {error}"


def _reason(error: HTTPClientError) -> str | None:
    """Return why a sandbox's provisioner started no kernel, or why a token is not enough; ``None`` for other errors."""
    try:
        answer = json.loads(error.response.body) if error.response is not None else None
    except ValueError:
        return None
    if not isinstance(answer, dict) or answer.get("reason") not in (NO_SANDBOXED_KERNEL, NeedsPersonError.code):
        return None
    return str(answer.get("message") or answer["reason"])
