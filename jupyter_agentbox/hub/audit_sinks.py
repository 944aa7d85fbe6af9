"""The audit sinks of the service: their settings, and what is in the records that they get."""

from __future__ import annotations

import socket
import stat
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from jupyter_agentbox.audit_sinks.http import HubServiceSink
from jupyter_agentbox.audit_sinks.sinks import sink_of
from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.audit_trail import ArgumentsKept, AuditSettings, WhenDown, request_fields
from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.ports import AuditSink, Clock, Ids
from jupyter_agentbox.core.redaction import Redaction
from jupyter_agentbox.storage.group_commit import Timer
from jupyter_agentbox.storage.outbox import Outbox
from jupyter_agentbox.storage.outbox_reader import OutboxReader
from jupyter_agentbox.storage.service_claim import ServiceClaim

from .callers import asker_of
from .exports import SERVICE
from .forwarding import ForwardCounter, RecordForwarder
from .reviews import persons_to_json

#: Schemes whose connections are not encrypted, and what is used in their place.
_CLEAR_TEXT: Final = {
    "http": "`https`",
    "otlp+http": "`otlp+https`",
    "syslog": "`syslog+tls`",
    "syslog+tcp": "`syslog+tls`",
}
_THIS_MACHINE: Final = (None, "localhost", "127.0.0.1", "::1")
#: What a request has, besides the fields that users' servers record.
_PERSONS: Final = ("asked_by", "reported", "approvers")


class AuditSinksError(ValueError):
    """Addresses of audit sinks cannot be used.

    Attributes
    ----------
    problems : tuple of str
        What is wrong with each, without what may be secret in it.
    """

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


def sinks_of(settings: AuditSettings) -> Mapping[str, AuditSink]:
    """Return the sinks by their addresses, without opening any.

    Raises
    ------
    AuditSinksError
        If addresses are invalid, or make no sense for the service.
    """
    found: dict[str, AuditSink] = {}
    problems: list[str] = []
    for number, address in enumerate(settings.sinks, 1):
        try:
            if address in found:
                raise ValueError("this address is given twice")
            found[address] = _sink_of(address, settings.token_file)
        except ValueError as error:
            problems.append(f"{_entry(number)}: {error}")
    if problems:
        raise AuditSinksError(problems)
    return found


def _entry(number: int) -> str:
    """Return where an address stands, with the number that metrics and health checks also have, from 1."""
    return f"entry {number} of `HubService.audit_sinks`"


def _sink_of(address: str, token_file: str) -> AuditSink:
    if "{user}" in address or "{server}" in address:
        raise ValueError("`{user}` and `{server}` exist only on users' servers; remove them from the address")
    found = sink_of(address, names={}, token_file=token_file, service=SERVICE, is_hub_service=True)
    if isinstance(found, HubServiceSink):
        raise ValueError(
            "users' servers report to the service at such an address, and the service cannot send there: remove it"
        )
    return found


def notes_of_sinks(settings: AuditSettings) -> list[str]:
    """Return a note for each file that sinks need and that cannot be used now, and for what others can read."""
    found = [*_notes_of_files(settings.sinks), *_notes_of_clear_text(settings.sinks), *_notes_of_when_down(settings)]
    return [*found, *_notes_of_token(settings.token_file)] if settings.token_file else found


def _notes_of_when_down(settings: AuditSettings) -> Iterable[str]:
    if settings.when_down is not WhenDown.DENY:
        return
    setting = '`HubService.audit_when_down` is "deny"'
    if not settings.sinks:
        yield f"{setting}, but there is no audit sink: it has no effect"
    for number, address in enumerate(settings.sinks, 1):
        if urlsplit(address).scheme == "syslog" and urlsplit(address).netloc:
            yield f"{setting}, but {_entry(number)} confirms nothing (UDP): use `syslog+tls`"


def _notes_of_clear_text(addresses: Sequence[str]) -> Iterable[str]:
    for number, address in enumerate(addresses, 1):
        parts = urlsplit(address)
        if parts.scheme in _CLEAR_TEXT and parts.hostname not in _THIS_MACHINE:
            what = "records, and any token or password with them," if parts.scheme.endswith("http") else "records"
            better = _CLEAR_TEXT[parts.scheme]
            yield f"{_entry(number)}: {what} go to `{parts.hostname}` unencrypted; use {better} if it can receive that"


def _notes_of_files(addresses: Sequence[str]) -> Iterable[str]:
    for number, address in enumerate(addresses, 1):
        parts = urlsplit(address)
        is_socket = parts.scheme == "syslog" and not parts.netloc
        needed = Path(parts.path) if is_socket else Path(address.partition("://")[2]).parent
        if (is_socket or parts.scheme == "file") and not needed.exists():
            yield f"{_entry(number)}: `{needed}` does not exist"


def _notes_of_token(file: str) -> Iterable[str]:
    path = Path(file)
    try:
        if path.stat().st_mode & stat.S_IROTH:
            yield f"`HubService.audit_token_file`: every user of this machine can read `{path}`: run `chmod o-r` on it"
        path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        yield f"`HubService.audit_token_file`: `{path}` cannot be read: {reason}"


def record_fields(request: ApprovalRequest, arguments: ArgumentsKept, redaction: Redaction) -> JsonObject:
    """Return the fields of a record about a request for a central tool, or for a user's own tool that others approve.

    They are those of users' servers, where the service knows them. `kernel_id` is ``None``: in the service's requests,
    the user takes the kernel's place.
    """
    persons = persons_to_json(request)
    return {
        **request_fields(request, arguments, redaction),
        "kernel_id": None,
        "user": asker_of(request),
        **{name: persons[name] for name in _PERSONS},
    }


def make_outbox(
    settings: AuditSettings, *, clock: Clock, redaction: Redaction, environment: Mapping[str, str]
) -> Outbox | None:
    """Return the outbox into which the stores put records; ``None`` if there is no sink."""
    if not settings.sinks:
        return None
    whose = {
        "hub": environment.get("JUPYTERHUB_PUBLIC_HUB_URL") or environment.get("JUPYTERHUB_API_URL"),
        "service": environment.get("JUPYTERHUB_SERVICE_NAME"),
        "host": socket.gethostname(),
    }
    fields = partial(record_fields, arguments=settings.arguments, redaction=redaction)
    return Outbox(clock=clock, whose=whose, fields=fields)


def make_forwarder(
    settings: AuditSettings,
    outbox: Outbox,
    *,
    database_url: str,
    clock: Clock,
    ids: Ids,
    counter: ForwardCounter,
    claim: ServiceClaim,
    timer: Timer,
) -> RecordForwarder:
    """Return what sends the records in the outbox.

    Raises
    ------
    ValueError
        If an address is invalid.
    """
    reader = OutboxReader(database_url, clock=clock, ids=ids, service_claim=claim, timer=timer)
    return RecordForwarder(outbox, reader, sinks_of(settings), settings=settings, counter=counter, clock=clock)
