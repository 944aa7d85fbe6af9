"""A kernel of a user's server, by the server's websocket: the files of its connection are closed to all other users."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import websocket

from .hub import TIMEOUT


class WebKernel:
    """A kernel that runs code.

    Parameters
    ----------
    channels : WebSocket
        Its connection.
    """

    def __init__(self, channels: websocket.WebSocket) -> None:
        self._channels = channels

    def start(self, code: str) -> str:
        """Let it run code; return what `result` takes."""
        id = secrets.token_hex(8)
        header = {"msg_id": id, "msg_type": "execute_request", "username": "", "session": "s", "version": "5.3"}
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
        self._channels.send(json.dumps(message))
        return id

    def result(self, id: str) -> str:
        """Wait until code has run; return what it printed and the traceback of its error."""
        said: list[str] = []
        while True:
            message: Any = json.loads(self._channels.recv())
            if message["parent_header"].get("msg_id") != id:
                continue
            content = message["content"]
            said.append(content.get("text") or "".join(content.get("traceback", ())))
            if content.get("execution_state") == "idle":
                return "".join(said)

    def run(self, code: str) -> str:
        """Run code; return what it printed and the traceback of its error."""
        return self.result(self.start(code))


@contextmanager
def running_web_kernel(server: str, kernel: str, token: str) -> Iterator[WebKernel]:
    """Connect to a kernel of a server."""
    url = f"{server.replace('http', 'ws', 1)}api/kernels/{kernel}/channels"
    header = {"Authorization": f"token {token}"}
    with closing(websocket.create_connection(url, timeout=TIMEOUT, header=header)) as channels:
        yield WebKernel(channels)
