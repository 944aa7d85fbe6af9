"""Validation of OAuth redirect addresses: the address of this server as given by the page, if it is one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlsplit

from jupyter_agentbox.exceptions import InvalidRequestError

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownAddresses:
    """The addresses under which a browser reaches this server.

    Parameters
    ----------
    base_url : str
        The base path of this server.
    hosts : tuple of str
        The request's `Host`, and the original one according to a trusted proxy.
    public : tuple of str
        Addresses configured by the server's administrator.
    origin : str or None
        The request's `Origin`, which a page cannot forge.
    allow_origin, allow_origin_pat : str
        Other origins that may use this server.
    """

    base_url: str
    hosts: tuple[str, ...]
    public: tuple[str, ...] = ()
    origin: str | None = None
    allow_origin: str = ""
    allow_origin_pat: str = ""

    def redirect_for(self, page: str, name: str) -> str:
        """Return the redirect address for a sign-in to an MCP server.

        Parameters
        ----------
        page : str
            The server's address as the page has it, without parameters: ``https://hub.example/user/ada/``.
        name : str
            The MCP server. Each has its own address, so that no provider can answer for another.

        Raises
        ------
        InvalidRequestError
            If that is not this server, or the code could be intercepted.
        """
        try:
            parts = urlsplit(page)
            origin, host = f"{parts.scheme}://{parts.netloc}", parts.hostname
        except ValueError:
            raise InvalidRequestError("`page` is not an address") from None
        if parts.scheme not in ("http", "https") or not host or "@" in parts.netloc or parts.query or parts.fragment:
            raise InvalidRequestError("`page` is not the address of a Jupyter server")
        if parts.path.rstrip("/") != self.base_url.rstrip("/") or not self._is_ours(origin, parts.netloc):
            raise InvalidRequestError(
                "`page` is not an address of this Jupyter server; behind a proxy that changes the host, set"
                " `ServerApp.custom_display_url` to the address that people use"
            )
        if parts.scheme == "http" and host not in _LOOPBACK:
            raise InvalidRequestError(
                "signing in needs an address with https, or localhost: over http, others could read what the provider"
                " sends"
            )
        return f"{origin}{self.base_url.rstrip('/')}/jupyter-agentbox/oauth/callback/{quote(name, safe='')}"

    def _is_ours(self, origin: str, netloc: str) -> bool:
        if self.origin is not None and self.origin != origin:
            return False  # a page asks for its own address only
        if netloc.lower() in {host.lower() for host in self.hosts} or origin in {
            _origin_of(url) for url in self.public
        }:
            return True
        # A page of another origin is accepted if listed explicitly; `*` does not count.
        is_listed = self.allow_origin == origin or bool(
            self.allow_origin_pat and re.fullmatch(self.allow_origin_pat, origin)
        )
        return self.origin is not None and is_listed


def _origin_of(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
