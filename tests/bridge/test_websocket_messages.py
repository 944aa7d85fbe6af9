"""A kernel's messages on a gateway's websocket, and what it may write in their place."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jupyter_server.services.kernels.connection.base import deserialize_msg_from_ws_v1, serialize_msg_to_ws_v1

from jupyter_agentbox.bridge.websocket_messages import (
    HEAD_SIZE,
    LARGEST,
    Message,
    UnreadableError,
    most_bytes,
    read,
    write,
)

OURS = {"comm_id": "agentbox-1", "data": {"type": "hello"}}


def from_gateway(
    kind: str, content: Any, *, channel: str = "iopub", is_v1: bool = True, header: dict[str, Any] | None = None
) -> bytes:
    """A message as Jupyter's server sends it."""
    parts = {
        "header": {"msg_id": "1", "msg_type": kind, **(header or {})},
        "parent_header": {"msg_id": "0", "msg_type": "execute_request"},
        "metadata": {},
        "content": content,
    }
    if is_v1:
        whole: bytes = serialize_msg_to_ws_v1(parts, channel, lambda part: json.dumps(part).encode())
        return whole
    return json.dumps({**parts, "msg_id": "1", "msg_type": kind, "buffers": [], "channel": channel}).encode()


@pytest.mark.parametrize("is_v1", [True, False])
@pytest.mark.parametrize(
    ("kind", "content", "channel", "is_read"),
    [
        ("comm_msg", OURS, "iopub", True),
        ("comm_msg", {"data": {}, "comm_id": "a widget"}, "iopub", False),
        ("comm_msg", OURS, "shell", False),
        ("status", {"execution_state": "restarting"}, "iopub", True),
        ("status", {"execution_state": "dead"}, "control", False),
        ("status", {"execution_state": "x" * 30_000}, "iopub", False),
        ("stream", {"name": "stdout", "text": '"msg_type": "comm_msg" agentbox-'}, "iopub", False),
        ("execute_reply", {"status": "ok"}, "shell", True),
    ],
)
def test_what_is_for_a_link_is_read_and_nothing_else(
    kind: str, content: Any, channel: str, is_read: bool, is_v1: bool
) -> None:
    data = from_gateway(kind, content, channel=channel, is_v1=is_v1)
    is_wanted = len(data) <= most_bytes(data[:HEAD_SIZE], is_v1=is_v1)
    found = read(data, is_v1=is_v1) if is_wanted else None
    expected = Message(kind=kind, parent_id="0", content=json.dumps(content).encode())
    assert found == (expected if is_read else None)


def test_outputs_are_told_by_their_beginning() -> None:
    data = from_gateway("stream", {"name": "stdout", "text": "x" * 1_000_000})
    assert most_bytes(data[:HEAD_SIZE], is_v1=True) == 0
    assert most_bytes(from_gateway("comm_msg", OURS)[:HEAD_SIZE], is_v1=True) == LARGEST


def test_a_header_that_hides_its_type_behind_much_else_is_not_for_a_link() -> None:
    data = from_gateway("comm_msg", OURS, header={"msg_id": "x" * 2 * HEAD_SIZE})
    assert most_bytes(data[:HEAD_SIZE], is_v1=True) == 0


@pytest.mark.parametrize("is_v1", [True, False])
def test_deep_and_long_values_are_refused(is_v1: bool) -> None:
    for value in (b"[" * 100_000, b"9" * 10_000, b"{", b"1"):
        data = from_gateway("comm_msg", OURS, is_v1=False)
        broken = data.replace(json.dumps(OURS).encode(), b'"agentbox-", ' + value)
        with pytest.raises(UnreadableError):
            read(broken, is_v1=is_v1)


@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_are_read_or_refused(data: bytes, is_v1: bool) -> None:
    most_bytes(data, is_v1=is_v1)
    with suppress(UnreadableError):
        assert read(data, is_v1=is_v1) is None


@given(st.lists(st.integers(0, 2**64 - 1), min_size=6, max_size=8), st.binary(max_size=100))
def test_parts_are_taken_only_from_where_they_can_be(offsets: list[int], rest: bytes) -> None:
    data = b"".join(number.to_bytes(8, "little") for number in (len(offsets), *offsets)) + rest
    assert most_bytes(data, is_v1=True) == 0
    with pytest.raises(UnreadableError):
        read(data, is_v1=True)


def test_what_is_written_is_what_a_gateway_reads() -> None:
    content = json.dumps(OURS).encode()
    v1 = write("control", "comm_msg", content, id="7", session="s", date="2026-01-01T00:00:00+00:00", is_v1=True)
    channel, parts = deserialize_msg_from_ws_v1(v1)
    header = json.loads(parts[0])
    assert (channel, header["msg_id"], header["msg_type"], parts[1:]) == (
        "control",
        "7",
        "comm_msg",
        [b"{}", b"{}", content],
    )
    legacy = json.loads(write("control", "comm_msg", content, id="7", session="s", date="d", is_v1=False))
    assert (legacy["channel"], legacy["content"], legacy["header"]["msg_id"]) == ("control", OURS, "7")
