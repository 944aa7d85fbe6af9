"""Creates audit sinks from their addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import SplitResult, quote, urlsplit

from jupyter_agentbox.core.ports import AuditSink

from .files import FileSink, StandardOutputSink
from .http import HttpSink, HubServiceSink, OtlpSink
from .installed import installed_schemes, installed_sink
from .syslog import SyslogSink

#: The kinds of addresses, for error messages.
_KINDS: Final = (
    "stdout:, file:///PATH, syslog:///dev/log, syslog://HOST, syslog+tcp://HOST, syslog+tls://HOST, https://…,"
    " http://…, otlp+https://…/v1/logs, otlp+http://…/v1/logs"
)
#: The schemes that no installed package gets, also in addresses that cannot be used.
_OWN_SCHEMES: Final = ("stdout", "file", "syslog", "http", "https", "otlp", "agentbox")
#: Only users' servers have this kind.
_HUB_KIND: Final = "agentbox+https://HUB/services/agentbox/"


def sink_of(
    address: str,
    *,
    names: Mapping[str, str],
    token_file: str = "",
    hub_token: str = "",
    service: str = "jupyter-agentbox",
    is_hub_service: bool = False,
) -> AuditSink:
    """Return the sink for an address, without opening it.

    Parameters
    ----------
    address : str
        The address. ``{user}`` and ``{server}`` in it are placeholders.
    names : mapping
        The values of the placeholders.
    token_file : str
        File with the bearer token for HTTP addresses; empty for none.
    hub_token : str
        This server's own JupyterHub token, for the Hub service; empty for none.
    service : str
        The sender's name, for syslog and OpenTelemetry.
    is_hub_service : bool
        Whether the Hub service sends, which an error then does not name as a receiver.

    Raises
    ------
    ValueError
        If the address is invalid, or the installed package that has its scheme is broken.
    """
    address = with_names(address, names)
    kinds = _kinds(is_hub_service=is_hub_service)
    parts, given_port = _parts_of(address, kinds)
    scheme, _, inner = parts.scheme.partition("+")
    rest = address.partition("+")[2]
    is_local = bool(parts.path) and not parts.netloc and address[len(parts.scheme) :].startswith(":///")
    is_host = bool(parts.hostname) and parts.username is None and not (parts.path.strip("/") or parts.query)
    match scheme, inner:
        case "stdout", "" if not parts.path and not parts.netloc:
            return StandardOutputSink()
        case "file", "" if is_local:
            return FileSink(address[len("file://") :])
        case "syslog", "" if is_local:
            return SyslogSink(path=parts.path, service=service)
        case "syslog", ("" | "tcp" | "tls") if is_host and parts.hostname:
            port = given_port or {"": 514, "tcp": 601, "tls": 6514}[inner]
            return SyslogSink(host=parts.hostname, port=port, transport=inner or "udp", service=service)
        case (("http" | "https"), "") if parts.hostname:
            return HttpSink(address, token_file=token_file)
        case "agentbox", ("http" | "https") if parts.hostname:
            return HubServiceSink(rest, token=hub_token)
        case "otlp", ("http" | "https") if parts.hostname:
            return OtlpSink(rest, token_file=token_file, service=service)
    if scheme not in _OWN_SCHEMES:
        sink = installed_sink(address, parts, token_file=token_file, service=service)
        if sink is not None:
            return sink
    raise ValueError(f"{_named(parts)} is not the address of an audit sink. Supported are {kinds}")


def is_of_package(address: str) -> bool:
    """Whether an address has a scheme that is left to installed packages."""
    return urlsplit(address).scheme.partition("+")[0] not in _OWN_SCHEMES


def _kinds(*, is_hub_service: bool) -> str:
    """Return the kinds of addresses that are known here, in words."""
    others = [f"{scheme}:…" for scheme in installed_schemes()]
    return ", ".join([_KINDS, *([] if is_hub_service else [_HUB_KIND]), *others])


def _parts_of(address: str, kinds: str) -> tuple[SplitResult, int | None]:
    """Return the parts of an address, and its port.

    Raises
    ------
    ValueError
        If it cannot be read, or has characters that some programs leave out.
    """
    try:
        parts = urlsplit(address)
        if address.isprintable() and address == address.strip():
            return parts, parts.port
    except ValueError:  # its text contains a part of the address, which may be of a password
        pass
    raise ValueError(f"this is not the address of an audit sink: it cannot be read. Supported are {kinds}")


def _named(parts: SplitResult) -> str:
    """Return an address without what may be secret in it: everything but the scheme and the host."""
    if parts.hostname:
        return f"`{parts.scheme}://{parts.hostname}`"
    return f"`{parts.scheme}:`" if parts.scheme else "this"


def with_names(address: str, names: Mapping[str, str]) -> str:
    """Return an address with its placeholders replaced."""
    for name, value in names.items():
        address = address.replace(f"{{{name}}}", _quoted(value))
    return address


def _quoted(name: str) -> str:
    """Quote a name as a single segment of a URL or path, whatever characters it has."""
    quoted = quote(name, safe="@")
    return f"%2E{quoted[1:]}" if quoted.startswith(".") else quoted
