"""What code printed, displayed and returned, for the model that wrote it. What people see stays as it is."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from jupyter_agentbox.core.terminal import final_text, without_controls
from jupyter_agentbox.protocol.messages import CARD_MIME_TYPE, ITEM_MIME_TYPE, MAX_CODE_TEXT

#: Characters that are kept of a text: its beginning, and as much of its end.
_HALF: Final = MAX_CODE_TEXT // 4
#: Characters of a traceback that are kept: its end.
_TRACEBACK: Final = 4_000


class CodeOutput:
    """Collects what a piece of code puts out, from any thread.

    Attributes
    ----------
    images : int
        How many images it displayed.
    """

    def __init__(self) -> None:
        self.images = 0
        self._error = ""
        self._head: list[str] = []
        self._room = _HALF
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self._left_out = 0
        self._lock = threading.Lock()

    @property
    def text(self) -> str:
        """What it printed, displayed and returned, in order; of a long text the beginning and the end."""
        with self._lock:
            gap = [f"\n[… {self._left_out:,} characters left out …]\n"] if self._left_out else []
            whole = "".join([*self._head, *gap, *self._tail])
        return final_text(whole).strip("\n")

    @property
    def error(self) -> str:
        """The end of the last traceback; empty if there is none."""
        return self._error

    def add(self, kind: str, content: Mapping[str, Any]) -> None:
        """Take an output message."""
        with self._lock:
            if kind == "stream":
                self._add(str(content.get("text", "")))
            elif kind == "error":
                lines = "\n".join(map(str, content.get("traceback", [])))
                self._error = without_controls(lines[-4 * _TRACEBACK :])[-_TRACEBACK:].strip()
            elif kind in ("display_data", "execute_result"):
                self._add_display(content.get("data") or {})

    def _add_display(self, data: Mapping[str, Any]) -> None:
        if CARD_MIME_TYPE in data or ITEM_MIME_TYPE in data:
            return  # ours, for the person
        self.images += any(str(kind).startswith("image/") for kind in data)
        text = data.get("text/plain", data.get("text/markdown"))
        if text is not None:
            self._add(f"{text}\n")

    def _add(self, text: str) -> None:
        head, rest = text[: self._room], text[self._room :]
        if head:
            self._head.append(head)
            self._room -= len(head)
        if rest:
            self._tail.append(rest)
            self._tail_size += len(rest)
        while self._tail_size > _HALF:
            surplus = self._tail_size - _HALF
            first = self._tail.popleft()
            dropped = min(surplus, len(first))
            if dropped < len(first):
                self._tail.appendleft(first[dropped:])
            self._tail_size -= dropped
            self._left_out += dropped


@contextmanager
def collected(session: Any, request_id: str) -> Iterator[CodeOutput]:
    """Collect what is put out under one cell while the block runs.

    All outputs of a kernel, of its streams, its displays and its errors, are sent by its session.

    Parameters
    ----------
    session : jupyter_client.session.Session
        The kernel's.
    request_id : str
        The id of the request that runs the cell.
    """
    output = CodeOutput()
    send = session.send

    def send_and_note(stream: Any, message: Any, content: Any = None, parent: Any = None, **more: Any) -> Any:
        with suppress(Exception):  # whatever a message looks like, it is sent
            is_whole = isinstance(message, Mapping)
            under = message.get("parent_header") if is_whole else parent
            if _id_of(under) == request_id:
                kind, said = (message["header"]["msg_type"], message["content"]) if is_whole else (message, content)
                output.add(str(kind), said or {})
        return send(stream, message, content, parent, **more)

    session.send = send_and_note
    try:
        yield output
    finally:
        session.send = send


def _id_of(parent: Any) -> Any:
    return parent.get("header", parent).get("msg_id") if parent else None
