from __future__ import annotations

import threading
from typing import Any

import pytest
from ipywidgets import Output

from jupyter_agentbox.kernel.call_outputs import FEW_CALLS, MOST_CALLS, CallOutput, CallOutputs
from jupyter_agentbox.kernel.cells import Cell
from jupyter_agentbox.protocol.messages import CARD_MIME_TYPE

from .fakes import FakeTimers, FakeTransport


def cell(run: str = "m1", cell_id: str | None = "cell-1") -> Cell:
    return Cell({"header": {"msg_id": run}, "metadata": {"cellId": cell_id} if cell_id else {}})


@pytest.fixture
def timers() -> FakeTimers:
    return FakeTimers()


@pytest.fixture
def outputs(transport: FakeTransport, timers: FakeTimers) -> CallOutputs:
    return CallOutputs(transport, later=timers.later)


def test_the_calls_of_a_cell_have_one_output_with_a_line_for_each(
    outputs: CallOutputs, transport: FakeTransport
) -> None:
    outputs.of(cell()).put("r1", "one waits", "<b>one</b> waits")
    outputs.of(cell()).put("r2", "two\nwaits", "two waits")
    outputs.of(cell()).put("r1", "✓ one", "✓ one")

    kinds = [kind for kind, _, _ in transport.published]
    assert kinds == ["display_data", "update_display_data", "update_display_data"]
    assert {content["transient"]["display_id"] for _, content, _ in transport.published} == {"agentbox-r1"}
    assert [content["data"] for _, content, _ in transport.published] == [
        {
            CARD_MIME_TYPE: {"request_id": "r1"},
            "text/html": "<div><b>one</b> waits</div>",
            "text/plain": "one waits",
        },
        {
            CARD_MIME_TYPE: {"request_id": "r1", "request_ids": ["r1", "r2"]},
            "text/html": "<div><b>one</b> waits</div><div>two waits</div>",
            "text/plain": "one waits\ntwo waits",
        },
        {
            CARD_MIME_TYPE: {"request_id": "r1", "request_ids": ["r1", "r2"]},
            "text/html": "<div>✓ one</div><div>two waits</div>",
            "text/plain": "✓ one\ntwo waits",
        },
    ]


def test_each_run_of_a_cell_has_an_output_of_its_own(outputs: CallOutputs) -> None:
    assert outputs.of(cell("m1")) is outputs.of(cell("m1"))
    assert outputs.of(cell("m1")) is not outputs.of(cell("m2"))


@pytest.mark.parametrize("where", [Cell(), cell(cell_id=None), cell(cell_id="vscode-notebook-cell:/a.ipynb#1")])
def test_what_shows_no_changes_gets_an_output_for_each_call(outputs: CallOutputs, where: Cell) -> None:
    assert outputs.of(where) is not outputs.of(where)


def test_a_call_whose_output_a_widget_takes_has_one_of_its_own(outputs: CallOutputs) -> None:
    of_cell = outputs.of(cell("m1"))
    widget = Output(msg_id="m1")  # as in `with widget:`

    captured = {outputs.of(cell("m1")), outputs.of(cell("m1"))}
    assert len(captured - {of_cell}) == 2
    widget.msg_id = ""
    assert outputs.of(cell("m1")) is of_cell
    widget.close()


def test_a_call_while_an_output_is_published_is_in_it_too(
    outputs: CallOutputs, transport: FakeTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, publish = outputs.of(cell()), transport.publish

    def call_meanwhile(*message: Any) -> None:  # as stdout can, that code put in the place of the kernel's
        publish(*message)
        if len(transport.published) == 1:
            output.put("r2", "two waits", "two waits")

    monkeypatch.setattr(transport, "publish", call_meanwhile)
    output.put("r1", "one waits", "one waits")

    assert transport.published[-1][1]["data"]["text/plain"] == "one waits\ntwo waits"


def test_of_many_calls_the_next_ones_have_another_output(outputs: CallOutputs) -> None:
    first = outputs.of(cell())
    for number in range(MOST_CALLS):
        outputs.of(cell()).put(f"r{number}", "waits", "waits")

    assert outputs.of(cell()) is not first


def test_many_calls_that_end_together_are_published_together(
    outputs: CallOutputs, transport: FakeTransport, timers: FakeTimers
) -> None:
    calls: dict[str, CallOutput] = {}
    for number in range(2 * MOST_CALLS):
        calls[f"r{number}"] = outputs.of(cell())
        calls[f"r{number}"].put(f"r{number}", "waits", "waits")
    timers.go_off()
    transport.published.clear()

    for request, output in calls.items():
        output.put(request, f"{request}: withdrawn", "")
    assert transport.published == []
    timers.go_off()

    lines = [text.splitlines() for text in transport.texts]
    assert [len(each) for each in lines] == [MOST_CALLS, MOST_CALLS]
    assert [*lines[0], *lines[1]] == [f"{request}: withdrawn" for request in calls]


def test_few_calls_are_published_when_they_change(
    outputs: CallOutputs, transport: FakeTransport, timers: FakeTimers
) -> None:
    for number in range(FEW_CALLS):
        outputs.of(cell()).put(f"r{number}", "waits", "waits")

    assert len(transport.published) == FEW_CALLS
    assert timers.acts == {}


def test_when_a_cell_has_ended_what_became_of_its_calls_has_been_published(
    outputs: CallOutputs, transport: FakeTransport, timers: FakeTimers
) -> None:
    for number in range(MOST_CALLS):
        outputs.of(cell()).put(f"r{number}", "waits", "waits")
    outputs.publish()

    assert len(transport.texts[-1].splitlines()) == MOST_CALLS
    assert timers.acts == {}


def test_a_cell_ends_after_what_another_thread_publishes(
    outputs: CallOutputs, transport: FakeTransport, timers: FakeTimers, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_go_on = threading.Event(), threading.Event()
    publish = transport.publish

    def publish_slowly(*message: Any) -> None:
        if threading.current_thread() is not threading.main_thread():
            begun.set()
            assert may_go_on.wait(5)
        publish(*message)

    monkeypatch.setattr(transport, "publish", publish_slowly)
    for number in range(MOST_CALLS):
        outputs.of(cell()).put(f"r{number}", "waits", "waits")
    timer = threading.Thread(target=timers.go_off)
    timer.start()
    assert begun.wait(5)
    threading.Timer(0.05, may_go_on.set).start()
    outputs.publish()

    assert len(transport.texts[-1].splitlines()) == MOST_CALLS
    timer.join()


def test_after_outputs_were_cleared_the_next_call_begins_a_new_one(outputs: CallOutputs) -> None:
    first = outputs.of(cell())
    outputs.forget()

    assert outputs.of(cell()) is not first


def test_outputs_of_cells_of_long_ago_are_forgotten(outputs: CallOutputs) -> None:
    first = outputs.of(cell("m0"))
    for number in range(1, 30):
        outputs.of(cell(f"m{number}"))

    assert outputs.of(cell("m0")) is not first
