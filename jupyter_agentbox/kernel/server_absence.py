"""Detects that a kernel certainly has no Jupyter server, so that nothing waits for one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from jupyter_agentbox.core.notebook_runners import NO_SERVER, notebook_runner

#: Where Linux exposes processes' command lines.
_PROCESSES: Final = Path("/proc")


def server_absence(environment: Mapping[str, str], processes: Path = _PROCESSES) -> str:
    """Return why there is no server; empty if there may be one.

    Only the program that started the kernel is examined, not its ancestors: anything may start a Jupyter server. Its
    process id comes from jupyter_client, and so is right even if a script in between starts the kernel.

    Parameters
    ----------
    environment : mapping
        The kernel's environment.
    processes : Path
        The directory with information on processes.
    """
    if environment.get(NO_SERVER, "") not in ("", "0"):
        return f"`{NO_SERVER}` is set"
    parent = environment.get("JPY_PARENT_PID", "")
    if not parent.isdecimal():
        return ""
    try:
        command = (processes / parent / "cmdline").read_bytes()
    except OSError:  # not Linux, or the process has ended
        return ""
    runner = notebook_runner(command.decode(errors="replace").rstrip("\0").split("\0"))
    return f"`{runner}` started this kernel" if runner is not None else ""
