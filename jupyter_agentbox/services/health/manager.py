"""Checks whether calls can run: whether the store is writable, and the state of the MCP servers."""

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
    catalog : ToolCatalog
        The MCP servers.
    """

    def __init__(self, *, check_store: Callable[[], Awaitable[None]], catalog: ToolCatalog) -> None:
        self._check_store = check_store
        self._catalog = catalog

    async def report(self) -> JsonObject:
        """Return whether the store is writable, and the number of MCP servers in each state. Starts nothing."""
        try:
            await self._check_store()
        except StorageError as error:
            store = str(error)
        else:
            store = "ok"
        states = Counter(status.state.value for status in self._catalog.servers())
        return {"is_healthy": store == "ok", "store": store, "servers": dict(states)}
