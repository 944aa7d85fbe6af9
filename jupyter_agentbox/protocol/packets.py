"""Messages between a kernel and its owner on a packet socket (``SOCK_SEQPACKET``, unix(7)).

A packet is sent entirely or not at all, so an interrupt never leaves a partial one. A long message is split: the first
byte of each packet says whether it begins a message, ends one, both or neither. An incomplete message is dropped when
the next one begins. ::

    packet   flags  JSON, or a part of it

What the kernel prints is sent on IOPub. So that a message does not overtake earlier text, each says how many texts the
kernel has sent on IOPub since it started.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from jupyter_agentbox.core.calls import JsonObject, JsonValue

from .messages import MAX_MESSAGE, MessageError, TooLargeError, head_id
from .sizes import MAX_VALUES, count_values

#: Maximum size of a packet in bytes; a socket's buffer holds several.
MAX_PACKET: Final = 65_536

#: The key with that number in a kernel's messages.
TEXTS_BEFORE: Final = "texts_before"

_FIRST: Final = 1
_LAST: Final = 2
_PART: Final = MAX_PACKET - 1


def to_packets(message: JsonObject) -> Iterator[bytes]:
    """Yield the packets of a message.

    Raises
    ------
    TypeError, ValueError
        If it is not JSON.
    """
    # In UTF-8, like comm messages, so that sizes are comparable. Lone surrogates, in a person's reason or a tool's
    # text, are kept.
    data = json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass")
    if len(data) <= _PART:
        yield b"\x03" + data
        return
    for start in range(0, len(data), _PART):
        flags = (_FIRST if start == 0 else 0) | (_LAST if start + _PART >= len(data) else 0)
        yield bytes((flags,)) + data[start : start + _PART]


class Joiner:
    """Joins packets to messages.

    Parameters
    ----------
    is_limited : bool
        Whether messages are limited to `MAX_MESSAGE` bytes and `MAX_VALUES` values. Those of a kernel are; those of its
        owner are not, because the results in them are limited where an MCP server sends them.
    """

    def __init__(self, *, is_limited: bool = True) -> None:
        self._is_limited = is_limited
        self._parts: list[bytes] | None = None
        self._size = 0

    def feed(self, packet: bytes) -> JsonValue | None:
        """Add a packet; return the message that it completes, if any.

        Raises
        ------
        MessageError
            If it completes a message that cannot be parsed.
        TooLargeError
            If the message exceeds a limit with this packet.
        """
        flags = packet[0] if packet else 0
        if flags & _FIRST:
            self._parts, self._size = [], 0
        if self._parts is None:
            return None  # the message was too long, or its beginning was never sent
        self._parts.append(packet[1:])
        self._size += len(packet)
        if self._is_limited and self._size > MAX_MESSAGE:
            head, self._parts = self._parts[0], None
            raise TooLargeError(f"a message of more than {MAX_MESSAGE:,} bytes", id=head_id(head))
        if not flags & _LAST:
            return None
        data, self._parts = b"".join(self._parts), None
        if self._is_limited and count_values(data) > MAX_VALUES:
            raise TooLargeError(f"a message of more than {MAX_VALUES:,} values", id=head_id(data))
        try:
            value: JsonValue = json.loads(data)
        except (ValueError, RecursionError):
            raise MessageError("bytes that are not JSON") from None
        return value
