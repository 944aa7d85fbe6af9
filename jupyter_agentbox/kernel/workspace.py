"""What a kernel without a front end is given before its first cell."""

from __future__ import annotations

import os
from typing import Any

from .extension import load
from .shell import ask_before_commands, refuse_other_starts


def prepare(
    shell: Any,
    *,
    working_dir: str | None = None,
    approve_shell_cmds: bool = False,
    require_shell_escape: bool = False,
) -> None:
    """Load the kernel side and what the kernel's owner asked for.

    Parameters
    ----------
    shell : IPython.core.interactiveshell.InteractiveShell
        The kernel's shell.
    working_dir : str or None
        Where each cell starts.
    approve_shell_cmds, require_shell_escape : bool
        See `jupyter_agentbox.CodeExecutor`.
    """
    load(shell)
    if approve_shell_cmds:
        ask_before_commands(shell)
    if require_shell_escape:
        refuse_other_starts()
    if working_dir is not None:
        os.chdir(working_dir)
        shell.events.register("post_run_cell", lambda _result: _return_to(working_dir))


def _return_to(directory: str) -> None:
    try:
        present = os.getcwd()  # noqa: PTH109  # the directory may be gone, and the text is all we need
    except FileNotFoundError:
        present = None
    if present != directory:
        os.chdir(directory)
        print(f"[agentbox] cwd reset to {directory}")  # noqa: T201  # an output of the cell
