from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from jupyter_agentbox.kernel.cells import Cell, Cells
from jupyter_agentbox.kernel.transport import KernelTransport
from jupyter_agentbox.protocol.messages import COMM_PREFIX


class Session:
    """Keeps what a kernel publishes."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, dict[str, Any], Any]] = []

    def send(self, _socket: object, kind: str, content: dict[str, Any], *, parent: Any, ident: bytes) -> None:
        assert isinstance(ident, bytes)
        self.sent.append((kind, content, parent))


class Kernel:
    """As much of ipykernel as the transport touches."""

    iopub_socket = object()

    def __init__(self) -> None:
        self.session = Session()
        self.control_handlers: dict[str, Any] = {}

    def control(self, comm_id: str, data: Any) -> Any:
        """Handle a message as `process_control` does: busy, the handler, idle."""
        self.session.send(self.iopub_socket, "status", {"execution_state": "busy"}, parent="control", ident=b"")
        result = self.control_handlers["comm_msg"](None, [], {"content": {"comm_id": comm_id, "data": data}})
        self.session.send(self.iopub_socket, "status", {"execution_state": "idle"}, parent="control", ident=b"")
        return result

    @property
    def states(self) -> list[str]:
        return [content["execution_state"] for kind, content, _ in self.session.sent if kind == "status"]


@pytest.fixture
def kernel() -> Kernel:
    return Kernel()


@pytest.fixture
def transport(kernel: Kernel, cells: Cells) -> KernelTransport:
    return KernelTransport(kernel, cells)


async def test_own_messages_are_received_and_others_go_where_they_went(
    kernel: Kernel, transport: KernelTransport
) -> None:
    received: list[Any] = []
    kernel.control_handlers["comm_msg"] = lambda _stream, _ident, message: message["content"]["data"]
    transport.listen(received.append)

    kernel.control(transport.comm_id, "mine")

    assert kernel.control("widget", "theirs") == "theirs"
    assert received == ["mine"]
    assert transport.comm_id.startswith(COMM_PREFIX)


async def test_message_of_an_unknown_comm_is_nobodys_where_nobody_listened(
    kernel: Kernel, transport: KernelTransport
) -> None:
    transport.listen(lambda _data: pytest.fail("not mine"))

    assert kernel.control("widget", "theirs") is None


async def test_kernel_whose_cell_runs_says_busy_again_after_each_message(
    kernel: Kernel, transport: KernelTransport, cells: Cells
) -> None:
    transport.listen(lambda _data: None)
    cells.started()

    kernel.control(transport.comm_id, {})
    await asyncio.sleep(0)

    assert kernel.states == ["busy", "idle", "busy"]
    assert kernel.session.sent[-1][2]["header"]["msg_id"] == "m1"


async def test_kernel_whose_cell_ended_meanwhile_stays_idle(
    kernel: Kernel, transport: KernelTransport, cells: Cells
) -> None:
    transport.listen(lambda _data: None)
    cells.started()

    kernel.control(transport.comm_id, {})
    cells.ended()
    await asyncio.sleep(0)

    assert kernel.states == ["busy", "idle"]


def test_output_goes_under_the_cell_that_it_belongs_to(kernel: Kernel, transport: KernelTransport) -> None:
    parent = {"header": {"msg_id": "m7"}}

    transport.publish("display_data", {"data": {}}, Cell(parent))

    assert kernel.session.sent == [("display_data", {"data": {}}, parent)]


def test_text_that_cannot_be_sent_is_replaced(
    kernel: Kernel, transport: KernelTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = kernel.session.send

    def serialize(socket: object, kind: str, content: dict[str, Any], **rest: Any) -> None:
        json.dumps(content, ensure_ascii=False).encode()
        send(socket, kind, content, **rest)

    monkeypatch.setattr(kernel.session, "send", serialize)

    transport.publish("display_data", {"data": {"text/plain": "half \ud83d", "x": [{"\ude00": 1}]}}, Cell({}))

    data = {"text/plain": "half \ufffd", "x": [{"\ufffd": 1}]}
    assert kernel.session.sent == [("display_data", {"data": data}, None)]
