"""A kernel of a Jupyter server, over the server's websocket."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import suppress
from typing import Any, Final
from uuid import uuid4

from tornado.websocket import WebSocketClientConnection, WebSocketClosedError

from jupyter_agentbox.background import in_background
from jupyter_agentbox.core.calls import JsonObject

from .ports import Lost, Receive
from .results import ExecutionError
from .server_api import RefusedError, ServerAddress, ServerApi
from .signing import Message, header

log = logging.getLogger(__name__)

#: Seconds between two questions to a kernel that has not been heard.
_NUDGE: Final = 0.5
#: Seconds between tries to end a kernel that the server cannot end.
_AGAIN: Final = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
#: What the server says of a kernel that ended by itself.
_ENDED: Final = frozenset({"dead", "restarting", "autorestarting"})
_CLOSED: Final = "the connection to the kernel was closed: its server may have ended; `reset()` gives a fresh kernel"


class RemoteKernel:
    """A kernel of a Jupyter server.

    Parameters
    ----------
    address : ServerAddress
        The server.
    kernel_id : str or None
        A kernel that runs; ``None`` to start one, which then ends with us.
    kernel_name : str or None
        Which kind to start; ``None`` is the server's default.
    start_timeout : float
        Seconds that starting and connecting may take.
    """

    def __init__(
        self, address: ServerAddress, *, kernel_id: str | None, kernel_name: str | None, start_timeout: float
    ) -> None:
        self.id = kernel_id or ""
        self._is_ours = kernel_id is None
        self._kernel_name = kernel_name
        self._start_timeout = start_timeout
        self._api = ServerApi(address)
        self._session = uuid4().hex
        self._socket: WebSocketClientConnection | None = None
        self._reading: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._receive: Receive = lambda _: None
        self._lost: Lost = lambda _: None

    def listen(self, receive: Receive, lost: Lost) -> None:
        """Set the receiver of messages."""
        self._receive, self._lost = receive, lost

    async def start(self) -> None:
        """Start the kernel unless it is an existing one, and connect.

        Raises
        ------
        ExecutionError, TimeoutError
        """
        try:
            async with asyncio.timeout(self._start_timeout):
                await self._connect()
        except BaseException:
            await asyncio.shield(self.close())
            raise

    def send(self, kind: str, content: JsonObject) -> str:
        """Send a request on the shell channel and return its id."""
        return self._send("shell", kind, content)

    def _send(self, channel: str, kind: str, content: JsonObject) -> str:
        if self._socket is None:
            raise ExecutionError("there is no connection to the kernel")
        head = header(kind, self._session)
        message = {
            "channel": channel,
            "header": head,
            "parent_header": {},
            "metadata": {},
            "content": content,
            "buffers": [],
        }
        try:
            # Flow control is not waited for: what is sent is small.
            self._socket.write_message(json.dumps(message))
        except WebSocketClosedError:
            raise ExecutionError(_CLOSED) from None
        return str(head["msg_id"])

    async def interrupt(self) -> None:
        """Have the server interrupt the kernel."""
        with suppress(ExecutionError):  # the kernel may be gone; who waits for the cell's end hears of that
            await self._api.ask("POST", "api", "kernels", self.id, "interrupt")

    async def restart(self) -> None:
        """Have the server restart the kernel."""
        await self._api.ask("POST", "api", "kernels", self.id, "restart")

    async def close(self) -> None:
        """Disconnect, and stop the kernel if it was started here."""
        socket, self._socket = self._socket, None
        if self._reading is not None:
            self._reading.cancel()
        if socket is not None:
            socket.close()
        if self._is_ours and self.id:
            await self._shut_down()
        self._api.close()

    async def _shut_down(self) -> None:
        for pause in _AGAIN:
            try:
                await self._api.ask("DELETE", "api", "kernels", self.id)
            except RefusedError as error:
                if error.status < 500:
                    return  # it is gone
                # A server that is just starting the kernel again, because it died, cannot end it.
                await asyncio.sleep(pause)
            except ExecutionError:
                return  # the server is gone, and the kernel with it
            else:
                return
        log.warning("kernel %s could not be shut down: it is still running on its server", self.id)

    async def _connect(self) -> None:
        if self._is_ours:
            self.id = await self._start()
        else:
            await self._api.ask("GET", "api", "kernels", self.id)
        self._socket = await self._api.open_channels(self.id, self._session)
        self._socket.protocol.set_nodelay(True)  # type: ignore[union-attr]  # it is open, so it has a protocol
        self._reading = in_background(
            self._read(self._socket),
            what="reading from a kernel",
            on_failure=lambda: self._lost("the connection to the kernel failed; the log says why"),
        )
        while not self._ready.is_set():
            # A kernel that runs something answers on its control channel only; not every kernel has one that answers.
            for channel in ("control", "shell"):
                self._send(channel, "kernel_info_request", {})
            with suppress(TimeoutError):
                async with asyncio.timeout(_NUDGE):
                    await self._ready.wait()

    async def _start(self) -> str:
        wanted = {"name": self._kernel_name} if self._kernel_name else {}
        try:
            return str((await self._api.ask("POST", "api", "kernels", body=wanted))["id"])
        except RefusedError as error:
            if self._kernel_name and error.status >= 500:
                raise ExecutionError(f"no kernel `{self._kernel_name}` could be started: {error}") from None
            raise

    async def _read(self, socket: WebSocketClientConnection) -> None:
        while (data := await socket.read_message()) is not None:
            if (message := _message(data)) is None:
                continue
            if message.channel == "iopub":
                self._ready.set()
            if message.kind == "status" and message.content.get("execution_state") in _ENDED:
                self._lost("the kernel ended; call `reset()` to get a fresh one")
            self._receive(message)
        self._lost(_CLOSED)


def _message(data: str | bytes) -> Message | None:
    try:
        value: Any = json.loads(data)
        parent = value.get("parent_header") or {}
        return Message(
            channel=str(value["channel"]),
            kind=str(value["header"]["msg_type"]),
            parent_id=str(parent.get("msg_id") or ""),
            content=dict(value["content"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None  # a message with buffers comes as bytes, and is not for us
