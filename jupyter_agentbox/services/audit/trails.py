"""Creates a server's audit trail from its settings."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from jupyter_agentbox.audit_sinks.sinks import sink_of
from jupyter_agentbox.audit_sinks.spool import Spool
from jupyter_agentbox.core.audit_trail import AuditSettings
from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.ports import Clock, Ids
from jupyter_agentbox.core.redaction import Redaction

from .chain import AuditChain
from .deliveries import Delivery
from .metrics import count_records
from .trail import AuditTrail


def made_trail(
    settings: Sequence[AuditSettings], *, clock: Clock, ids: Ids, environment: Mapping[str, str]
) -> AuditTrail | None:
    """Create the trail; return ``None`` if there is no sink. Opens nothing.

    Parameters
    ----------
    settings : sequence of AuditSettings
        The settings of each chain, which differ in what records contain and where they go.
    clock : Clock
        Source of the records' times.
    ids : Ids
        Generates the chains' ids.
    environment : mapping
        The server's environment, which says whose it is.

    Raises
    ------
    ValueError
        If a sink is invalid, or this system cannot spool records.
    """
    if not settings:
        return None
    if not hasattr(os, "pread"):
        raise ValueError("this operating system cannot store records for audit sinks: configure none here")
    whose, token = _whose(environment), environment.get("JUPYTERHUB_API_TOKEN", "")
    first = settings[0]
    return AuditTrail(
        [_chain(one, ids.new(), whose, token, clock) for one in settings],
        when_down=first.when_down,
        patience=first.patience,
        last_patience=first.last_patience,
    )


def _chain(settings: AuditSettings, id: str, whose: JsonObject, hub_token: str, clock: Clock) -> AuditChain:
    return AuditChain(
        [_delivery(address, settings, id, whose, hub_token) for address in settings.sinks],
        id=id,
        whose=whose,
        clock=clock,
        redaction=Redaction(settings.secret_names),
        arguments=settings.arguments,
    )


def _delivery(address: str, settings: AuditSettings, chain: str, whose: JsonObject, hub_token: str) -> Delivery:
    directory = Path(settings.spool)
    return Delivery(
        sink_of(address, names=_names(whose), token_file=settings.token_file, hub_token=hub_token),
        Spool.of(directory, address=address, chain=chain, most_bytes=settings.spool_bytes),
        left_behind=partial(Spool.left_behind, directory, address=address, most_bytes=settings.spool_bytes),
        count_left_behind=partial(Spool.count_left_behind, directory, address=address, chain=chain),
        pause=settings.pause,
        count=count_records,
    )


def names_of(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the values of placeholders in sinks' addresses, from a server's environment."""
    return _names(_whose(environment))


def _names(whose: JsonObject) -> Mapping[str, str]:
    return {"user": str(whose["user"]), "server": str(whose["hub_server"]).partition("/")[2]}


def _whose(environment: Mapping[str, str]) -> JsonObject:
    user = environment.get("JUPYTERHUB_USER")
    return {
        "hub": environment.get("JUPYTERHUB_PUBLIC_HUB_URL") or environment.get("JUPYTERHUB_API_URL"),
        "user": user or _system_user(),
        "hub_server": f"{user}/{environment.get('JUPYTERHUB_SERVER_NAME', '')}" if user else "",
        "host": socket.gethostname(),
    }


def _system_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's numeric user may have no name
        return str(os.getuid())
