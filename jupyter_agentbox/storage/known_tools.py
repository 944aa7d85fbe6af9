"""Reads requests from their rows, with the descriptions of their tools, a few of which thousands of requests share."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, select

from jupyter_agentbox.core.approvals import ApprovalRequest
from jupyter_agentbox.core.tools import ToolDescription
from jupyter_agentbox.exceptions import StorageError

from .rows import request_from_row, tool_from_row
from .schema import approvals, tools

log = logging.getLogger(__name__)

#: How many tool descriptions are kept in memory.
_MOST: Final = 1000
#: The columns that a request is read from.
READ: Final = (
    approvals.c.id,
    approvals.c.created_at,
    approvals.c.status,
    approvals.c.tool_digest,
    approvals.c.request,
    approvals.c.progress,
)


class KnownTools:
    """The descriptions of tools that were already read, by their digests."""

    def __init__(self) -> None:
        self._known: dict[str, ToolDescription] = {}

    def read(self, connection: Connection, rows: Sequence[Any]) -> tuple[ApprovalRequest, ...]:
        """Return the requests of the rows; a damaged one does not hide the others."""
        self.learn(connection, rows)
        sound: list[ApprovalRequest] = []
        for row in rows:
            try:
                sound.append(self.request(row))
            except StorageError as error:
                log.warning("request %s is left out: %s", row.id, error)
        return tuple(sound)

    def request(self, row: Any) -> ApprovalRequest:
        """Return the request of a row whose tool has been read.

        Raises
        ------
        StorageError
            If it is damaged.
        """
        return request_from_row(
            request=row.request,
            progress=row.progress,
            status=row.status,
            tool=self._known.get(row.tool_digest),
        )

    def learn(self, connection: Connection, rows: Sequence[Any]) -> None:
        """Read the descriptions of the rows' tools that were not read yet; a damaged one stays unread."""
        missing = {row.tool_digest for row in rows} - self._known.keys()
        if not missing:
            return
        if len(self._known) >= _MOST:
            self._known.clear()
            missing = {row.tool_digest for row in rows}
        for digest, description in connection.execute(select(tools).where(tools.c.digest.in_(missing))):
            try:
                self._known[digest] = tool_from_row(description)
            except StorageError as error:
                log.warning("%s", error)
