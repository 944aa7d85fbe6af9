"""The record of all calls, as it is shown: of this server and of all others that share its database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

from jupyter_agentbox.core.audit_search import AuditPage, AuditQuery
from jupyter_agentbox.core.ports import AuditLog
from jupyter_agentbox.core.redaction import Redaction
from jupyter_agentbox.services.approvals.manager import ApprovalManager

#: Records of an export that are in memory at a time.
_EXPORTED: int = 500


class AuditManager:
    """Finds records.

    Parameters
    ----------
    log : AuditLog
        Where the records are kept.
    approvals : ApprovalManager
        Keeps them: what it is about to keep is waited for.
    redaction : Redaction
        Which values are not shown, though they were kept before it was said that they are secrets.
    """

    def __init__(self, *, log: AuditLog, approvals: ApprovalManager, redaction: Redaction) -> None:
        self._log = log
        self._approvals = approvals
        self._redaction = redaction

    async def search(self, query: AuditQuery) -> AuditPage:
        """Return a page of records, newest first.

        Raises
        ------
        ValueError
            If the cursor is none of ours.
        StorageError
        """
        await self._approvals.recorded()
        await self._approvals.abandoned.recover()
        page = await self._log.search(query)
        return await asyncio.to_thread(self._redacted, page)

    async def export(self, query: AuditQuery) -> AsyncIterator[AuditPage]:
        """Yield all records that are asked for, page by page.

        Raises
        ------
        StorageError
        """
        page = await self.search(replace(query, limit=_EXPORTED))
        yield page
        while page.next is not None:
            page = await self.search(replace(query, limit=_EXPORTED, cursor=page.next))
            yield page

    async def aclose(self) -> None:
        """Close the log."""
        await self._log.aclose()

    def _redacted(self, page: AuditPage) -> AuditPage:
        return replace(page, records=tuple(map(self._redaction.request, page.records)))
