"""Domains that a sandboxed kernel may reach through its proxy, and the addresses to which they may resolve."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final, Self, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address

HTTP_PORT: Final = 80
HTTPS_PORT: Final = 443

_LONGEST_NAME: Final = 253
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
#: A last label with which many programs read a name as an IPv4 address: decimal, octal, hexadecimal, or short.
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_AUTHORITY: Final = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]{1,5}))?")
#: Characters that the two standards for international names (RFC 3490, RFC 5891) map differently.
_DEVIATIONS: Final = frozenset("ßẞς\u200c\u200d")
_IPV6_INTERNET: Final = IPv6Network("2000::/3")
_NAT64: Final = IPv6Network("64:ff9b::/96")
#: Metadata services of clouds, in addition to the link-local 169.254.169.254.
_METADATA: Final = frozenset(
    map(ip_address, ("168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"))
)


class Kind(Enum):
    """The kind of destination of an address."""

    PUBLIC = "the internet"
    PRIVATE = "a private address (see private_domains)"
    MACHINE = "this machine itself (see private_domains)"
    NEVER = "an address that is never allowed"


def host_of(text: str) -> str:
    """Return a host name or address in canonical form, for comparison.

    Parameters
    ----------
    text : str
        A name, an IPv4 address in four decimal parts, or an IPv6 address in brackets.

    Raises
    ------
    ValueError
        If it is none of these.
    """
    if text.startswith("["):
        address = IPv6Address(text[1:-1] if text.endswith("]") and "%" not in text else "")
        return str(address.ipv4_mapped or address)
    name = text
    if not text.isascii():
        if not _DEVIATIONS.isdisjoint(text):
            raise ValueError(
                "it has a letter that two standards encode differently; write the name "
                "in its form that begins with xn--"
            )
        name = text[: _LONGEST_NAME + 2].encode("idna").decode("ascii")
    name = name.lower().removesuffix(".")
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return str(IPv4Address(name))
    if len(name) > _LONGEST_NAME or not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError("it is not a host name")
    return name


def authority_of(text: str) -> tuple[str, int | None]:
    """Split ``host:port`` into host and port; the port is ``None`` if missing.

    Raises
    ------
    ValueError
        If it does not have that form.
    """
    found = _AUTHORITY.fullmatch(text)
    if found is None:
        raise ValueError("it is not `host` or `host:port`; put an IPv6 address in brackets")
    port = int(found[2]) if found[2] is not None else None
    if port is not None and not 0 < port < 1 << 16:
        raise ValueError("its port must be from 1 to 65535")
    return host_of(found[1]), port


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainRule:
    """An allowed domain.

    Parameters
    ----------
    name : str
        The name or address; for a rule with ``*.``, the part after it.
    below : bool
        Whether the rule covers all names below `name`, at any depth, but not `name` itself.
    port : int or None
        The only allowed port; ``None`` for 443 through a tunnel and 80 otherwise.
    private : bool
        Whether the name may resolve to private addresses and, unless the rule covers names below, to this machine.
    """

    name: str
    below: bool = False
    port: int | None = None
    private: bool = False

    @classmethod
    def parse(cls, text: str, *, private: bool = False) -> Self:
        """Parse ``example.com``, ``*.example.com`` or ``example.com:8443``.

        Raises
        ------
        ValueError
            If it is none of these; the message says why.
        """
        below = text.startswith("*.")
        try:
            if "*" in text[1:]:
                raise ValueError("write a `*` only before a domain, as in `*.example.com`")
            name, port = authority_of(text[2:] if below else text)
        except ValueError as error:
            raise ValueError(f"`{text}` cannot be allowed: {error}") from error
        address = _address(name)
        if below and (address is not None or "." not in name):
            raise ValueError(f"`{text}` is too wide: name a domain below the top-level one, as in `*.example.com`")
        if address is not None and (address.is_multicast or address.is_unspecified):
            raise ValueError(f"`{text}` is not the address of one machine")
        return cls(name=name, below=below, port=port, private=private)

    def covers(self, host: str) -> bool:
        """Whether the rule covers a host in the form of `host_of`."""
        return host.endswith(f".{self.name}") and _address(host) is None if self.below else host == self.name

    def allows(self, host: str, port: int, *, tunnel: bool) -> bool:
        """Whether the rule allows a port of a host."""
        usual = HTTPS_PORT if tunnel else HTTP_PORT
        return self.covers(host) and port == (usual if self.port is None else self.port)

    def leads_to(self, address: Address, kind: Kind) -> bool:
        """Whether a name that the rule allows may resolve to an address."""
        if kind is Kind.PUBLIC or self.name == str(address):
            return True
        return self.private and (kind is Kind.PRIVATE or (kind is Kind.MACHINE and not self.below))


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainCheck:
    """The result of checking a destination.

    Parameters
    ----------
    matched : tuple of DomainRule
        The rules that allow it; empty if it is refused.
    reason : str
        Why it is refused; empty if it is allowed.
    """

    matched: tuple[DomainRule, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainRules:
    """All allowed domains of a kernel."""

    rules: tuple[DomainRule, ...] = ()

    @classmethod
    def of(cls, allowed: Iterable[str], private: Iterable[str]) -> Self:
        """Return the rules given in settings.

        Raises
        ------
        ValueError
            If one is invalid; the message names it.
        """
        rules = [DomainRule.parse(text) for text in allowed]
        return cls(rules=(*rules, *(DomainRule.parse(text, private=True) for text in private)))

    def __bool__(self) -> bool:
        return bool(self.rules)

    def find(self, host: str, port: int, *, tunnel: bool) -> DomainCheck:
        """Check whether a host may be requested.

        Parameters
        ----------
        host : str
            In the form of `host_of`.
        port : int
            Its port.
        tunnel : bool
            Whether bytes are forwarded unread (``CONNECT``), as opposed to HTTP requests.
        """
        matched = tuple(rule for rule in self.rules if rule.allows(host, port, tunnel=tunnel))
        if matched:
            return DomainCheck(matched=matched)
        if any(rule.covers(host) for rule in self.rules):
            return DomainCheck(reason=f"port {port} of {host} is not allowed (see allowed_domains)")
        return DomainCheck(reason=f"{host} is not an allowed domain (see allowed_domains)")

    def check(
        self, host: str, address: Address, *, matched: Iterable[DomainRule], own: Collection[Address]
    ) -> DomainCheck:
        """Check whether a host may be reached at an address to which it resolves.

        Parameters
        ----------
        host : str
            The requested host.
        address : IPv4Address or IPv6Address
            An address to which its name resolves.
        matched : iterable of DomainRule
            The rules that allow the host.
        own : collection of IPv4Address or IPv6Address
            The addresses of this machine.
        """
        kind = kind_of(address, own)
        found = tuple(rule for rule in matched if rule.leads_to(address, kind))
        return DomainCheck(matched=found) if found else DomainCheck(reason=f"{host} leads to {kind.value}")


def kind_of(address: Address, own: Collection[Address]) -> Kind:
    """Classify an address.

    Parameters
    ----------
    address : IPv4Address or IPv6Address
        The address.
    own : collection of IPv4Address or IPv6Address
        The addresses of this machine.
    """
    reached = _reached(address)
    reserved = isinstance(reached, IPv4Address) and reached.is_reserved
    if reached.is_link_local or reached.is_multicast or reached.is_unspecified or reserved or reached in _METADATA:
        return Kind.NEVER
    if reached.is_loopback or reached in own or address in own:
        return Kind.MACHINE
    is_internet = isinstance(reached, IPv4Address) or reached in _IPV6_INTERNET
    return Kind.PUBLIC if reached.is_global and is_internet else Kind.PRIVATE


def _reached(address: Address) -> Address:
    """Return the IPv4 address embedded in an IPv6 address (mapped, 6to4, NAT64); else the address itself."""
    if isinstance(address, IPv4Address):
        return address
    embedded = address.ipv4_mapped or address.sixtofour
    if embedded is None and address in _NAT64:
        embedded = IPv4Address(int(address) & 0xFFFFFFFF)
    return embedded or address


def _address(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
