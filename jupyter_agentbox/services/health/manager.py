"""Checks whether calls can run: whether they can be stored and recorded, and the state of the MCP servers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.ports import ToolCatalog
from jupyter_agentbox.exceptions import StorageError


class HealthManager:
    """Checks the parts that every call needs.

    Parameters
    ----------
    check_store : callable
        Raises `StorageError` if the store cannot be written.
    audit_problem : callable
        Returns why the audit sinks let no call run; empty if they do.
    catalog : ToolCatalog
        The MCP servers.
    """

    def __init__(
        self, *, check_store: Callable[[], Awaitable[None]], audit_problem: Callable[[], str], catalog: ToolCatalog
    ) -> None:
        self._check_store = check_store
        self._audit_problem = audit_problem
        self._catalog = catalog

    async def report(self) -> JsonObject:
        """Return whether calls can be stored and recorded, and the number of MCP servers in each state.

        Starts no MCP server. If the site's audit sinks have changed, it starts new chains for them; otherwise it sends
        no record.
        """
        try:
            await self._check_store()
        except StorageError as error:
            store = str(error)
        else:
            store = "ok"
        audit = self._audit_problem() or "ok"
        states = Counter(status.state.value for status in self._catalog.servers())
        return {"is_healthy": store == audit == "ok", "store": store, "audit": audit, "servers": dict(states)}
