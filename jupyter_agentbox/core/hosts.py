"""The canonical form of a URL's host."""

from __future__ import annotations

import re
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address
from typing import Final
from urllib.parse import unquote

#: A number of an IPv4 address as resolvers accept it: hexadecimal, octal or decimal.
_NUMBER: Final = re.compile(r"0x[0-9a-f]*|[0-9]{1,300}")
_BITS: Final = 32


def canonical_host(host: str) -> str:
    """Return a host in canonical form: lower case, ASCII, no trailing dot, addresses normalized.

    Parameters
    ----------
    host : str
        A name or an address, without a URL's brackets; wildcards are kept.
    """
    name = unquote(host).lower()
    with suppress(UnicodeError):  # otherwise it is not a valid host name
        name = name.encode("idna").decode("ascii")
    name = name.rstrip(".")
    if ":" in name:
        return _ipv6(name)
    parts = name.split(".")
    if len(parts) <= 4 and all(map(_NUMBER.fullmatch, parts)):
        return _ipv4(parts) or name
    return name


def _ipv6(name: str) -> str:
    try:
        address = IPv6Address(name)
    except ValueError:
        return name
    return str(address.ipv4_mapped or address)


def _ipv4(parts: list[str]) -> str:
    """Return the IPv4 address of one to four numbers, the last of which fills the remaining bytes; empty if invalid."""
    try:
        *first, last = map(_number, parts)
    except ValueError:  # an octal number with an 8 or a 9
        return ""
    rest = _BITS - 8 * len(first)
    if last >= 1 << rest or any(number > 255 for number in first):
        return ""
    return str(IPv4Address((int.from_bytes(bytes(first)) << rest) + last))


def _number(part: str) -> int:
    if part.startswith("0x"):
        return int(part[2:] or "0", 16)
    return int(part, 8 if part.startswith("0") else 10)
