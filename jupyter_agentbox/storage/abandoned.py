"""What server processes that are gone left open: when to look for it, and who takes it."""

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

#: Seconds after which a server looks again for what others left in a remote database: at its start it cannot know yet.
LOOK_AGAIN: Final = 30.0
#: Seconds between two looks of a server that owns nothing open and knows of nobody who may be gone: half of it to half
#: as much again, by the server, so that those which start together do not look together.
LOOK_SELDOM: Final = 1800.0

#: Whether a process is gone.
IsGone: TypeAlias = Callable[[Connection, str], bool]


class AbandonedRequests:
    """The open requests of processes that are gone, and their grants.

    Parameters
    ----------
    owner : str
        This process's id.
    owners : Leases
        Knows who is alive.
    tools : KnownTools
        Reads requests.
    is_gone : callable
        Whether a process is gone that owns something open.
    is_forgotten : callable
        Whether a process is gone that may own nothing open.

    Attributes
    ----------
    share : float
        Which part of the time between two looks this process comes later than others, from 0 to 1.
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
        """Take what is left, and return it, the oldest first."""
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
        # What cannot be read cannot be closed either: who took it would own it, and say that it is there, for ever.
        self._damaged.update(row.id for row in rows if row.id not in sound)
        if requests:
            self._owners.hold(connection)
            take = approvals.update().where(columns.id == bindparam("sought")).values(owner=self._owner)
            connection.execute(take, [{"sought": id} for id in sound])
        return requests
