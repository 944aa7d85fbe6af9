"""Signing in to an MCP server of a running Jupyter server from a terminal.

The way back of a sign-in counts only from where it was begun, which a cookie shows. Here that is this program and not
the browser in which a person signs in. So they bring the address that their browser was sent to, and this program goes
there.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from html import unescape
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from tornado.httpclient import HTTPResponse

from .results import ExecutionError
from .server_api import RefusedError, ServerAddress, ServerApi

_API: Final = "jupyter-agentbox"
_LONGEST: Final = 16_000


class WayBackError(ExecutionError):
    """The address that a person entered is not one to which this sign-in leads; nothing was done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunSignIn:
    """A sign-in that waits for the person.

    Parameters
    ----------
    address : str
        The provider's page.
    host : str
        Whose page that is.
    redirect : str
        Where it sends the browser to.
    cookies : str
        What shows that it was begun here.
    """

    address: str
    host: str
    redirect: str
    cookies: str


class TerminalSignIn:
    """Starts and ends sign-ins to one MCP server.

    Parameters
    ----------
    address : ServerAddress
        The Jupyter server.
    name : str
        The MCP server's.
    """

    def __init__(self, address: ServerAddress, name: str) -> None:
        self._address = address
        self._name = name
        self._api = ServerApi(address)

    async def begin(self) -> BegunSignIn:
        """Start a sign-in.

        Raises
        ------
        ExecutionError
            If the server cannot be reached or refuses.
        """
        body = {"page": self._address.url}
        response = await self._api.send("POST", _API, "servers", self._name, "sign-in", body=body)
        try:
            found = _json(response)
        except (ValueError, LookupError, TypeError):
            raise ExecutionError(f"the server at {self._address.url} is not a Jupyter server") from None
        return BegunSignIn(**found, cookies=_cookies(response))

    async def finish(self, begun: BegunSignIn, came_to: str) -> None:
        """Finish the sign-in with the address to which the browser was sent.

        Parameters
        ----------
        begun : BegunSignIn
            The sign-in.
        came_to : str
            The address that the browser was sent to, as its address line shows it, or that of the login page there.

        Raises
        ------
        WayBackError
            If the provider sent nobody there.
        ExecutionError
            If the server cannot be reached or refuses.
        """
        query = _answer(begun, came_to)
        headers = {"Cookie": begun.cookies}
        try:
            await self._api.send("GET", _API, "oauth", "callback", self._name, query=query, headers=headers)
        except RefusedError as error:
            raise RefusedError(_text(error.page) or str(error), status=error.status) from None

    async def sign_out(self) -> None:
        """Forget the sign-in, and stop the MCP server.

        Raises
        ------
        ExecutionError
            If the server cannot be reached or refuses.
        """
        await self._api.send("DELETE", _API, "servers", self._name, "sign-in")

    def close(self) -> None:
        """Close the connections."""
        self._api.close()


def _json(response: HTTPResponse) -> dict[str, str]:
    value = json.loads(response.body)
    return {name: str(value[name]) for name in ("address", "host", "redirect")}


def _cookies(response: HTTPResponse) -> str:
    found = SimpleCookie()
    for header in response.headers.get_list("Set-Cookie"):
        try:
            found.load(header)
        except CookieError:
            continue  # none of ours
    # One of them says who we are: to a server that knows nobody by name, each request with a token is somebody else's.
    return "; ".join(f"{name}={morsel.value}" for name, morsel in found.items())


def _answer(begun: BegunSignIn, came_to: str) -> dict[str, str]:
    """Return the provider's answer from the address to which it sent the browser."""
    place = came_to.strip()[:_LONGEST]
    for _ in range(2):
        page, _mark, text = place.partition("#")[0].partition("?")
        query = dict(parse_qsl(text, keep_blank_values=True))
        if page.rstrip("/") == begun.redirect.rstrip("/") and "state" in query:
            return query
        origin = urlunsplit((*urlsplit(begun.redirect)[:2], "", "", ""))
        place = origin + query.get("next", "")  # the login page of the Jupyter server
    raise WayBackError(f"that is not an address that begins with {begun.redirect}? and has a `state`")


def _text(page: str) -> str:
    """Return the text of one of the server's pages."""
    found = re.search(r"<p>([^<]{1,2000})</p>", page)
    return unescape(found[1]) if found else ""
