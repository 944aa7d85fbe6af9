from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_agentbox.core.calls import JsonValue
from jupyter_agentbox.protocol.messages import (
    VERSION,
    AgentCommand,
    Asked,
    Call,
    Cancel,
    CodeRan,
    Failure,
    FromKernel,
    FromServer,
    GetModule,
    GetVariables,
    Hello,
    ListPending,
    ListServers,
    MessageError,
    Ping,
    Pong,
    Reply,
    RunCode,
    Running,
    StartTurn,
    ToolsChanged,
    TurnEvent,
    Unfinished,
    Waiting,
    Welcome,
    from_kernel,
    from_server,
    to_json,
)
from tests.samples import json_objects, json_values, texts

KERNEL: list[FromKernel] = [
    Hello(),
    ListServers(id="1"),
    GetModule(id="1", server="shop"),
    ListPending(id="1"),
    Call(id="1", server="shop", tool="delete_order", arguments={"a": [1, None]}),
    Call(id="1", server="shop", tool="delete_order", arguments={}, cell_id="c"),
    StartTurn(id="1", prompt="Plot it"),
    StartTurn(id="1", prompt="Plot it", options={"new": True, "steps": 3}, cell_id="c"),
    CodeRan(id="1", run_id="2", content={"status": "completed", "text": "42"}),
    AgentCommand(id="1", command="name", arguments=["October"]),
    Cancel(ids=["1"]),
    Ping(ids=[]),
    Ping(ids=["1", "2"]),
]
SERVER: list[FromServer] = [
    Welcome(server_version="1", url="http://localhost:8888/lab"),
    Waiting(id="1", request_id="r"),
    Waiting(id="1", request_id="r", expires_at="2026-05-01T12:00:00Z"),
    Running(id="1", request_id="r"),
    Asked(id="1", request_id="r"),
    TurnEvent(id="1", event={"type": "turn_started"}),
    RunCode(id="1", run_id="2", code="6 * 7", request_id="r"),
    GetVariables(id="1", run_id="2"),
    Reply(id="1", content={"x": {"y": 1}}),
    Reply(id="1", content={}, request_id="r"),
    Failure(id="1", code="rejected", message="no"),
    Failure(id="1", code="rejected", message="no", request_id="r", details={"reason": "no"}),
    Unfinished(ids=["1"]),
    Pong(unknown=["1"]),
    ToolsChanged(server="shop"),
]


@pytest.mark.parametrize("message", KERNEL, ids=repr)
def test_a_kernels_message_reads_back(message: FromKernel) -> None:
    assert from_kernel(to_json(message)) == message


@pytest.mark.parametrize("message", SERVER, ids=repr)
def test_a_servers_message_reads_back(message: FromServer) -> None:
    assert from_server(to_json(message)) == message


def test_every_kind_of_message_is_in_these_tests() -> None:
    assert {type(message) for message in KERNEL} == set(FromKernel.__args__)
    assert {type(message) for message in SERVER} == set(FromServer.__args__)


@pytest.mark.parametrize("message", KERNEL, ids=repr)
def test_neither_side_takes_the_others_messages(message: FromKernel) -> None:
    with pytest.raises(MessageError):
        from_server(to_json(message))


def test_a_message_as_json_is_not_a_copy_so_that_large_results_cost_nothing() -> None:
    content: dict[str, JsonValue] = {"x": 1}

    assert to_json(Reply(id="1", content=content))["content"] is content


HOSTILE: list[Any] = [
    None,
    1,
    "hello",
    [],
    {},
    {"type": None},
    {"type": ["hello"]},
    {"type": {}},
    {"type": "no such"},
    {"type": "__class__"},
    {"type": "hello", "version": VERSION + 1},
    {"type": "hello", "version": True},
    {"type": "hello", "version": "1"},
    {"type": "hello", "version": None},
    {"type": "hello", "__class__": "x"},
    {"type": "hello", "type_": "x"},
    {"type": "call", "id": "1", "server": "s", "tool": "t"},
    {"type": "call", "id": "1", "server": "s", "tool": "t", "arguments": []},
    {"type": "call", "id": "1", "server": "s", "tool": "t", "arguments": None},
    {"type": "call", "id": 1, "server": "s", "tool": "t", "arguments": {}},
    {"type": "call", "id": None, "server": "s", "tool": "t", "arguments": {}},
    {"type": "call", "id": "1", "server": "s", "tool": "t", "arguments": {}, "cell_id": 3},
    {"type": "call", "id": "1", "server": "s", "tool": "t", "arguments": {}, "decision": "allow_once"},
    {"type": "ping", "ids": "1"},
    {"type": "ping", "ids": [1]},
    {"type": "ping", "ids": ["1", None]},
    {"type": "x" * 1_000_000},
    {"type": "hello", "x" * 1_000_000: 1},
]


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: repr(value)[:60])
def test_what_is_no_message_is_a_message_error_with_a_short_text(value: JsonValue) -> None:
    with pytest.raises(MessageError) as caught:
        from_kernel(value)

    assert len(str(caught.value)) < 300


def test_a_type_nested_deeper_than_python_can_print_is_a_message_error() -> None:
    deep: Any = []
    for _ in range(5_000):
        deep = [deep]

    with pytest.raises(MessageError):
        from_kernel({"type": deep})


kinds = st.sampled_from([type(message).type for message in [*KERNEL, *SERVER]])
fields = st.sampled_from(["id", "ids", "server", "tool", "arguments", "cell_id", "version", "content", "unknown"])
near_misses = st.builds(
    lambda kind, content: {"type": kind, **content}, kinds, st.dictionaries(fields | texts, json_values, max_size=6)
)


@given(json_values | json_objects | near_misses)
def test_any_json_is_a_message_or_a_message_error(value: JsonValue) -> None:
    for read in (from_kernel, from_server):
        try:
            message = read(value)
        except MessageError:
            continue
        assert isinstance(value, dict)
        assert to_json(message).items() >= value.items()
