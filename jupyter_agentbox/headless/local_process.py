"""The process of a kernel without isolation."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from jupyter_agentbox.background import in_thread
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.processes.directories import PrivateDirectory
from jupyter_agentbox.processes.environment import process_environment
from jupyter_agentbox.processes.kernel_launch import KernelLaunch
from jupyter_agentbox.processes.process import Command, OwnedProcess

from .ports import OnOutput

#: Run by the kernel's interpreter, never imported here.
_LAUNCHER: Final = Path(__file__).parent.parent / "kernel_app" / "launcher.py"
#: Seconds between SIGTERM and SIGKILL.
_GRACE: Final = 2.0
#: The longest path of a socket (unix(7)) leaves this for the directory.
_LONGEST_DIRECTORY: Final = 80


class LocalProcess:
    """A plain process of this user. Implements `KernelProcess`.

    Parameters
    ----------
    on_output : callable
        Gets what it writes to its standard output and error.
    """

    isolation = Isolation.NONE

    def __init__(self, on_output: OnOutput) -> None:
        self._on_output = on_output
        self._directory: PrivateDirectory | None = None
        self._process: OwnedProcess | None = None

    @property
    def returncode(self) -> int | None:
        """The exit status, 128 + n for signal n; ``None`` while it runs."""
        return self._process.returncode if self._process is not None else None

    def open(self) -> Path:
        """Make a private directory for the kernel's sockets and return it."""
        self._directory = _make_directory()
        return self._directory.path

    async def start(self, launch: KernelLaunch) -> None:
        """Start the kernel."""
        directory = self._directory.path if self._directory is not None else self.open()
        connection = directory / "connection.json"
        connection.touch(mode=0o600)
        connection.write_text(launch.connection)
        command = Command(
            argv=(sys.executable, "-P", "-X", "frozen_modules=on", str(_LAUNCHER), str(connection), launch.preparation),
            env=process_environment(os.environ, launch.env),
            cwd=launch.cwd,
            pass_fds=launch.pass_fds,
        )
        self._process = OwnedProcess(
            command, grace=_GRACE, on_output=self._on_output, on_error_output=self._on_output, on_closed=lambda: None
        )
        await self._process.start()

    def interrupt(self) -> bool:
        """Return false: only the reaper knows the process, and the kernel can signal its own group."""
        return False

    async def wait(self, seconds: float | None) -> bool:
        """Wait until it has ended; return whether it has."""
        return self._process is None or await self._process.wait(seconds)

    async def stop(self, *, patience: float) -> None:
        """Kill what still runs after `patience` seconds, and remove the directory."""
        if self._process is not None:
            await self._process.stop(patience=patience)
        if self._directory is not None:
            directory, self._directory = self._directory, None
            await in_thread(directory.remove)


def _make_directory() -> PrivateDirectory:
    directory = PrivateDirectory()
    if len(str(directory.path)) > _LONGEST_DIRECTORY:
        directory.remove()
        directory = PrivateDirectory(parent=Path("/tmp"))  # noqa: S108  # made for this process alone
    return directory
