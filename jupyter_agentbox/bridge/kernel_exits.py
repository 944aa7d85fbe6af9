"""Detects unexpected ends of the server's kernels, if their provisioner knows the reason."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Protocol
from weakref import WeakSet

from jupyter_client.manager import KernelManager
from jupyter_client.multikernelmanager import MultiKernelManager
from jupyter_events import EventLogger

from jupyter_agentbox.background import in_background
from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.kernel_exits import KernelExit
from jupyter_agentbox.protocol.kernel_actions import KERNEL_ACTIONS


class ExitListener(Protocol):
    """Listener for unexpected ends of kernels."""

    async def kernel_ended(self, kernel_id: str, end: KernelExit) -> None:
        """Handle the end of a kernel. Jupyter is about to restart it, or has given up."""


class KernelExits:
    """Asks the provisioner of every kernel that Jupyter finds dead.

    Shutting down or restarting a kernel also ends it, but then Jupyter does not check it, and no listener is told.

    Parameters
    ----------
    kernels : MultiKernelManager
        The server's kernels.
    events : EventLogger
        The server's event logger, to which Jupyter's kernel managers report their actions.
    listener : EndListener
        Receives the ends.
    """

    def __init__(self, *, kernels: MultiKernelManager, events: EventLogger, listener: ExitListener) -> None:
        self._kernels = kernels
        self._listener = listener
        self._watched: WeakSet[KernelManager] = WeakSet()
        self._telling: set[asyncio.Task[None]] = set()
        self._is_closed = False
        events.add_listener(schema_id=KERNEL_ACTIONS, listener=self._on_action)

    def watch_running(self) -> None:
        """Watch the running kernels."""
        for kernel_id in self._kernels.list_kernel_ids():
            self._watch(kernel_id)

    async def aclose(self) -> None:
        """Stop reporting; return when all reports are done."""
        self._is_closed = True
        await asyncio.gather(*self._telling, return_exceptions=True)

    async def _on_action(self, logger: EventLogger, schema_id: str, data: JsonObject) -> None:  # noqa: ARG002  # by name
        kernel_id = data.get("kernel_id")
        if data.get("status") == "success" and isinstance(kernel_id, str) and kernel_id in self._kernels:
            self._watch(kernel_id)

    def _watch(self, kernel_id: str) -> None:
        # Jupyter keeps the callbacks as long as the manager, whatever happens to its kernel.
        manager = self._kernels.get_kernel(kernel_id)
        if manager not in self._watched:
            self._watched.add(manager)
            for event in ("restart", "dead"):
                manager.add_restart_callback(partial(self._on_death, kernel_id, manager), event)

    def _on_death(self, kernel_id: str, manager: Any) -> None:
        # Immediately: the provisioner soon drops this information.
        end = getattr(manager.provisioner, "ended_by", None)
        if isinstance(end, KernelExit) and not self._is_closed:
            task = in_background(
                self._listener.kernel_ended(kernel_id, end), what=f"announcing how kernel {kernel_id} ended"
            )
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)
