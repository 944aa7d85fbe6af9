"""Jupyter's event for kernel actions: start, interrupt, restart, shutdown."""

from __future__ import annotations

from typing import Final

#: Id of the event's schema in `jupyter_server`.
KERNEL_ACTIONS: Final = "https://events.jupyter.org/jupyter_server/kernel_actions/v1"
