"""Exclusive use of the Hub service's database by one process, and takeover by another.

The holder increments a counter while it is alive. A process that wants to take over watches the counter by its own
clock, so clocks are never compared, and clock jumps have no effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

#: How many heartbeats the holder sends within the takeover timeout.
BEATS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process that runs the service.

    Parameters
    ----------
    id : str
        Its own random id.
    host : str
        Host name of its machine or pod.
    pid : int
        Its process id there.
    machine : str
        Boot id and namespaces in which `pid` is meaningful; empty if unknown.
    started : str
        Start time as reported by the machine; identifies a process together with `pid`. Empty if unknown.
    """

    id: str
    host: str
    pid: int
    machine: str
    started: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The holder's claim in the database.

    Parameters
    ----------
    process : Process
        The holder.
    since : int
        When the claim began, in microseconds since 1970 by the database's clock. Informational only.
    beat : int
        The holder's heartbeat counter.
    timeout : float
        Seconds without a heartbeat after which another process may take over.
    """

    process: Process
    since: int
    beat: int
    timeout: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """The first observation of a holder, with its time in seconds by the watcher's clock."""

    claim: Claim
    at: float


class NextStep(Enum):
    """The next step of a process that wants the database."""

    TAKE = "take"
    WATCH = "watch"
    REFUSE = "refuse"


def judge(claim: Claim | None, *, is_gone: bool, first: Sighting | None, now: float) -> NextStep:
    """Return the next step of a process that wants the database.

    Parameters
    ----------
    claim : Claim or None
        The claim in the database; ``None`` if there is none.
    is_gone : bool
        Whether the holder, on this machine, is known to have ended. If unknown, it counts as alive.
    first : Sighting or None
        The first observation; ``None`` if there is none yet.
    now : float
        Seconds by the watcher's clock, from before `claim` was read.
    """
    if claim is None or is_gone:
        return NextStep.TAKE
    if first is None:
        return NextStep.WATCH
    if (claim.process.id, claim.beat) != (first.claim.process.id, first.claim.beat):
        return NextStep.REFUSE
    return NextStep.TAKE if now - first.at >= claim.timeout else NextStep.WATCH


def refusal(claim: Claim, since: str) -> str:
    """Return the error message for the person who started a second service."""
    process = claim.process
    return (
        f"another Hub service uses this database: process {process.pid} on {process.host}, since {since}."
        " One database serves one process, because two would not know of each other's requests."
        " End that process first, start this one with `--standby`, so that it waits for the other's end,"
        " or give it another database (`HubService.database_url`)."
        f" If that process hangs, this service takes over {claim.timeout:g} seconds after its last sign of life."
    )
