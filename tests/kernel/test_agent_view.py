from __future__ import annotations

from typing import Any

import pytest

from jupyter_agentbox.kernel.agent_view import TurnView
from jupyter_agentbox.kernel.cells import Cell
from jupyter_agentbox.protocol.messages import CARD_MIME_TYPE, ITEM_MIME_TYPE

from .fakes import FakeTransport

CELL = Cell({"metadata": {"cellId": "cell-1"}})


@pytest.fixture
def view(transport: FakeTransport) -> TurnView:
    made = TurnView(transport, CELL, prompt="Plot it", url="http://x/lab")
    made.show({"type": "turn_started", "turn": {"id": "t1", "thread_id": "h1"}})
    return made


def message(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "agent_message", "id": "i1", "text": text, "phase": None, **more}


def code_run(**more: Any) -> dict[str, Any]:
    return {"type": "code_run", "id": "c1", "code": "1 + 1", "status": "in_progress", "text": "", "error": "", **more}


def shown(transport: FakeTransport) -> list[tuple[str, dict[str, Any]]]:
    return [(kind, content["data"]) for kind, content, _ in transport.published]


def test_a_message_is_one_output_that_grows_with_its_words(view: TurnView, transport: FakeTransport) -> None:
    view.show({"type": "item_started", "item": message("Let")})
    for delta in ("Let", " me look"):
        view.show({"type": "agent_message_delta", "item_id": "i1", "delta": delta})
    view.show({"type": "item_completed", "item": message("Let me look", phase="commentary")})

    kinds = [kind for kind, _ in shown(transport)]
    assert kinds == ["display_data", "update_display_data", "update_display_data"]
    assert [data["text/plain"] for _, data in shown(transport)] == ["Let", "Let me look", "Let me look"]
    assert {content["transient"]["display_id"] for _, content, _ in transport.published} == {"agentbox-item-i1"}
    assert shown(transport)[-1][1][ITEM_MIME_TYPE] == {
        "thread_id": "h1",
        "turn_id": "t1",
        "item": message("Let me look", phase="commentary"),
        "is_complete": True,
        "is_answer": False,
    }


def test_a_long_message_is_not_sent_again_for_each_word(view: TurnView, transport: FakeTransport) -> None:
    view.show({"type": "item_started", "item": message("")})
    for _ in range(10_000):
        view.show({"type": "agent_message_delta", "item_id": "i1", "delta": "word "})

    sent = sum(len(data["text/plain"]) for _, data in shown(transport))
    assert sent < 50 * 5 * 10_000


def test_what_was_asked_is_not_repeated_but_a_word_meanwhile_is_shown(view: TurnView, transport: FakeTransport) -> None:
    for number, text in enumerate(["Plot it", "Plot it", "in euros"]):
        item = {"type": "user_message", "id": f"u{number}", "text": text}
        view.show({"type": "item_started", "item": item})
        view.show({"type": "item_completed", "item": item})

    assert {data["text/plain"] for _, data in shown(transport)} == {"You: Plot it", "You: in euros"}


def test_code_stands_before_its_outputs_and_does_not_repeat_them(view: TurnView, transport: FakeTransport) -> None:
    view.show({"type": "item_started", "item": code_run()})
    view.show({"type": "item_completed", "item": code_run(status="completed", text="2")})

    (_, before), (_, after) = shown(transport)
    assert before["text/markdown"] == "```python\n1 + 1\n```"
    assert (after[ITEM_MIME_TYPE]["item"]["status"], after[ITEM_MIME_TYPE]["item"]["text"]) == ("completed", "")


@pytest.mark.parametrize(("has_card", "said"), [(True, ""), (False, "the mode refuses it")])
def test_why_code_was_declined_is_said_once(
    has_card: bool, said: str, view: TurnView, transport: FakeTransport
) -> None:
    view.show({"type": "item_started", "item": code_run()})
    if has_card:
        view.show({"type": "approval_requested", "request_id": "r1", "server": "notebook", "tool": "run_code"})
    view.show({"type": "item_completed", "item": code_run(status="declined", error="the mode refuses it")})

    outputs = [data for _, data in shown(transport)]
    assert outputs[-1][ITEM_MIME_TYPE]["item"]["error"] == said
    on_card = [data["text/plain"] for data in outputs if CARD_MIME_TYPE in data and "refuses" in data["text/plain"]]
    assert len(on_card) == has_card


def test_code_that_waits_has_a_card_until_it_runs(view: TurnView, transport: FakeTransport) -> None:
    asked = {"type": "approval_requested", "request_id": "r1", "server": "notebook", "tool": "run_code"}
    view.show(asked)
    view.code_starts()
    view.close()

    cards = [data for _, data in shown(transport) if CARD_MIME_TYPE in data]
    assert [data["text/plain"].split(":")[-1].strip() for data in cards][1:] == ["approved"]


def test_a_card_of_a_tool_is_shown_by_the_call_itself(view: TurnView, transport: FakeTransport) -> None:
    view.show({"type": "approval_requested", "request_id": "r1", "server": "shop", "tool": "add"})

    assert shown(transport) == []


def test_a_turn_that_ends_leaves_no_card_that_waits(view: TurnView, transport: FakeTransport) -> None:
    view.show({"type": "approval_requested", "request_id": "r1", "server": "notebook", "tool": "run_code"})
    view.close()

    assert shown(transport)[-1][1]["text/plain"] == "notebook.run_code: withdrawn"


def test_a_cell_that_is_interrupted_leaves_nothing_that_looks_as_if_it_ran(
    view: TurnView, transport: FakeTransport
) -> None:
    view.show({"type": "item_started", "item": code_run()})
    view.show({"type": "item_started", "item": message("")})
    view.show({"type": "agent_message_delta", "item_id": "i1", "delta": "Let me"})
    view.close()

    last = {data[ITEM_MIME_TYPE]["item"]["id"]: data[ITEM_MIME_TYPE] for _, data in shown(transport)}
    assert (last["c1"]["item"]["status"], last["c1"]["is_complete"]) == ("interrupted", True)
    assert (last["i1"]["item"]["text"], last["i1"]["is_complete"]) == ("Let me", True)


def test_the_end_of_a_cell_repeats_nothing_that_was_complete(view: TurnView, transport: FakeTransport) -> None:
    view.show({"type": "item_started", "item": code_run()})
    view.show({"type": "item_completed", "item": code_run(status="completed")})
    before = len(transport.published)
    view.close()

    assert len(transport.published) == before


@pytest.mark.parametrize(("phases", "answer"), [((None, None), "i1"), (("final_answer", None), "i0")])
def test_the_answer_is_set_apart(
    view: TurnView, transport: FakeTransport, phases: tuple[str | None, str | None], answer: str
) -> None:
    for number, phase in enumerate(phases):
        item = message(f"text {number}", id=f"i{number}", phase=phase)
        view.show({"type": "item_started", "item": item})
        view.show({"type": "item_completed", "item": item})
    view.show({"type": "turn_completed", "turn": {}})

    last = shown(transport)[-1][1]
    assert (last[ITEM_MIME_TYPE]["item"]["id"], last[ITEM_MIME_TYPE]["is_answer"]) == (answer, True)
    assert last["text/markdown"].startswith("---\n\n")


@pytest.mark.parametrize(
    "event",
    [{}, {"type": 3}, {"type": "item_started"}, {"type": "item_started", "item": {"type": "new_kind", "id": "x"}}],
)
def test_what_a_newer_server_says_is_left_out(view: TurnView, transport: FakeTransport, event: dict[str, Any]) -> None:
    view.show(event)

    assert shown(transport) == []
