"""Creates audit sinks from their addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlsplit

from jupyter_agentbox.core.ports import AuditSink

from .files import FileSink, StandardOutputSink
from .http import HttpSink, HubServiceSink, OtlpSink
from .syslog import SyslogSink

#: The kinds of addresses, for error messages.
_KINDS: Final = (
    "stdout:, file:///PATH, syslog:///dev/log, syslog://HOST, syslog+tcp://HOST, syslog+tls://HOST, https://…,"
    " http://…, agentbox+https://HUB/services/agentbox/, otlp+https://…/v1/logs, otlp+http://…/v1/logs"
)


def sink_of(
    address: str,
    *,
    names: Mapping[str, str],
    token_file: str = "",
    hub_token: str = "",
    service: str = "jupyter-agentbox",
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

    Raises
    ------
    ValueError
        If the address is invalid.
    """
    address = with_names(address, names)
    parts = urlsplit(address)
    scheme, _, inner = parts.scheme.partition("+")
    given_port = parts.port  # a `ValueError` if it is not a number
    match scheme, inner:
        case "stdout", "":
            return StandardOutputSink()
        case "file", "" if parts.path and not parts.netloc:
            return FileSink(address.removeprefix("file://"))
        case "syslog", "" if parts.path and not parts.netloc:
            return SyslogSink(path=parts.path, service=service)
        case "syslog", ("" | "tcp" | "tls") if parts.hostname:
            port = given_port or {"": 514, "tcp": 601, "tls": 6514}[inner]
            return SyslogSink(host=parts.hostname, port=port, transport=inner or "udp", service=service)
        case (("http" | "https"), "") if parts.hostname:
            return HttpSink(address, token_file=token_file)
        case "agentbox", ("http" | "https") if parts.hostname:
            return HubServiceSink(address.partition("+")[2], token=hub_token)
        case "otlp", ("http" | "https") if parts.hostname:
            return OtlpSink(address.partition("+")[2], token_file=token_file, service=service)
    raise ValueError(f"`{address}` is not the address of an audit sink. Supported are {_KINDS}")


def with_names(address: str, names: Mapping[str, str]) -> str:
    """Return an address with its placeholders replaced."""
    for name, value in names.items():
        address = address.replace(f"{{{name}}}", _quoted(value))
    return address


def _quoted(name: str) -> str:
    """Quote a name as a single segment of a URL or path, whatever characters it has."""
    quoted = quote(name, safe="@")
    return f"%2E{quoted[1:]}" if quoted.startswith(".") else quoted
