"""Jupyter's event that says what became of a kernel: started, interrupted, restarted, shut down."""

from __future__ import annotations

from typing import Final

#: The id of the event's schema in `jupyter_server`.
KERNEL_ACTIONS: Final = "https://events.jupyter.org/jupyter_server/kernel_actions/v1"
