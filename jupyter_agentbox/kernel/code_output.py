"""Captures the output of code for the model that wrote it, without changing what people see."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from jupyter_agentbox.core.terminal import final_text, without_controls
from jupyter_agentbox.protocol.messages import CARD_MIME_TYPE, ITEM_MIME_TYPE, MAX_CODE_TEXT

#: How many characters of a text's beginning, and of its end, are kept.
_HALF: Final = MAX_CODE_TEXT // 4
#: How many characters of a traceback's end are kept.
_TRACEBACK: Final = 4_000


class CodeOutput:
    """Collects the output of code, from any thread.

    Attributes
    ----------
    images : int
        Number of displayed images.
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
        """Printed, displayed and returned text, in order; shortened in the middle if long."""
        with self._lock:
            gap = [f"\n[… {self._left_out:,} characters left out …]\n"] if self._left_out else []
            whole = "".join([*self._head, *gap, *self._tail])
        return final_text(whole).strip("\n")

    @property
    def error(self) -> str:
        """The end of the last traceback; empty if there is none."""
        return self._error

    def add(self, kind: str, content: Mapping[str, Any]) -> None:
        """Add an output message."""
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
            return  # our own, for the person
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
    """Collect the outputs of one cell within the context.

    The kernel's session sends all of its outputs: streams, displays and errors.

    Parameters
    ----------
    session : jupyter_client.session.Session
        The kernel's session.
    request_id : str
        Id of the cell's execute request.
    """
    output = CodeOutput()
    send = session.send

    def send_and_note(
        stream: Any, message: Any, content: Any = None, parent: Any = None, *more: Any, **named: Any
    ) -> Any:
        with suppress(Exception):  # any message must still be sent
            is_whole = isinstance(message, Mapping)
            under = message.get("parent_header") if is_whole else parent
            if _id_of(under) == request_id:
                kind, said = (message["header"]["msg_type"], message["content"]) if is_whole else (message, content)
                output.add(str(kind), said or {})
        return send(stream, message, content, parent, *more, **named)

    session.send = send_and_note
    try:
        yield output
    finally:
        session.send = send


def _id_of(parent: Any) -> Any:
    return parent.get("header", parent).get("msg_id") if parent else None
