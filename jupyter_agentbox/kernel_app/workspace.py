"""Preparation of a headless kernel before its first cell."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from jupyter_agentbox.kernel.extension import load
from jupyter_agentbox.kernel.runtime import use_owner_socket
from jupyter_agentbox.kernel.shell import ask_before_commands, refuse_other_starts
from jupyter_agentbox.trusted_imports import TrustedImports

from .streams import texts_sent


def prepare(
    shell: Any,
    *,
    working_dir: str | None = None,
    approve_shell_cmds: bool = False,
    require_shell_escape: bool = False,
    owner_fd: int | None = None,
) -> None:
    """Load the kernel side, and apply the owner's options.

    Parameters
    ----------
    shell : IPython.core.interactiveshell.InteractiveShell
        The kernel's shell.
    working_dir : str or None
        Working directory at the start of each cell.
    approve_shell_cmds, require_shell_escape : bool
        See `jupyter_agentbox.CodeExecutor`.
    owner_fd : int or None
        Socket to the process that started the kernel, if tool calls are to use it.
    """
    load(shell)
    if owner_fd is not None:
        use_owner_socket(owner_fd, texts_sent)
    if approve_shell_cmds:
        ask_before_commands(shell)
    if require_shell_escape:
        refuse_other_starts()
    if working_dir is not None:
        work_in(shell, working_dir)


def import_installed(function: Callable[[], Any]) -> Callable[[], Any]:
    """Wrap a function so that it imports nothing from the working directory.

    Parameters
    ----------
    function : callable
        A function of ipykernel that imports `psutil` only when the kernel ends.
    """

    def call() -> Any:
        with TrustedImports():
            return function()

    return call


def work_in(shell: Any, directory: str) -> None:
    """Start each cell in a directory: change to it now, and after each cell that left it.

    Parameters
    ----------
    shell : IPython.core.interactiveshell.InteractiveShell
        The kernel's shell.
    directory : str
        Its path.
    """
    os.chdir(directory)
    here = os.getcwd()  # noqa: PTH109  # without links, as it is compared later
    shell.events.register("post_run_cell", lambda _result: _return_to(here))


def _return_to(directory: str) -> None:
    try:
        present = os.getcwd()  # noqa: PTH109  # the directory may be gone, and the text is all we need
    except FileNotFoundError:
        present = None
    if present != directory:
        os.chdir(directory)
        print(f"[agentbox] cwd reset to {directory}")  # noqa: T201  # an output of the cell
