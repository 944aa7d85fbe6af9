from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from jupyter_agentbox.agents.threads.events import AgentMessageDelta, TurnCompleted, TurnStarted
from jupyter_agentbox.agents.threads.streams import TurnStream
from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.threads import Notice, Turn, TurnStatus
from jupyter_agentbox.protocol import messages
from jupyter_agentbox.services.kernel_connections.agent_cells import TurnCell
from jupyter_agentbox.services.threads.turn_relay import TurnRelay

NOW = datetime(2026, 5, 1, tzinfo=UTC)
TURN = Turn(id="t1", thread_id="h1", started_at=NOW)


def relay_of(stream: TurnStream, sent: list[messages.FromServer]) -> TurnRelay:
    cell = TurnCell(
        kernel_id="k1",
        comm_id="c1",
        cell_id=None,
        notebook_path="a.ipynb",
        isolation=Isolation.NONE,
        send=sent.append,
    )
    return TurnRelay(cell, "m1", stream)


def delta(text: str, item_id: str = "i1") -> AgentMessageDelta:
    return AgentMessageDelta(turn_id="t1", item_id=item_id, delta=text)


async def test_pieces_of_a_message_are_joined_and_nothing_else_is() -> None:
    stream, sent = TurnStream(), list[messages.FromServer]()
    stream.put(TurnStarted(turn=TURN))
    for event in (delta("a"), delta("b"), delta("c", "i2"), delta("d")):
        stream.put(event)

    assert await relay_of(stream, sent).send_new()

    events = [message.event for message in sent if isinstance(message, messages.TurnEvent)]
    assert [event.get("delta") for event in events] == [None, "ab", "c", "d"]


async def test_what_was_sent_first_is_not_sent_again_and_the_end_comes_last_without_items() -> None:
    stream, sent = TurnStream(), list[messages.FromServer]()
    relay = relay_of(stream, sent)
    stream.put(TurnStarted(turn=TURN))
    await relay.send_new()
    working = asyncio.create_task(relay.run())
    ended = TURN.with_item(Notice(id="n", code="limit", text="enough")).end(TurnStatus.COMPLETED, at=NOW)
    stream.put(TurnCompleted(turn=ended))

    async with asyncio.timeout(60):
        await working

    events = [message.event for message in sent if isinstance(message, messages.TurnEvent)]
    assert [event["type"] for event in events] == ["turn_started", "turn_completed"]
    assert events[-1]["turn"]["items"] == []  # type: ignore[index, call-overload]
