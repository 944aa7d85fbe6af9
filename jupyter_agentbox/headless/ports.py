"""Protocols of a kernel, whether it is a child process or on a server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.processes.kernel_launch import KernelLaunch

from .signing import Message

#: Called in the event loop with each message of the kernel.
Receive = Callable[[Message], None]
#: Called once, with what happened, when the kernel is gone for good.
Lost = Callable[[str], None]
#: Called with each chunk of what a process writes to its standard output and error.
OnOutput = Callable[[bytes], None]


class Kernel(Protocol):
    """A connected kernel."""

    @property
    def id(self) -> str:
        """The kernel's id."""

    def listen(self, receive: Receive, lost: Lost) -> None:
        """Set the receiver of messages, before `start`."""

    async def start(self) -> None:
        """Start the kernel or connect to it; on return, no output can be missed.

        Raises
        ------
        ExecutionError
            If it does not start.
        TimeoutError
            If it takes too long.
        """

    def send(self, kind: str, content: JsonObject) -> str:
        """Send a request on the shell channel and return its id."""

    async def interrupt(self) -> None:
        """Interrupt the running code."""

    async def close(self) -> None:
        """Close the connection, and stop the kernel if it was started here."""


class KernelProcess(Protocol):
    """A kernel's child process. It and its descendants end with this process, however that ends."""

    @property
    def isolation(self) -> Isolation:
        """The kernel's level of isolation."""

    @property
    def returncode(self) -> int | None:
        """The exit status, 128 + n for signal n; ``None`` while it runs."""

    def open(self) -> Path:
        """Make a private directory for the kernel's sockets and return it."""

    async def start(self, launch: KernelLaunch) -> None:
        """Start the kernel.

        Raises
        ------
        SandboxRefusedError
            If it cannot have the isolation that was asked for; nothing was started.
        """

    def interrupt(self) -> bool:
        """Send SIGINT to the kernel and its processes if that is possible from outside; return whether it is."""

    async def wait(self, seconds: float | None) -> bool:
        """Wait until it has ended; return whether it has. ``None`` waits for ever."""

    async def stop(self, *, patience: float) -> None:
        """Kill what still runs after `patience` seconds, and remove the directory."""
