"""Which addresses a server may lead to when somebody signs in: those that its provider's metadata names."""

from __future__ import annotations

import ipaddress
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from jupyter_agentbox.core.hosts import canonical_host

#: What is this machine, as people write it; only there, `http` is safe.
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
#: How far inside an address is: on the internet, as far as its name tells; in a network of one's own; on this machine.
_OUTSIDE, _INSIDE, _HERE = range(3)


def is_safe_address(url: str) -> bool:
    """Say whether a token, or a person, may be sent to an address: over TLS, or to this machine."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    if parts.username is not None or parts.password is not None or not parts.hostname:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)


def may_lead_to(server: str, url: str) -> bool:
    """Say whether a server may make this machine, or a person's browser, ask an address: a safe one, no further inside.

    A server on the internet is no reason to ask what answers this machine or its network only. A name is taken for one
    of the internet: what it leads to has to prove by its certificate that it is called so.

    Parameters
    ----------
    server : str
        The MCP server's address.
    url : str
        What it, or its provider, names.
    """
    return is_safe_address(url) and _depth(url) <= _depth(server)


def _depth(url: str) -> int:
    host = canonical_host(urlsplit(url).hostname or "")
    if host == "localhost" or host.endswith(".localhost"):
        return _HERE
    with suppress(ValueError):  # else it is a name
        address = ipaddress.ip_address(host)
        if not address.is_global:
            return _HERE if address.is_loopback or address.is_unspecified else _INSIDE
    return _OUTSIDE
