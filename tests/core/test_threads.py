from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from jupyter_agentbox.core.threads import (
    LONGEST_PROMPT,
    AgentMessage,
    ApprovalMode,
    CodeRun,
    Item,
    ItemStatus,
    Notice,
    Phase,
    Reasoning,
    Thread,
    ToolCallItem,
    Turn,
    TurnError,
    TurnErrorCode,
    TurnStatus,
    TurnSummary,
    Usage,
    UserMessage,
    final_response,
    item_from_json,
    item_to_json,
    summary_from_json,
    summary_of,
    summary_to_json,
    thread_from_json,
    thread_to_json,
)
from jupyter_agentbox.exceptions import InvalidTransitionError
from tests.samples import NOON

ITEMS: tuple[Item, ...] = (
    UserMessage(id="1", text="what\ud800 is it?"),
    Reasoning(id="2", text="hm"),
    AgentMessage(id="3", text="I look", phase=Phase.COMMENTARY),
    AgentMessage(id="4", text="It is that"),
    CodeRun(id="5", code="1", status=ItemStatus.COMPLETED, request_id="r1", text="1"),
    ToolCallItem(id="6", server="shop", tool="restock", request_id="r2", status=ItemStatus.DECLINED),
    Notice(id="7", code="limit", text="enough"),
)


def a_turn(*items: Item) -> Turn:
    return Turn(id="t1", thread_id="th1", started_at=NOON, items=items)


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.type)
def test_an_item_reads_back_from_json(item: Item) -> None:
    assert item_from_json(json.loads(json.dumps(item_to_json(item)))) == item


@pytest.mark.parametrize("error", [None, TurnError(code=TurnErrorCode.MODEL, message="down")])
def test_a_thread_reads_back_from_json_with_its_turns(error: TurnError | None) -> None:
    ended = a_turn(*ITEMS).end(TurnStatus.FAILED, at=NOON, error=error)
    thread = Thread(
        id="th1",
        created_at=NOON,
        updated_at=datetime(2026, 5, 1, 12, 0, 0, 7, tzinfo=UTC),
        name="October",
        approval_mode=ApprovalMode.DENY_ALL,
        model="openai:gpt",
        notebook_path="a.ipynb",
        is_archived=True,
        forked_from="th0",
        current_since=NOON,
        turns=(ended, a_turn()),
    )

    assert thread_from_json(json.loads(json.dumps(thread_to_json(thread)))) == thread


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([], None),
        ([("a", Phase.COMMENTARY)], None),
        ([("a", None), ("b", None)], "b"),
        ([("a", None), ("b", Phase.COMMENTARY)], "a"),
        ([("a", Phase.FINAL_ANSWER), ("b", None)], "a"),
        ([("a", Phase.FINAL_ANSWER), ("b", Phase.FINAL_ANSWER), ("c", Phase.COMMENTARY)], "b"),
        ([("", Phase.FINAL_ANSWER), ("b", None)], ""),
    ],
)
def test_the_final_response_is_the_last_final_answer_else_the_last_without_a_phase(
    messages: list[tuple[str, Phase | None]], expected: str | None
) -> None:
    items = [AgentMessage(id=str(n), text=text, phase=phase) for n, (text, phase) in enumerate(messages)]

    assert final_response([UserMessage(id="u", text="?"), *items]) == expected
    assert a_turn(*items).final_response == expected


def test_an_item_takes_the_place_of_the_one_with_its_id() -> None:
    turn = a_turn(*ITEMS[:2]).with_item(Reasoning(id="2", text="hm, hm")).with_item(ITEMS[2])

    assert turn.items == (ITEMS[0], Reasoning(id="2", text="hm, hm"), ITEMS[2])


def test_what_is_in_progress_when_a_turn_ends_was_interrupted() -> None:
    running = CodeRun(id="5", code="1", status=ItemStatus.IN_PROGRESS)

    ended = a_turn(running, ITEMS[4]).end(TurnStatus.INTERRUPTED, at=NOON)

    assert [item.status for item in ended.items if isinstance(item, CodeRun)] == [
        ItemStatus.INTERRUPTED,
        ItemStatus.COMPLETED,
    ]


def test_a_turn_ends_once() -> None:
    ended = a_turn().end(TurnStatus.COMPLETED, at=NOON)

    for status in TurnStatus:
        with pytest.raises(InvalidTransitionError):
            ended.end(status, at=NOON)
    with pytest.raises(InvalidTransitionError):
        a_turn().end(TurnStatus.IN_PROGRESS, at=NOON)


def test_usages_add_up() -> None:
    usage = Usage(requests=1, input_tokens=2, output_tokens=3) + Usage(requests=1, input_tokens=10)

    assert usage == Usage(requests=2, input_tokens=12, output_tokens=3)
    assert usage.total_tokens == 15


def test_a_thread_of_before_became_current_at_no_known_time() -> None:
    data = thread_to_json(Thread(id="th1", created_at=NOON, updated_at=NOON))
    del data["current_since"]

    assert thread_from_json(data).current_since is None


def test_a_summary_has_the_first_prompt_and_reads_back_from_json() -> None:
    long = "\ud800" + "x" * LONGEST_PROMPT
    turn = a_turn(UserMessage(id="1", text=long), UserMessage(id="2", text="hurry"))

    summary = summary_of(turn)

    assert summary == TurnSummary(id="t1", status=TurnStatus.IN_PROGRESS, prompt=long[:LONGEST_PROMPT])
    assert summary_from_json(json.loads(json.dumps(summary_to_json(summary)))) == summary
    assert summary_of(a_turn()).prompt == ""
