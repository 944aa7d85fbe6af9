"""Read access to the record of all calls, of this server and of all others that share its database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

from jupyter_agentbox.core.audit_search import AuditPage, AuditQuery
from jupyter_agentbox.core.ports import AuditLog
from jupyter_agentbox.core.redaction import Redaction
from jupyter_agentbox.services.approvals.manager import ApprovalManager

#: Page size of an export.
_EXPORTED: int = 500


class AuditManager:
    """Searches and exports records.

    Parameters
    ----------
    log : AuditLog
        Reads the stored records.
    approvals : ApprovalManager
        Writes them; pending writes are waited for.
    redaction : Redaction
        Hides secrets that were stored before they were declared secret.
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
            If the cursor is invalid.
        StorageError
        """
        await self._approvals.recorded()
        await self._approvals.abandoned.recover()
        page = await self._log.search(query)
        return await asyncio.to_thread(self._redacted, page)

    async def export(self, query: AuditQuery) -> AsyncIterator[AuditPage]:
        """Yield all matching records, page by page.

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
