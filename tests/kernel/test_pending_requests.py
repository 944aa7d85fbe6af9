from __future__ import annotations

from typing import Any

from jupyter_agentbox.kernel.cells import Cell
from jupyter_agentbox.kernel.pending_requests import PendingRequest, PendingRequests
from jupyter_agentbox.protocol.messages import Call, GetModule, ListServers, Question, Running


def wait(question: Question, received: list[Any] | None = None, cell: Cell | None = None) -> PendingRequest:
    deliver = (received if received is not None else []).append
    return PendingRequest(question=question, deliver=deliver, cell=cell or Cell())


def test_answer_goes_to_the_wait_that_it_is_for() -> None:
    waits, received = PendingRequests(), list[Any]()
    asked = wait(Call(id="1", server="s", tool="t", arguments={}), received)
    waits.add(asked)

    waits.receive(Running(id="2", request_id="r"))
    assert not asked.answered
    waits.receive(Running(id="1", request_id="r"))
    waits.remove(asked)
    waits.receive(Running(id="1", request_id="r"))

    assert received == [Running(id="1", request_id="r")]
    assert asked.answered
    assert asked.has_begun


def test_only_waits_that_were_answered_once_can_be_forgotten_by_the_server() -> None:
    waits = PendingRequests()
    for id in ("1", "2"):
        waits.add(wait(ListServers(id=id)))
    waits.receive(Running(id="1", request_id="r"))

    assert [each.question.id for each in waits.forgotten_by_server(["1", "2", "3"])] == ["1"]
    assert waits.ids == ["1", "2"]


def test_waits_of_a_cell_are_found() -> None:
    waits, cell = PendingRequests(), Cell({"header": {"msg_id": "m1"}})
    waits.add(wait(ListServers(id="1"), cell=cell))
    waits.add(wait(ListServers(id="2")))

    assert [each.question.id for each in waits.of_cell(cell)] == ["1"]


def test_wait_says_what_it_is_for() -> None:
    assert wait(Call(id="1", server="shop", tool="add", arguments={})).what == "shop.add"
    assert wait(GetModule(id="1", server="shop")).what == "tools.shop"
    assert wait(ListServers(id="1")).what == "list_servers"
