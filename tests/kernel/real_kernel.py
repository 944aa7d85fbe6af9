"""A real ipykernel process, with a server's end of the link in the test: IOPub from it, control to it."""

from __future__ import annotations

import os
import queue
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import zmq
from jupyter_client import BlockingKernelClient, KernelManager
from jupyter_client.session import Session

from jupyter_agentbox.protocol import messages
from jupyter_agentbox.protocol.messages import FromServer

from .fakes import ServerEnd

TIMEOUT = 60
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
Message = dict[str, Any]


class Execution:
    """One execution, and all that the kernel published meanwhile."""

    def __init__(self) -> None:
        self.published: list[Message] = []
        self.msg_id = ""

    @property
    def own(self) -> list[Message]:
        """What has this execution as its parent."""
        return [each for each in self.published if each["parent_header"].get("msg_id") == self.msg_id]

    def of_type(self, *kinds: str) -> list[Message]:
        """The contents of this execution's messages of these types."""
        return [each["content"] for each in self.own if each["msg_type"] in kinds]

    @property
    def text(self) -> str:
        """What was printed."""
        return "".join(content["text"] for content in self.of_type("stream"))

    @property
    def errors(self) -> list[str]:
        """The names of the exceptions."""
        return [content["ename"] for content in self.of_type("error")]


class RealKernel:
    """A kernel process, driven by the test, and the server's end of its link.

    Parameters
    ----------
    manager : KernelManager
        Of a started kernel.
    server : ServerEnd
        Answers what the kernel side sends.
    """

    def __init__(self, manager: KernelManager, server: ServerEnd) -> None:
        self.manager = manager
        self.server = server
        self.client: BlockingKernelClient = manager.blocking_client()
        self._comm_id = ""
        self._arrived = threading.Condition()
        self._sending = threading.Lock()
        self._stopped = threading.Event()
        info = manager.get_connection_info()
        self._session = Session(key=info["key"], signature_scheme=info["signature_scheme"])
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._control = self._connect(zmq.DEALER, info["control_port"])
        self._iopub = self._connect(zmq.SUB, info["iopub_port"])
        self._iopub.subscribe(b"comm-agentbox-")
        self._thread = threading.Thread(target=self._serve)

    def _connect(self, kind: int, port: int) -> zmq.Socket[bytes]:
        socket = self._context.socket(kind)
        socket.linger = 0
        socket.connect(f"tcp://127.0.0.1:{port}")
        return socket

    def __enter__(self) -> RealKernel:
        self.client.start_channels()
        self.client.wait_for_ready(timeout=TIMEOUT)
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stopped.set()
        self._thread.join(TIMEOUT)
        self.client.stop_channels()
        self._context.destroy(linger=0)

    def start(self, code: str, *, cell_id: str | None = "cell-1", silent: bool = False) -> Execution:
        """Send code; return before it has run."""
        content = {"code": code, "silent": silent, "store_history": not silent, "allow_stdin": False}
        request = self.client.session.msg("execute_request", {**content, "user_expressions": {}})
        request["metadata"] = {} if cell_id is None else {"cellId": cell_id}
        self.client.shell_channel.send(request)
        execution = Execution()
        execution.msg_id = request["header"]["msg_id"]
        return execution

    def follow(self, execution: Execution, until: Callable[[Message], bool] | None = None) -> Execution:
        """Collect what the kernel publishes until the code has run, or until a message of it fits."""
        while True:
            message = self.client.get_iopub_msg(timeout=TIMEOUT)
            execution.published.append(message)
            is_own = message["parent_header"].get("msg_id") == execution.msg_id
            is_end = message["msg_type"] == "status" and message["content"]["execution_state"] == "idle"
            if is_own and (until(message) if until is not None else is_end):
                return execution

    def run(self, code: str, *, cell_id: str | None = "cell-1", silent: bool = False) -> Execution:
        """Run code to its end."""
        return self.follow(self.start(code, cell_id=cell_id, silent=silent))

    def settle(self) -> list[Message]:
        """Return what the kernel published until it has answered a question on its control channel."""
        asked = self.client.session.msg("kernel_info_request", {})
        self.client.control_channel.send(asked)
        found = []
        while True:
            message = self.client.get_iopub_msg(timeout=TIMEOUT)
            found.append(message)
            is_own = message["parent_header"].get("msg_id") == asked["header"]["msg_id"]
            if is_own and message["content"].get("execution_state") == "idle":
                return found

    def complete(self, code: str) -> list[str]:
        """Return the completions at the end of the code."""
        return list(self._shell_reply(self.client.complete(code, len(code)))["matches"])

    def inspect(self, code: str, detail_level: int = 0) -> str:
        """Return what ``?``, or with level 1 ``??``, shows for the name at the end of the code."""
        data = self._shell_reply(self.client.inspect(code, len(code), detail_level))["data"]
        return _COLOUR.sub("", data.get("text/plain", ""))

    def _shell_reply(self, msg_id: str) -> dict[str, Any]:
        while True:
            reply = self.client.get_shell_msg(timeout=TIMEOUT)
            if reply["parent_header"].get("msg_id") == msg_id:
                content: dict[str, Any] = reply["content"]
                return content

    def tell(self, message: FromServer) -> None:
        """Send the kernel side a message."""
        with self._sending:
            self._session.send(self._control, "comm_msg", {"comm_id": self._comm_id, "data": messages.to_json(message)})

    def wait_for(self, kind: type[Any], count: int = 1) -> list[Any]:
        """Wait until so many messages of a type came from the kernel; return them."""

        def found() -> list[Any]:
            return [message for message in self.server.received if isinstance(message, kind)]

        with self._arrived:
            if not self._arrived.wait_for(lambda: len(found()) >= count, TIMEOUT):
                raise queue.Empty(f"{kind.__name__}: {len(found())} of {count}")
            return found()

    def _serve(self) -> None:
        while not self._stopped.is_set():
            if not self._iopub.poll(50):
                continue
            _, frames = self._session.feed_identities(self._iopub.recv_multipart())
            message = self._session.deserialize(frames)
            if message["msg_type"] != "comm_msg":
                continue
            self._comm_id = message["content"]["comm_id"]
            with self._arrived:
                answers = list(self.server.answers(messages.from_kernel(message["content"]["data"])))
                self._arrived.notify_all()
            for answer in answers:
                self.tell(answer)


@contextmanager
def real_kernel(python: str, server: ServerEnd, folder: Path) -> Iterator[RealKernel]:
    """Start a kernel of this Python, with the kernel side loaded as the server loads it."""
    manager = KernelManager(connection_file=str(folder / "kernel.json"))
    assert manager.kernel_spec is not None
    manager.kernel_spec.argv = [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    root = str(Path(__file__).parents[2])
    manager.start_kernel(env={**os.environ, "PYTHONPATH": root, "IPYTHONDIR": str(folder)})
    try:
        with RealKernel(manager, server) as kernel:
            kernel.run("import jupyter_agentbox.kernel.extension as e; e.load(get_ipython()); del e", silent=True)
            yield kernel
    finally:
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()
