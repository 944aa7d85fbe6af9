"""What runs code, whether it is a process of ours or a kernel on a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from jupyter_agentbox.core.calls import JsonObject

from .wire import Message

#: Called in the event loop with each message of the kernel.
Receive = Callable[[Message], None]
#: Called once, with what happened, when the kernel is gone for good.
Lost = Callable[[str], None]


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
