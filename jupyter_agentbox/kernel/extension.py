"""Loads the kernel's end into a shell: magics and cell tracking. The link is created on first use."""

from __future__ import annotations

import os
from typing import Any

from jupyter_agentbox.core.network_hints import SANDBOX_DOMAINS

from . import agent_magic, runtime
from .agent_magic import AgentMagic
from .magics import agentbox, complete


def load(shell: Any) -> None:
    """Load the kernel's end. Loading again changes nothing.

    Parameters
    ----------
    shell : IPython.core.interactiveshell.InteractiveShell or None
        The shell of this process; nothing happens for ``None``.
    """
    if shell is None:
        return
    runtime.attach(shell)
    if SANDBOX_DOMAINS in os.environ:
        from .network_errors import after_cell  # noqa: PLC0415  # other kernels need not load it

        shell.events.register("post_run_cell", after_cell)
    if "agentbox" not in shell.magics_manager.magics["line"]:
        shell.register_magic_function(agentbox, magic_kind="line", magic_name="agentbox")
        shell.set_hook("complete_command", complete, str_key="%agentbox")
    if "agent" not in shell.magics_manager.magics["line"]:
        magic = AgentMagic(shell)
        shell.register_magic_function(magic, magic_kind="line_cell", magic_name="agent")
        shell.input_transformer_manager.line_transforms.insert(0, magic.transform)
        shell.set_hook("complete_command", agent_magic.complete, str_key="%agent")
        shell.set_hook("complete_command", agent_magic.complete_options, str_key="%%agent")


def unload(shell: Any) -> None:
    """Remove the magics; the link remains, for modules that code holds."""
    shell.magics_manager.magics["line"].pop("agentbox", None)
    shell.magics_manager.magics["line"].pop("agent", None)
    magic = shell.magics_manager.magics["cell"].pop("agent", None)
    if magic is not None:
        shell.input_transformer_manager.line_transforms.remove(magic.transform)
