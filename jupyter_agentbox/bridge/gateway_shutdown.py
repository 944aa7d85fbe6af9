"""Knows that a kernel behind a gateway is being ended, before the gateway does it: Jupyter's manager does not say."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from jupyter_server.gateway.managers import GatewayKernelManager


def note_shutdowns(manager: GatewayKernelManager) -> None:
    """Let a manager's `shutting_down` be true while it ends its kernel, as that of a local kernel's manager is.

    A gateway interrupts the cell first, which withdraws its calls. They are not withdrawn by anyone: their kernel goes
    away.
    """
    ending: Any = manager
    ending.shutdown_kernel = _noting(manager, manager.shutdown_kernel)
    ending.restart_kernel = _noting(manager, manager.restart_kernel)


def _noting(manager: GatewayKernelManager, end: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    async def noting(*arguments: Any, **keywords: Any) -> None:
        manager.shutting_down = True
        try:
            await end(*arguments, **keywords)
        finally:
            manager.shutting_down = False

    return noting
