"""A kernel as a child process, connected by sockets in a directory that only this user can enter."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Final
from uuid import uuid4

import zmq

from jupyter_agentbox.background import in_thread
from jupyter_agentbox.core.calls import JsonObject, JsonValue
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.processes.kernel_launch import KernelLaunch
from jupyter_agentbox.protocol.messages import COMM_PREFIX

from .local_process import LocalProcess
from .owner_socket import OwnerSocket
from .ports import KernelProcess, Lost, OnOutput, Receive
from .results import ExecutionError
from .signing import Message, MessageError, MessageSigner
from .sockets import LoopSocket, make_context

#: Seconds that a kernel has to end when it is asked to.
_PATIENCE: Final = 1.0
#: Seconds without a word from a kernel whose ipykernel may be too old to say "welcome", until it is asked something.
_NUDGE: Final = 1.0
#: How much of a kernel's last words is told, in characters.
_LAST_WORDS: Final = 2000
#: The id, among those of comms, of the messages that come through the owner's socket.
_OWNER: Final = f"{COMM_PREFIX}owner"
_PORTS: Final = {"shell_port": 1, "iopub_port": 2, "stdin_port": 3, "control_port": 4, "hb_port": 5}
#: For people and programs: outputs are read as plain text.
_PLAIN_TERMINAL: Final = {"TERM": "dumb", "NO_COLOR": "1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """What the launcher does to a kernel before its first cell.

    Parameters
    ----------
    working_dir : str or None
        Where each cell starts; ``None`` leaves it to the code.
    approve_shell_cmds : bool
        Whether shell commands ask first.
    require_shell_escape : bool
        Whether other ways to start a program are refused.
    """

    working_dir: str | None = None
    approve_shell_cmds: bool = False
    require_shell_escape: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSettings:
    """How to start a kernel.

    Parameters
    ----------
    env : mapping
        Variables for it, besides those that any process needs.
    start_timeout : float
        Seconds that it may take.
    preparation : Preparation
        What is done before the first cell.
    """

    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    start_timeout: float = 30.0
    preparation: Preparation = field(default_factory=Preparation)


class LocalKernel:
    """An ipykernel in a child process. It and its descendants end with this process.

    Parameters
    ----------
    settings : KernelSettings
        How to start it.
    make_process : callable
        Returns the process that it is to run in, given who hears what that writes.
    """

    def __init__(
        self, settings: KernelSettings, make_process: Callable[[OnOutput], KernelProcess] = LocalProcess
    ) -> None:
        self.id = str(uuid4())
        self._settings = settings
        self._key = secrets.token_hex(32)
        self._signer = MessageSigner(self._key)
        self._context: zmq.Context[zmq.Socket[bytes]] | None = None
        self._sockets: dict[str, LoopSocket] = {}
        self._link: OwnerSocket | None = None
        self._process = make_process(self._on_output)
        self._watch: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._is_closing = False
        self._words: deque[str] = deque(maxlen=100)
        self._receive: Receive = lambda _: None
        self._lost: Lost = lambda _: None

    @property
    def isolation(self) -> Isolation:
        """The running kernel's level of isolation."""
        return self._process.isolation

    def listen(self, receive: Receive, lost: Lost) -> None:
        """Set the receiver of messages."""
        self._receive, self._lost = receive, lost

    async def start(self) -> None:
        """Start the process and wait until it is connected.

        Raises
        ------
        ExecutionError
            If it ends; the text has its last words.
        SandboxRefusedError
            If it cannot have the isolation that was asked for.
        TimeoutError
            If it takes too long.
        """
        try:
            await self._start()
        except BaseException:
            await asyncio.shield(self.close())
            raise

    def send(self, kind: str, content: JsonObject) -> str:
        """Send a request on the shell channel and return its id."""
        return self._send("shell", kind, content)

    def send_comm(self, comm_id: str, data: JsonObject) -> None:
        """Send a comm message by the way on which that comm's messages arrive. Both work while a cell runs."""
        if comm_id == _OWNER:
            if self._link is not None:
                self._link.send(data)
        elif "control" in self._sockets:
            self._send("control", "comm_msg", {"comm_id": comm_id, "data": data})

    async def interrupt(self) -> None:
        """Send SIGINT to the kernel's process group, so that processes of the cell receive it, too."""
        if not self._process.interrupt():
            self._send("control", "interrupt_request", {})

    async def close(self) -> None:
        """Stop the process and its descendants, by a request at first."""
        self._is_closing = True
        if self._watch is not None:
            self._watch.cancel()
        if self._ready.is_set() and "control" in self._sockets:
            self._send("control", "shutdown_request", {"restart": False})
        await self._process.stop(patience=_PATIENCE if self._ready.is_set() else 0.0)
        for socket in self._sockets.values():
            socket.close()
        self._sockets.clear()
        if self._link is not None:
            self._link.close()
        if self._context is not None:
            self._context.destroy()
            self._context = None

    async def _start(self) -> None:
        sockets = await in_thread(self._process.open)  # removes what killed processes left
        info = {"transport": "ipc", "ip": str(sockets / "k"), **_PORTS}
        signing = {"key": self._key, "signature_scheme": "hmac-sha256"}
        preparation = self._settings.preparation
        self._link = link = OwnerSocket.open(self._take)
        fds = (link.their_fd,) if link is not None else ()
        launch = KernelLaunch(
            connection=json.dumps({**info, **signing}),
            preparation=json.dumps({**asdict(preparation), "owner_fd": fds[0] if fds else None}),
            env={**_PLAIN_TERMINAL, **self._settings.env},
            cwd=preparation.working_dir,
            pass_fds=fds,
        )
        starting = asyncio.ensure_future(self._process.start(launch))
        self._connect(sockets)
        await starting
        if link is not None:
            link.hand_over()
        self._watch = asyncio.ensure_future(self._watch_process())
        async with asyncio.timeout(self._settings.start_timeout):
            await self._wait_until_ready()

    def _connect(self, sockets: Path) -> None:
        self._context = make_context()
        for channel, kind in (("iopub", zmq.SUB), ("shell", zmq.DEALER), ("control", zmq.DEALER)):
            address = f"ipc://{sockets}/k-{_PORTS[f'{channel}_port']}"
            self._sockets[channel] = LoopSocket(self._context, kind, address, partial(self._read, channel))

    async def _wait_until_ready(self) -> None:
        while not self._ready.is_set():
            try:
                async with asyncio.timeout(_NUDGE):
                    await self._ready.wait()
            except TimeoutError:
                self.send("kernel_info_request", {})
        if self._watch is not None and self._watch.done():
            raise ExecutionError(f"the kernel did not start.{self._last_words()}")

    def _send(self, channel: str, kind: str, content: JsonObject) -> str:
        if channel not in self._sockets:
            raise ExecutionError("the kernel is not running")
        id, parts = self._signer.pack(kind, content)
        self._sockets[channel].send(parts)
        return id

    def _read(self, channel: str, parts: list[bytes]) -> None:
        try:
            message: Message = self._signer.unpack(channel, parts)
        except MessageError:
            return  # a kernel runs any code, which can write anything to its sockets
        if channel == "iopub":
            self._ready.set()  # the first message of any kind: from now on none is missed
        self._receive(message)
        if message.kind == "stream" and self._link is not None:
            self._link.text_came()

    def _take(self, data: JsonValue) -> None:
        """Handle a message of the owner's socket like one of a comm."""
        content = {"comm_id": _OWNER, "data": data}
        self._receive(Message(channel="iopub", kind="comm_msg", parent_id="", content=content))

    async def _watch_process(self) -> None:
        await self._process.wait(None)
        self._ready.set()
        if not self._is_closing:
            status = self._process.returncode
            how = f"by signal {status - 128}" if status is not None and status > 128 else f"with status {status}"
            self._lost(f"the kernel ended {how}; call `reset()` to get a fresh one.{self._last_words()}")

    def _on_output(self, chunk: bytes) -> None:
        self._words.append(chunk.decode("utf-8", "replace"))

    def _last_words(self) -> str:
        words = "".join(self._words).strip()[-_LAST_WORDS:]
        return f"\n{words}" if words else ""
