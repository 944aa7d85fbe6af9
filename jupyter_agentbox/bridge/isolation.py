"""The isolation levels of the server's kernels, as reported by whatever started them."""

from __future__ import annotations

from typing import Any

from jupyter_client.localinterfaces import is_local_ip
from jupyter_client.manager import KernelManager
from jupyter_client.multikernelmanager import MultiKernelManager
from jupyter_server.gateway.managers import GatewayKernelManager

from jupyter_agentbox.core.isolation import Isolation


def level_reached(manager: KernelManager) -> Isolation:
    """Return a kernel's level according to what started it. Without a report, it has none, or runs elsewhere."""
    level = getattr(manager.provisioner, "isolation", None)
    if level is not None:
        return Isolation(level)
    is_here = manager.transport != "tcp" or manager.ip.startswith("127.") or is_local_ip(manager.ip)
    return Isolation.NONE if is_here else Isolation.REMOTE


def has_own_settings(manager: KernelManager) -> bool:
    """Whether its user chose settings of a kernel's sandbox, according to what started it."""
    return getattr(manager.provisioner, "has_own_settings", False) is True


class IsolationLookup:
    """An `IsolationFinder` for the server's kernels.

    Parameters
    ----------
    kernels : MultiKernelManager
        The server's.
    """

    def __init__(self, kernels: MultiKernelManager) -> None:
        self._kernels = kernels

    def level_of(self, kernel_id: str) -> Isolation | None:
        """Return a kernel's level; ``None`` if there is no such kernel, or its level is unknown."""
        if kernel_id not in self._kernels:
            return None
        manager: Any = self._kernels.get_kernel(kernel_id)
        if isinstance(manager, GatewayKernelManager):
            return Isolation.REMOTE
        if manager.provisioner is None:
            return None
        level = level_reached(manager)
        if not hasattr(manager.provisioner, "isolation"):
            return level
        # A provisioner that supports levels has none while its kernel restarts: that is not a plain kernel.
        return None if level is Isolation.NONE else level

    def has_own_settings(self, kernel_id: str) -> bool:
        """Whether its user chose settings of a kernel's sandbox, where an administrator could have."""
        return kernel_id in self._kernels and has_own_settings(self._kernels.get_kernel(kernel_id))
