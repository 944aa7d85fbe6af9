"""The directories in which sandboxed kernels can write."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from jupyter_client.multikernelmanager import MultiKernelManager
from jupyter_events import EventLogger

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.protocol.kernel_actions import KERNEL_ACTIONS

from .locations import Location, locate

#: Minimum interval between reads of other servers' records, in seconds: listing a large directory asks for every file.
_RECORD: Final = 1.0


class KernelDirectories:
    """The directories in which this server's sandboxed kernels can write, or once could.

    Parameters
    ----------
    kernels : MultiKernelManager
        The server's.
    events : EventLogger
        The server's event logger, to which Jupyter's kernel managers report their actions.
    recorded : callable, optional
        Returns the same directories of this user's other and earlier servers.
    """

    def __init__(
        self,
        kernels: MultiKernelManager,
        events: EventLogger,
        recorded: Callable[[], Iterable[Path]] = tuple,
    ) -> None:
        self._kernels = kernels
        self._recorded = recorded
        self._known: set[str] = set()
        self._due = 0.0
        events.add_listener(schema_id=KERNEL_ACTIONS, listener=self._on_action)

    def find(self, path: str) -> Location | None:
        """Return the location of a path if it leads into such a directory.

        Parameters
        ----------
        path : str
            An absolute path; its part above such a directory may contain links.
        """
        self._look()
        return locate(os.path.abspath(path), self._known) if self._known else None  # noqa: PTH100  # links matter

    def holds(self, directory: Path) -> bool:
        """Whether a sandboxed kernel can write in a directory, or once could."""
        return self.find(str(directory / "file")) is not None

    def _look(self) -> None:
        for kernel_id in self._kernels.list_kernel_ids():
            provisioner: Any = self._kernels.get_kernel(kernel_id).provisioner
            self._known.update(map(str, getattr(provisioner, "kernel_directories", ())))
        if (now := time.monotonic()) >= self._due:
            self._due = now + _RECORD
            self._known.update(map(str, self._recorded()))

    async def _on_action(self, logger: EventLogger, schema_id: str, data: JsonObject) -> None:  # noqa: ARG002  # by name
        self._look()
