"""How far each of the server's kernels is kept from the rest, as whatever started it says."""

from __future__ import annotations

from typing import Any

from jupyter_client.multikernelmanager import MultiKernelManager
from jupyter_server.gateway.managers import GatewayKernelManager

from jupyter_agentbox.core.isolation import Isolation


class IsolationLookup:
    """An `IsolationFinder` over the server's kernels.

    Parameters
    ----------
    kernels : MultiKernelManager
        The server's.
    """

    def __init__(self, kernels: MultiKernelManager) -> None:
        self._kernels = kernels

    def level_of(self, kernel_id: str) -> Isolation | None:
        """Return the level that a kernel has; ``None`` if there is no such kernel, or its level is not known now."""
        if kernel_id not in self._kernels:
            return None
        manager: Any = self._kernels.get_kernel(kernel_id)
        if isinstance(manager, GatewayKernelManager):
            # It runs elsewhere and has no provisioner here: nothing on this machine keeps it from anything.
            return Isolation.NONE
        if manager.provisioner is None:
            return None
        if not hasattr(manager.provisioner, "isolation"):
            return Isolation.NONE
        level = Isolation(manager.provisioner.isolation)
        # A provisioner that knows levels has none while its kernel starts anew: that is no plain kernel.
        return None if level is Isolation.NONE else level
