"""Restricts the addresses in a provider's metadata that a server can cause requests to at a sign-in."""

from __future__ import annotations

import ipaddress
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from jupyter_agentbox.core.hosts import canonical_host

#: Host names of this machine as people write them; only for these is `http` safe.
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
#: Where an address is: on the internet, judging by its name; in a private network; on this machine.
_OUTSIDE, _INSIDE, _HERE = range(3)


def is_safe_address(url: str) -> bool:
    """Whether a token, or a person, may be sent to an address: over TLS, or on this machine."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    if parts.username is not None or parts.password is not None or not parts.hostname:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)


def may_lead_to(server: str, url: str) -> bool:
    """Whether a server may make this machine, or a browser, request an address: a safe one, in no more private network.

    A server on the internet must not cause requests to this machine or its network. A name is considered to be on the
    internet: its TLS certificate has to prove that.

    Parameters
    ----------
    server : str
        The MCP server's address.
    url : str
        The address named by it or its provider.
    """
    return is_safe_address(url) and _depth(url) <= _depth(server)


def _depth(url: str) -> int:
    host = canonical_host(urlsplit(url).hostname or "")
    if host == "localhost" or host.endswith(".localhost"):
        return _HERE
    with suppress(ValueError):  # otherwise it is a name
        address = ipaddress.ip_address(host)
        if not address.is_global:
            return _HERE if address.is_loopback or address.is_unspecified else _INSIDE
    return _OUTSIDE
