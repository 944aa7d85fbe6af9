"""What runs code, whether it is a process of ours or a kernel on a server."""

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
    """A kernel that is connected."""

    @property
    def id(self) -> str:
        """The kernel's id."""

    def listen(self, receive: Receive, lost: Lost) -> None:
        """Say who gets the messages. Before `start`."""

    async def start(self) -> None:
        """Start, or connect to, the kernel; when this returns no output can be missed.

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
        """Interrupt what runs."""

    async def close(self) -> None:
        """End the kernel, if it is ours, and the connection."""


class KernelProcess(Protocol):
    """The process of a kernel of ours. It and all that it starts end with this process, however that ends."""

    @property
    def isolation(self) -> Isolation:
        """How far the kernel is kept from what is around it."""

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
        """Send SIGINT to the kernel and what it runs, if that can be done from outside; say whether it can."""

    async def wait(self, seconds: float | None) -> bool:
        """Wait until it has ended; say whether it has. ``None`` waits for ever."""

    async def stop(self, *, patience: float) -> None:
        """End what still runs after `patience` seconds, and remove the directory."""
