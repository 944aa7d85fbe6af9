"""One kernel's line: agentbox messages in from IOPub, answers out on the control channel.

The line has a `Session` of its own with the kernel's key, because two clients that share a session object see each
other's signatures as duplicates. Its IOPub socket subscribes to agentbox comms only, so that a cell's output never
reaches it, whatever its size.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import cast

import zmq
import zmq.asyncio
from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.jsonutil import json_default
from jupyter_client.manager import KernelManager
from jupyter_client.session import Session

from jupyter_agentbox.core.calls import JsonObject, JsonValue
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.protocol.messages import COMM_PREFIX, MAX_MESSAGE

log = logging.getLogger(__name__)

#: Called with the comm's id and the message's data.
Receive = Callable[[str, JsonValue], None]

#: IOPub topics of comm messages are ``comm-<comm_id>``.
_TOPIC = f"comm-{COMM_PREFIX}".encode()


def make_context() -> zmq.asyncio.Context:
    """Return a context whose sockets never drop a message because too many wait."""
    context = zmq.asyncio.Context()
    context.setsockopt(zmq.RCVHWM, 0)
    context.setsockopt(zmq.SNDHWM, 0)
    context.setsockopt(zmq.LINGER, 100)
    return context


class ZmqKernelChannel:
    """A `KernelChannel` over ZeroMQ.

    Parameters
    ----------
    manager : KernelManager
        The kernel's manager; only its connection information is used, and what started the kernel.
    context : zmq.asyncio.Context
        From `make_context`, shared by all lines.
    receive : callable
        Called in the event loop for each message of an agentbox comm.
    """

    def __init__(self, *, manager: KernelManager, context: zmq.asyncio.Context, receive: Receive) -> None:
        self._manager = manager
        self._session = Session(key=manager.session.key, signature_scheme=manager.session.signature_scheme, pack=_pack)
        self._client = AsyncKernelClient(session=self._session, context=context)
        # Not as arguments: traitlets would warn of those that it does not know, with the kernel's key in the warning.
        self._client.load_connection_info(manager.get_connection_info())
        self._receive = receive
        self._iopub = cast(zmq.asyncio.Socket, self._client.connect_iopub())
        self._iopub.setsockopt(zmq.UNSUBSCRIBE, b"")
        self._iopub.setsockopt(zmq.SUBSCRIBE, _TOPIC)
        self._control = cast(zmq.asyncio.Socket, self._client.connect_control())
        self._outbox: asyncio.Queue[list[bytes]] = asyncio.Queue()
        self._tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._speak())]

    @property
    def isolation(self) -> Isolation:
        """The level that whatever started the kernel reached; a provisioner that says nothing reached none."""
        return Isolation(getattr(self._manager.provisioner, "isolation", Isolation.NONE))

    def send(self, comm_id: str, message: JsonObject) -> None:
        """Queue a message for the kernel side that owns this comm."""
        # Serialised here and not by `_speak`, so that who sends what cannot be sent is told.
        content = {"comm_id": comm_id, "data": message}
        self._outbox.put_nowait(self._session.serialize(self._session.msg("comm_msg", content)))

    async def execute_silently(self, code: str) -> None:
        """Queue code on the kernel's shell channel; no output, no history, no answer awaited."""
        content = {
            "code": code,
            "silent": True,
            "store_history": False,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": False,
        }
        shell = cast(zmq.asyncio.Socket, self._client.connect_shell())
        try:
            await shell.send_multipart(self._session.serialize(self._session.msg("execute_request", content)))
            await shell.recv_multipart()
        finally:
            shell.close()

    async def close(self) -> None:
        """Hang up."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._iopub.close()
        self._control.close()

    async def _listen(self) -> None:
        while True:
            self._take(await self._iopub.recv_multipart())
            # A message that is there already is received without a pause: a kernel that floods must not stop the rest.
            await asyncio.sleep(0)

    def _take(self, frames: Sequence[bytes]) -> None:
        """Hand on what a kernel sent. It runs the code under review, which can write anything to its sockets."""
        if sum(map(len, frames)) > MAX_MESSAGE:
            log.warning("a kernel sent a message of more than %d bytes; it is ignored", MAX_MESSAGE)
            return
        try:
            _, parts = self._session.feed_identities(list(frames))
            message = self._session.deserialize(parts)
            kind, content = message["msg_type"], message["content"]
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            log.warning("a kernel sent a message that cannot be read; it is ignored")
            return
        if kind in ("comm_open", "comm_msg") and isinstance(content, dict):
            self._receive(str(content.get("comm_id")), content.get("data"))

    async def _speak(self) -> None:
        while True:
            frames = await self._outbox.get()
            with suppress(zmq.Again):
                await self._control.send_multipart(frames)
            await self._drain_control()

    async def _drain_control(self) -> None:
        """Drop what the kernel answers on control; the link's answers come on IOPub."""
        while await self._control.poll(0):
            await self._control.recv_multipart()


def _pack(value: object) -> bytes:
    """Return JSON in ASCII: a person's reason or a tool's text may hold a lone surrogate, which UTF-8 cannot."""
    return json.dumps(value, default=json_default, separators=(",", ":")).encode("ascii")
