"""An ipykernel's transport: outgoing on IOPub, incoming on the control channel.

Outgoing: ``comm_msg`` of a comm that is not announced to pages (so none closes it), and a cell's outputs. Incoming:
``comm_msg`` on the control channel, which has its own thread and so reaches a kernel with a busy main thread.

ipykernel also sends "busy" and "idle" around each control message. Pages, and the server's idle culler, would consider
a kernel with a waiting cell idle; so after each message that arrives while a cell runs, "busy" is sent again.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol
from uuid import uuid4

from comm import create_comm

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.text import encodable
from jupyter_agentbox.protocol.messages import COMM_PREFIX, COMM_TARGET

from .cells import Cell, Cells

_COMM_MESSAGE = "comm_msg"


class Transport(Protocol):
    """The interface that the link needs to a kernel."""

    def send(self, message: JsonObject) -> None:
        """Send a message to the server, from any thread."""

    def listen(self, receive: Callable[[Any], None]) -> None:
        """Pass each of the server's messages to `receive`, in any thread."""

    def publish(self, kind: str, content: Mapping[str, Any], cell: Cell) -> None:
        """Publish an output message under a cell, from any thread."""


class KernelTransport:
    """The transport of an ipykernel.

    Parameters
    ----------
    kernel : ipykernel.kernelbase.Kernel
        The kernel of this process.
    cells : Cells
        Tracks the running cell.

    Attributes
    ----------
    comm_id : str
        The comm's id, to which the server sends answers.
    """

    def __init__(self, kernel: Any, cells: Cells) -> None:
        self._kernel = kernel
        self._cells = cells
        self.comm_id = f"{COMM_PREFIX}{uuid4().hex}"
        self._comm: Any = None

    def send(self, message: JsonObject) -> None:
        """Send a message to the server."""
        if self._comm is None:
            # Not the primary end: that would announce the comm to all pages, which close unknown comms.
            self._comm = create_comm(target_name=COMM_TARGET, comm_id=self.comm_id, primary=False)
        self._comm.send(data=message)

    def listen(self, receive: Callable[[Any], None]) -> None:
        """Receive this comm's messages on the control channel; leave others to the previous handler."""
        handlers = self._kernel.control_handlers
        previous = handlers.get(_COMM_MESSAGE)

        def comm_message(stream: Any, ident: Any, message: Mapping[str, Any]) -> Any:
            content = message.get("content", {})
            if content.get("comm_id") != self.comm_id:
                return previous(stream, ident, message) if previous is not None else None
            try:
                receive(content.get("data"))
            finally:
                self._after_this_message(lambda: self._cells.while_running(self._say_busy))
            return None

        handlers[_COMM_MESSAGE] = comm_message

    def publish(self, kind: str, content: Mapping[str, Any], cell: Cell) -> None:
        """Publish an output message under a cell.

        Not through the shell's display publisher, which would put it under the running cell, and with ``%%capture``
        hide a question to a person.
        """
        if kind != "update_display_data":  # an update changes an output in place, regardless of later prints
            flush_streams()
        self._send_iopub(kind, dict(content), cell)

    def _say_busy(self, cell: Cell) -> None:
        self._send_iopub("status", {"execution_state": "busy"}, cell)

    def _send_iopub(self, kind: str, content: dict[str, Any], cell: Cell) -> None:
        kernel = self._kernel
        parent = dict(cell.parent) or None

        def send(content: JsonObject) -> None:
            kernel.session.send(kernel.iopub_socket, kind, content, parent=parent, ident=kind.encode())

        try:
            send(content)
        except (TypeError, ValueError):  # text of an agent or a person may have half of a surrogate pair
            send(_encodable(content))

    @staticmethod
    def _after_this_message(act: Callable[[], None]) -> None:
        # The kernel sends "idle" when the handler returns, before its loop runs what is scheduled here.
        asyncio.get_running_loop().call_soon(act)


def _encodable(value: Any) -> Any:
    """Return JSON that UTF-8 can encode."""
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    if isinstance(value, dict):
        return {_encodable(name): _encodable(item) for name, item in value.items()}
    return value


def flush_streams() -> None:
    """Send buffered prints."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # a cell may have replaced it with anything, closed or without that method
            stream.flush()
