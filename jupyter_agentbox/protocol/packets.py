"""Messages on a socket that keeps packets apart (``SOCK_SEQPACKET``, unix(7)), between a kernel and its owner.

A packet is sent whole or not at all, so an interrupt never leaves half of one. A long message is cut: the first byte of
each packet says whether it begins one, ends one, both or neither. A message that was not sent to its end is dropped
when the next one begins. ::

    packet   flags  JSON, or a part of it

What the kernel prints goes another way, on IOPub. So that a message does not overtake the text before it, the kernel
says in each how many texts it has sent on IOPub since it was started.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from jupyter_agentbox.core.calls import JsonObject, JsonValue

from .messages import MAX_MESSAGE, MessageError, TooLargeError, head_id
from .sizes import MAX_VALUES, count_values

#: Bytes of the largest packet; a socket's buffer holds some of them.
MAX_PACKET: Final = 65_536

#: The key of a kernel's messages under which that number stands.
TEXTS_BEFORE: Final = "texts_before"

_FIRST: Final = 1
_LAST: Final = 2
_PART: Final = MAX_PACKET - 1


def to_packets(message: JsonObject) -> Iterator[bytes]:
    """Yield the packets of a message.

    Raises
    ------
    TypeError, ValueError
        If it is no JSON.
    """
    # In UTF-8, as comm messages are, so that one measure of size holds for both. A person's reason or a tool's text may
    # hold a lone surrogate, which passes as it is.
    data = json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass")
    if len(data) <= _PART:
        yield b"\x03" + data
        return
    for start in range(0, len(data), _PART):
        flags = (_FIRST if start == 0 else 0) | (_LAST if start + _PART >= len(data) else 0)
        yield bytes((flags,)) + data[start : start + _PART]


class Joiner:
    """Puts messages together from their packets."""

    def __init__(self) -> None:
        self._parts: list[bytes] | None = None
        self._size = 0

    def feed(self, packet: bytes) -> JsonValue | None:
        """Take a packet; return the message that it completes, if it does.

        Raises
        ------
        MessageError
            If it completes a message that cannot be read.
        TooLargeError
            If the message has more than `MAX_MESSAGE` bytes, at the packet with which it has.
        """
        flags = packet[0] if packet else 0
        if flags & _FIRST:
            self._parts, self._size = [], 0
        if self._parts is None:
            return None  # the beginning was too long or never sent
        self._parts.append(packet[1:])
        self._size += len(packet)
        if self._size > MAX_MESSAGE:
            head, self._parts = self._parts[0], None
            raise TooLargeError(f"a message of more than {MAX_MESSAGE:,} bytes", id=head_id(head))
        if not flags & _LAST:
            return None
        data, self._parts = b"".join(self._parts), None
        if count_values(data) > MAX_VALUES:
            raise TooLargeError(f"a message of more than {MAX_VALUES:,} values", id=head_id(data))
        try:
            value: JsonValue = json.loads(data)
        except (ValueError, RecursionError):
            raise MessageError("bytes that are not JSON") from None
        return value
