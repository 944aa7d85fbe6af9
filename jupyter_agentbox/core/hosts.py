"""The one way to write the host of a URL, of the many that lead to the same."""

from __future__ import annotations

import re
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address
from typing import Final
from urllib.parse import unquote

#: A number of an IPv4 address as resolvers read it: hexadecimal, octal or decimal.
_NUMBER: Final = re.compile(r"0x[0-9a-f]*|[0-9]{1,300}")
_BITS: Final = 32


def canonical_host(host: str) -> str:
    """Return what is the same for all ways to write a host: lower case, ASCII, no last dot, an address as such.

    Parameters
    ----------
    host : str
        A name or an address, without the brackets of a URL; wildcards stay.
    """
    name = unquote(host).lower()
    with suppress(UnicodeError):  # else it is none that anybody could ask
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
    """Return the address of one to four numbers, of which the last fills what the others leave; empty if it is none."""
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
