"""Open requests of server processes that are gone: when to look for them, and who takes them over."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from sqlalchemy import Connection, bindparam, select

from jupyter_agentbox.core.approvals import ApprovalRequest

from . import grants
from .json_text import text_key
from .known_tools import READ, KnownTools
from .leases import Leases
from .schema import approvals

#: Seconds after which a server looks again in a remote database: at startup it cannot determine who is gone.
LOOK_AGAIN: Final = 30.0
#: Average seconds between checks of a server that owns nothing open and knows of no process that may be gone. It
#: varies by half in both directions, so that servers started together do not check together.
LOOK_SELDOM: Final = 1800.0

#: Returns whether a process is gone.
IsGone: TypeAlias = Callable[[Connection, str], bool]


class AbandonedRequests:
    """The open requests and grants of processes that are gone.

    Parameters
    ----------
    owner : str
        This process's id.
    owners : Leases
        Determines which processes are alive.
    tools : KnownTools
        Reads requests.
    is_gone : callable
        Returns whether a process that owns something open is gone.
    is_forgotten : callable
        Returns whether a process that may own nothing open is gone.

    Attributes
    ----------
    share : float
        This process's offset within the interval between checks, from 0 to 1.
    """

    def __init__(self, *, owner: str, owners: Leases, tools: KnownTools, is_gone: IsGone, is_forgotten: IsGone) -> None:
        self.share = int(owner[:4], 16) / 0x10000
        self._owner = owner
        self._owners = owners
        self._tools = tools
        self._is_gone = is_gone
        self._is_forgotten = is_forgotten
        self._looked_at = time.monotonic()
        self._is_watching = False
        self._damaged: set[str] = set()

    def is_look_due(self) -> bool:
        """Whether to call `adopt` again."""
        is_awake = self._is_watching or self._owners.interval is not None
        return is_awake or time.monotonic() - self._looked_at >= LOOK_SELDOM * (0.5 + self.share)

    def adopt(self, connection: Connection) -> Sequence[ApprovalRequest]:
        """Take over and return abandoned requests, oldest first."""
        requests = self._take(connection)
        grants.end_grants_of_lost(
            connection, owner=self._owner, is_gone=lambda owner: self._is_forgotten(connection, owner)
        )
        self._owners.sweep(connection)
        self._looked_at = time.monotonic()
        self._is_watching = self._owners.is_watching
        return requests

    def _take(self, connection: Connection) -> Sequence[ApprovalRequest]:
        columns = approvals.c
        is_sound = columns.id.not_in(self._damaged)
        others = select(columns.owner).where(columns.owner.is_not(None), columns.owner != self._owner).distinct()
        gone = [owner for owner in connection.scalars(others.where(is_sound)) if self._is_gone(connection, owner)]
        abandoned = select(*READ).where(columns.owner.in_(gone), is_sound).with_for_update(skip_locked=True)
        rows = connection.execute(abandoned.order_by(columns.created_at, columns.id)).all()
        requests = self._tools.read(connection, rows)
        sound = {text_key(request.id) for request in requests}
        # What cannot be read cannot be closed: whoever took it over would own it, and claim that it exists, for ever.
        self._damaged.update(row.id for row in rows if row.id not in sound)
        if requests:
            self._owners.hold(connection)
            take = approvals.update().where(columns.id == bindparam("sought")).values(owner=self._owner)
            connection.execute(take, [{"sought": id} for id in sound])
        return requests
