"""Reads the address of a place for records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlsplit

from jupyter_agentbox.core.ports import AuditSink

from .files import FileSink, StandardOutputSink
from .http import HttpSink, HubServiceSink, OtlpSink
from .syslog import SyslogSink

#: The kinds of addresses, for messages.
_KINDS: Final = (
    "stdout:, file:///PATH, syslog:///dev/log, syslog://HOST, syslog+tcp://HOST, syslog+tls://HOST, https://…,"
    " http://…, agentbox+https://HUB/services/agentbox/, otlp+https://…/v1/logs, otlp+http://…/v1/logs"
)


def sink_of(address: str, *, names: Mapping[str, str], token_file: str = "", hub_token: str = "") -> AuditSink:
    """Return the place that an address names. Opens nothing.

    Parameters
    ----------
    address : str
        The address. ``{user}`` and ``{server}`` in it stand for whose records they are.
    names : mapping
        The values of these.
    token_file : str
        The file that has the bearer token for addresses of HTTP; empty for none.
    hub_token : str
        This server's own token of JupyterHub, for the Hub service; empty for none.

    Raises
    ------
    ValueError
        If it is no such address.
    """
    address = with_names(address, names)
    parts = urlsplit(address)
    scheme, _, inner = parts.scheme.partition("+")
    match scheme, inner:
        case "stdout", "":
            return StandardOutputSink()
        case "file", "" if parts.path and not parts.netloc:
            return FileSink(address.removeprefix("file://"))
        case "syslog", "" if parts.path and not parts.netloc:
            return SyslogSink(path=parts.path)
        case "syslog", ("" | "tcp" | "tls") if parts.hostname:
            port = parts.port or {"": 514, "tcp": 601, "tls": 6514}[inner]
            return SyslogSink(host=parts.hostname, port=port, transport=inner or "udp")
        case (("http" | "https"), "") if parts.hostname:
            return HttpSink(address, token_file=token_file)
        case "agentbox", ("http" | "https") if parts.hostname:
            return HubServiceSink(address.partition("+")[2], token=hub_token)
        case "otlp", ("http" | "https") if parts.hostname:
            return OtlpSink(address.partition("+")[2], token_file=token_file)
    raise ValueError(f"`{address}` is not a place for audit records; known are {_KINDS}")


def with_names(address: str, names: Mapping[str, str]) -> str:
    """Return an address with the values of the names in it."""
    for name, value in names.items():
        address = address.replace(f"{{{name}}}", _quoted(value))
    return address


def _quoted(name: str) -> str:
    """Return a name as one part of an address or a path, whatever characters it has."""
    quoted = quote(name, safe="@")
    return f"%2E{quoted[1:]}" if quoted.startswith(".") else quoted
