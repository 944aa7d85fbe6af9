"""Which turn of the event loop it is: what was looked at in one need not be looked at again."""

from __future__ import annotations

import asyncio

from jupyter_agentbox.loop_turn import LoopTurn


async def test_a_turn_lasts_until_the_loop_does_something_else() -> None:
    turn = LoopTurn()
    assert not turn.is_same
    turn.begin()
    turn.begin()
    assert turn.is_same
    await asyncio.sleep(0)
    assert not turn.is_same


async def test_what_came_after_a_look_finds_it_over() -> None:
    turn = LoopTurn()
    found: list[bool] = []
    turn.begin()
    asyncio.get_running_loop().call_soon(lambda: found.append(turn.is_same))
    await asyncio.sleep(0)
    assert found == [False]


async def test_another_thread_is_in_no_turn_of_this_loop() -> None:
    turn = LoopTurn()
    turn.begin()
    assert turn.is_same
    turn.end()
    assert not await asyncio.to_thread(lambda: turn.begin() or turn.is_same)


def test_without_a_loop_there_are_no_turns() -> None:
    turn = LoopTurn()
    turn.begin()
    assert not turn.is_same
