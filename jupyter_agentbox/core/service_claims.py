"""Who may use the database of the Hub service: one process, and when another may take over from it.

The holder counts up a number while it lives. A process that wants to take over watches that number by its own clock,
so that no two clocks are ever compared, and a clock that jumps changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

#: Signs of life that the holder gives in the time after which another may take over.
BEATS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process that runs the service.

    Parameters
    ----------
    id : str
        Its own, chosen at random.
    host : str
        The name of its machine or pod.
    pid : int
        Its number there.
    machine : str
        The start of the machine and the namespaces in which `pid` means something; empty if they are unknown.
    started : str
        When it started, as the machine says; with `pid` it names one process. Empty if it is unknown.
    """

    id: str
    host: str
    pid: int
    machine: str
    started: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What the database says of its holder.

    Parameters
    ----------
    process : Process
        Who holds it.
    since : int
        Since when, in microseconds since 1970 by the database's clock. For people; nothing is decided by it.
    beat : int
        The number that the holder counts up.
    timeout : float
        Seconds without a sign of life after which another may take over.
    """

    process: Process
    since: int
    beat: int
    timeout: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """What was seen first of a holder, and when, in seconds by the clock of the process that watches."""

    claim: Claim
    at: float


class Verdict(Enum):
    """What a process that wants the database does next."""

    TAKE = "take"
    WATCH = "watch"
    REFUSE = "refuse"


def judge(claim: Claim | None, *, is_gone: bool, first: Sighting | None, now: float) -> Verdict:
    """Return what a process that wants the database does next.

    Parameters
    ----------
    claim : Claim or None
        What the database says; ``None`` if nobody holds it.
    is_gone : bool
        Whether the holder is known to have ended, because it ran on this machine. What is unknown counts as alive.
    first : Sighting or None
        What was seen first; ``None`` if nothing was yet.
    now : float
        Seconds by the clock of the process that watches, from before `claim` was read.
    """
    if claim is None or is_gone:
        return Verdict.TAKE
    if first is None:
        return Verdict.WATCH
    if (claim.process.id, claim.beat) != (first.claim.process.id, first.claim.beat):
        return Verdict.REFUSE
    return Verdict.TAKE if now - first.at >= claim.timeout else Verdict.WATCH


def refusal(claim: Claim, since: str) -> str:
    """Return what to tell the person who started a second service."""
    process = claim.process
    return (
        f"another Hub service uses this database: process {process.pid} on {process.host}, since {since}."
        " One database serves one process, because two would not know of each other's requests."
        " End that process first, start this one with `--standby`, so that it waits for the other's end,"
        " or give it another database (`HubService.database_url`)."
        f" If that process hangs, this service takes over {claim.timeout:g} seconds after its last sign of life."
    )
