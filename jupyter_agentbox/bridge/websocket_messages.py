"""A kernel's messages as a websocket of its gateway carries them: which ones are for us, and how they are read.

A websocket brings everything that a kernel publishes. What a message is stands at its beginning, so that the rest of
what is not for us is neither kept nor parsed. Two forms exist: `v1.kernel.websocket.jupyter.org`, whose parts follow
each other in bytes, and JSON, which older gateways speak. Nothing in a message is trusted: the kernel, which runs the
code under review, wrote all of it but the name of its channel.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.protocol.messages import COMM_PREFIX, MAX_MESSAGE
from jupyter_agentbox.protocol.sizes import MAX_VALUES, count_values

#: The subprotocol that is asked for; a gateway that does not know it speaks JSON.
V1: Final = "v1.kernel.websocket.jupyter.org"
#: Bytes at a message's beginning by which it is told apart. Kernels' own headers have some 300.
HEAD_SIZE: Final = 4096
#: Bytes of the largest message of a link; headers and JSON's form come to its content.
LARGEST: Final = MAX_MESSAGE + 1_000_000
#: Bytes of the largest message of another kind that is read.
_SMALL: Final = 20_000
#: What is read, by its channel and its type, and the most bytes that it may have.
_READ: Final = {
    ("iopub", "comm_msg"): LARGEST,
    ("iopub", "comm_open"): LARGEST,
    ("iopub", "status"): _SMALL,
    ("shell", "execute_reply"): _SMALL,
}
_TYPE: Final = re.compile(rb'"msg_type": ?"([a-z_]{1,20})"')
#: Where the id of a comm stands in the content of its message: before the data or after it.
_ENDS: Final = 400
_PREFIX: Final = f'"{COMM_PREFIX}'.encode()
#: Offsets in the first form: where channel, header, parent, metadata and content begin, and where the content ends.
_FEWEST_OFFSETS: Final = 6
#: More are of a message with many buffers, which none of ours has.
_MOST_OFFSETS: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What is read of a message.

    Parameters
    ----------
    kind : str
        Its type, as in Jupyter's protocol.
    parent_id : str
        The id of the message that it answers.
    content : bytes
        JSON, not parsed.
    """

    kind: str
    parent_id: str
    content: bytes


class UnreadableError(ValueError):
    """A message that is not one of Jupyter's."""


def most_bytes(head: bytes, *, is_v1: bool) -> int:
    """Return how large a message that begins like this may be to be read; 0 if it is not for us at all."""
    channel, kind = _told_v1(head) if is_v1 else _told_json(head)
    if channel is not None:
        return _READ.get((channel, kind), 0)
    return max((most for (_, known), most in _READ.items() if known == kind), default=0)


def read(data: bytes, *, is_v1: bool) -> Message | None:
    """Read a message; ``None`` if it is not for us after all.

    Raises
    ------
    UnreadableError
        If it is none of Jupyter's.
    """
    try:
        return _read_v1(data) if is_v1 else _read_json(data)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise UnreadableError(str(error)[:200]) from None


def is_of_a_link(content: bytes) -> bool:
    """Say whether the content of a comm's message may be one of a kernel side, without reading it."""
    return _PREFIX in content[:_ENDS] or _PREFIX in content[-_ENDS:]


def write(channel: str, kind: str, content: bytes, *, id: str, session: str, date: str, is_v1: bool) -> bytes:
    """Return a message to a kernel.

    Parameters
    ----------
    channel, kind : str
        Where it goes, and its type.
    content : bytes
        JSON in ASCII.
    id, session, date : str
        For its header; the date as ISO 8601.
    is_v1 : bool
        In which form.
    """
    fields = {"msg_id": id, "msg_type": kind, "session": session, "username": "", "date": date, "version": "5.3"}
    header = json.dumps(fields).encode()
    if not is_v1:
        rest = json.dumps({"parent_header": {}, "metadata": {}, "channel": channel, "buffers": []}).encode()
        return b'{"header": %b, "content": %b, %b' % (header, content, rest[1:])
    parts = [channel.encode(), header, b"{}", b"{}", content]
    count = len(parts) + 1
    offsets = [8 * (1 + count)]
    for part in parts:
        offsets.append(offsets[-1] + len(part))
    return b"".join([*(number.to_bytes(8, "little") for number in (count, *offsets)), *parts])


def comm_content(content: bytes) -> JsonObject:
    """Parse the content of a comm's message.

    Raises
    ------
    UnreadableError
        If it is no JSON object.
    """
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(str(error)[:200]) from None
    if not isinstance(value, dict):
        raise UnreadableError("the content is not an object")
    return value


def execution_state(message: Message) -> str | None:
    """Return what a status message says of its kernel."""
    state = comm_content(message.content).get("execution_state")
    return state if isinstance(state, str) else None


def _told_v1(head: bytes) -> tuple[str | None, str]:
    offsets = _offsets(head)
    if not offsets or offsets[2] > len(head):
        return "", ""
    found = _TYPE.search(head, offsets[1], offsets[2])
    return head[offsets[0] : offsets[1]].decode("ascii", "replace"), "" if found is None else found[1].decode()


def _told_json(head: bytes) -> tuple[str | None, str]:
    """Return the type only: the channel stands at the end."""
    found = _TYPE.search(head)
    return None, "" if found is None else found[1].decode()


def _offsets(data: bytes) -> list[int]:
    """Return the places of the parts, none if they cannot be: in order and, as far as is known, within the message."""
    count = int.from_bytes(data[:8], "little")
    if not _FEWEST_OFFSETS <= count <= _MOST_OFFSETS or len(data) < 8 * (1 + count):
        return []
    offsets = [int.from_bytes(data[8 * place : 8 * (place + 1)], "little") for place in range(1, count + 1)]
    is_ordered = all(before <= after for before, after in pairwise(offsets))
    return offsets if is_ordered and offsets[0] >= 8 * (1 + count) else []


def _read_v1(data: bytes) -> Message | None:
    offsets = _offsets(data)
    if not offsets or offsets[-1] > len(data):
        raise UnreadableError("its parts are not where it says")
    channel, header, parent, _, content = (data[begin:end] for begin, end in pairwise(offsets[:6]))
    if len(header) > HEAD_SIZE or len(parent) > _SMALL:
        raise UnreadableError("its header is too long")
    return _message(channel.decode(), json.loads(header), json.loads(parent), content)


def _read_json(data: bytes) -> Message | None:
    if _PREFIX not in data and len(data) > _SMALL:
        return None
    if count_values(data) > MAX_VALUES:
        raise UnreadableError("it has too many values")
    value = json.loads(data)
    content = json.dumps(value["content"]).encode()
    return _message(value["channel"], value["header"], value["parent_header"], content)


def _message(channel: Any, header: Mapping[str, Any], parent: Mapping[str, Any], content: bytes) -> Message | None:
    kind = header["msg_type"]
    if len(content) > _READ.get((channel, kind), -1):
        return None
    if kind.startswith("comm_") and not is_of_a_link(content):
        return None
    return Message(kind=kind, parent_id=str(parent.get("msg_id", ""))[:200], content=content)
