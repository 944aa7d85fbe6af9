"""Whether it is known that no Jupyter server is there for this kernel, so that nothing has to wait for one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from jupyter_agentbox.core.notebook_runners import NO_SERVER, notebook_runner

#: Where Linux tells a process's command line.
_PROCESSES: Final = Path("/proc")


def known_absence(environment: Mapping[str, str], processes: Path = _PROCESSES) -> str:
    """Return why no server is there, or nothing where one may be.

    What started the kernel is asked for its name, not any process further up: a Jupyter server may be started by
    anything. Its number is jupyter_client's, which also holds where a script between the two starts the kernel.

    Parameters
    ----------
    environment : mapping
        The kernel's.
    processes : Path
        Where the system tells of processes.
    """
    if environment.get(NO_SERVER, "") not in ("", "0"):
        return f"`{NO_SERVER}` is set"
    parent = environment.get("JPY_PARENT_PID", "")
    if not parent.isdecimal():
        return ""
    try:
        command = (processes / parent / "cmdline").read_bytes()
    except OSError:  # another system than Linux, or it has ended
        return ""
    runner = notebook_runner(command.decode(errors="replace").rstrip("\0").split("\0"))
    return f"`{runner}` started this kernel" if runner is not None else ""
