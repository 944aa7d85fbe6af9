"""Loads the kernel side into a shell: the magic, and what follows the cells. The link is made at first use."""

from __future__ import annotations

from typing import Any

from . import runtime
from .magics import agentbox, complete


def load(shell: Any) -> None:
    """Load the kernel side. Loading it again changes nothing.

    Parameters
    ----------
    shell : IPython.core.interactiveshell.InteractiveShell or None
        The shell of this process; nothing happens for ``None``.
    """
    if shell is None:
        return
    runtime.attach(shell)
    if "agentbox" not in shell.magics_manager.magics["line"]:
        shell.register_magic_function(agentbox, magic_kind="line", magic_name="agentbox")
        shell.set_hook("complete_command", complete, str_key="%agentbox")


def unload(shell: Any) -> None:
    """Remove the magic; the link stays, for it serves the modules that code holds."""
    shell.magics_manager.magics["line"].pop("agentbox", None)
