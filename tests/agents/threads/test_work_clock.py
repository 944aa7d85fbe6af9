from __future__ import annotations

from contextlib import ExitStack

from jupyter_agentbox.agents.threads.work_clock import WorkClock


async def test_a_person_may_think_on_when_the_work_has_ended() -> None:
    clock = WorkClock(10)
    with ExitStack() as thinking:
        async with clock:
            thinking.enter_context(clock.standing_still())
        with clock.standing_still():
            pass
    assert not clock.is_over
