"""Applies a person's edits of a call to the code of the cell that made it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Final

from jupyter_agentbox.analysis.cell_updater import update_cell
from jupyter_agentbox.analysis.edited_call import EditedCall, NotUpdatableError
from jupyter_agentbox.codegen.parameters import function_parameters
from jupyter_agentbox.core.approvals import ApprovalRequest, Status
from jupyter_agentbox.core.names import python_names, server_names
from jupyter_agentbox.core.ports import ToolCatalog
from jupyter_agentbox.core.redaction import REDACTED, Redaction
from jupyter_agentbox.exceptions import AgentBoxError

#: Maximum number of concurrent updates; each has a process.
_AT_ONCE: Final = 2


class CellUpdateManager:
    """Computes a cell's code with edited arguments. Changes no cell.

    Parameters
    ----------
    get : callable
        Reads an approval request.
    catalog : ToolCatalog
        The servers and their tools, for their Python names.
    redaction : Redaction
        Hides secrets in records. A call with secrets is not written into a notebook.
    """

    def __init__(
        self,
        *,
        get: Callable[[str], Awaitable[ApprovalRequest]],
        catalog: ToolCatalog,
        redaction: Redaction,
    ) -> None:
        self._get = get
        self._catalog = catalog
        self._redaction = redaction
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def update(self, request_id: str, source: str) -> str:
        """Return the cell's code with a request's edited arguments.

        Parameters
        ----------
        request_id : str
            The request, whose original and edited arguments are read from its record.
        source : str
            The cell's current code.

        Raises
        ------
        NotUpdatableError
            If it is impossible, or if there is any doubt.
        UnknownApprovalError, StorageError
        """
        call = self._edited(await self._get(request_id))
        async with self._slots:
            return await asyncio.to_thread(update_cell, source, call)

    def _edited(self, request: ApprovalRequest) -> EditedCall:
        decision, call = request.decision, request.call
        if request.status is not Status.APPROVED or decision is None or decision.arguments is None:
            raise NotUpdatableError("Nobody edited this call, so there is nothing to update.")
        if call.omitted is not None:
            raise NotUpdatableError("The arguments of this call are no longer kept. Change the cell's code there.")
        if self._has_secret(request):
            raise NotUpdatableError("An argument of this call looks like a secret. Change the cell's code there.")
        parameters = function_parameters(request.tool.input_schema)
        return EditedCall(
            server=self._server_name(call.server),
            function=self._function_name(call.server, call.tool),
            names={each.wire_name: each.name for each in parameters.named},
            positional=parameters.positional.wire_name if parameters.positional else None,
            asked=dict(call.arguments),
            edited=dict(decision.arguments),
        )

    def _has_secret(self, request: ApprovalRequest) -> bool:
        """Whether the call's record hides something, or will."""
        kept = self._redaction.request(request)
        edited = {} if kept.decision is None else kept.decision.arguments or {}
        return REDACTED in json.dumps([dict(kept.call.arguments), dict(edited)])

    def _server_name(self, server: str) -> str:
        names = [status.name for status in self._catalog.servers()]
        return server_names(names if server in names else [server])[server]

    def _function_name(self, server: str, tool: str) -> str:
        try:
            known = self._catalog.known_tools(server) or ()
        except AgentBoxError:
            known = ()
        names = [each.name for each in known]
        return python_names(names if tool in names else [tool], prefix="tool")[tool]
