"""Parsing of a kernel's messages on its gateway's WebSocket, and selection of those for us.

A WebSocket carries everything that a kernel publishes. A message's type is at its beginning, so messages for others
need not be stored or parsed. There are two formats: `v1.kernel.websocket.jupyter.org`, with concatenated binary parts,
and JSON, for older gateways. Messages are untrusted: the kernel, which runs the code under review, wrote all of each
message but the name of its channel.
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

#: The requested subprotocol; a gateway that does not support it uses JSON.
V1: Final = "v1.kernel.websocket.jupyter.org"
#: How many bytes at its beginning identify a message. Kernels' own headers have some 300.
HEAD_SIZE: Final = 4096
#: Maximum size of a link's message, in bytes, with allowance for headers and JSON escapes.
LARGEST: Final = MAX_MESSAGE + 1_000_000
#: Maximum size of other messages that are read, in bytes.
_SMALL: Final = 20_000
#: Maximum size in bytes of the messages that are read, by channel and type.
_READ: Final = {
    ("iopub", "comm_msg"): LARGEST,
    ("iopub", "comm_open"): LARGEST,
    ("iopub", "status"): _SMALL,
    ("shell", "execute_reply"): _SMALL,
}
_TYPE: Final = re.compile(rb'"msg_type": ?"([a-z_]{1,20})"')
#: How far from either end of a message's content the comm id is, before or after the data.
_ENDS: Final = 400
_PREFIX: Final = f'"{COMM_PREFIX}'.encode()
#: Offsets in the first format: the starts of channel, header, parent, metadata and content, and the content's end.
_FEWEST_OFFSETS: Final = 6
#: Messages with more have many buffers, which ours do not.
_MOST_OFFSETS: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """The parsed part of a message.

    Parameters
    ----------
    kind : str
        Its type in Jupyter's protocol.
    parent_id : str
        The id of the message that it answers.
    content : bytes
        Unparsed JSON.
    """

    kind: str
    parent_id: str
    content: bytes


class UnreadableError(ValueError):
    """The message is not one of Jupyter's."""


def most_bytes(head: bytes, *, is_v1: bool) -> int:
    """Return the size up to which a message with this beginning is read; 0 if it is not for us."""
    channel, kind = _told_v1(head) if is_v1 else _told_json(head)
    if channel is not None:
        return _READ.get((channel, kind), 0)
    return max((most for (_, known), most in _READ.items() if known == kind), default=0)


def read(data: bytes, *, is_v1: bool) -> Message | None:
    """Parse a message; return ``None`` if it turns out not to be for us.

    Raises
    ------
    UnreadableError
        If it is not one of Jupyter's.
    """
    try:
        return _read_v1(data) if is_v1 else _read_json(data)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise UnreadableError(str(error)[:200]) from None


def is_of_a_link(content: bytes) -> bool:
    """Whether a comm message's content may be a kernel's agentbox message, judging without parsing."""
    return _PREFIX in content[:_ENDS] or _PREFIX in content[-_ENDS:]


def write(channel: str, kind: str, content: bytes, *, id: str, session: str, date: str, is_v1: bool) -> bytes:
    """Serialize a message to a kernel.

    Parameters
    ----------
    channel, kind : str
        Its channel and type.
    content : bytes
        JSON in ASCII.
    id, session, date : str
        For the header; the date in ISO 8601.
    is_v1 : bool
        Whether to use the first format.
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
    """Parse the content of a comm message.

    Raises
    ------
    UnreadableError
        If it is not a JSON object.
    """
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(str(error)[:200]) from None
    if not isinstance(value, dict):
        raise UnreadableError("the content is not an object")
    return value


def execution_state(message: Message) -> str | None:
    """Return the execution state in a status message."""
    state = comm_content(message.content).get("execution_state")
    return state if isinstance(state, str) else None


def _told_v1(head: bytes) -> tuple[str | None, str]:
    offsets = _offsets(head)
    if not offsets or offsets[2] > len(head):
        return "", ""
    found = _TYPE.search(head, offsets[1], offsets[2])
    return head[offsets[0] : offsets[1]].decode("ascii", "replace"), "" if found is None else found[1].decode()


def _told_json(head: bytes) -> tuple[str | None, str]:
    """Return the type only: the channel is at the end."""
    found = _TYPE.search(head)
    return None, "" if found is None else found[1].decode()


def _offsets(data: bytes) -> list[int]:
    """Return the offsets of the parts; empty if they are invalid: not in order, or known to be outside the message."""
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
