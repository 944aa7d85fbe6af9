"""Which addresses a server may lead to when somebody signs in: those that its provider's metadata names."""

from __future__ import annotations

import ipaddress
import socket
from typing import Final
from urllib.parse import urlsplit

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
    host = (urlsplit(url).hostname or "").rstrip(".")
    if host == "localhost" or host.endswith(".localhost"):
        return _HERE
    address = _address_of(host)
    if address is None or address.is_global:
        return _OUTSIDE
    return _HERE if address.is_loopback or address.is_unspecified else _INSIDE


def _address_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the address that a host is; ``None`` if it is a name."""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        pass
    else:
        return getattr(found, "ipv4_mapped", None) or found
    try:
        return ipaddress.IPv4Address(
            socket.inet_aton(host)
        )  # `127.1`, `2130706433` and `0x7f.1`, as resolvers read them
    except (OSError, UnicodeError):
        return None
