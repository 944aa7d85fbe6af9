"""Detects the shutdown of a kernel behind a gateway before it happens, which Jupyter's manager does not report."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from jupyter_server.gateway.managers import GatewayKernelManager


def note_shutdowns(manager: GatewayKernelManager) -> None:
    """Make a manager's `shutting_down` true while it shuts down its kernel, as for local kernels.

    A gateway first interrupts the cell, which withdraws its calls. Nobody meant to withdraw them: their kernel ends.
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
