"""What the functions of a model leave in the turn."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from jupyter_agentbox.agents.threads.agent_tools import TurnContext
from jupyter_agentbox.agents.threads.limits import TurnLimits
from jupyter_agentbox.agents.threads.ports import CodeEnded
from jupyter_agentbox.agents.threads.record import TurnRecord
from jupyter_agentbox.agents.threads.streams import TurnStream
from jupyter_agentbox.agents.threads.work_clock import WorkClock
from jupyter_agentbox.core.threads import ItemStatus, Turn
from jupyter_agentbox.testing import FakeIds
from tests.samples import NOON


class IdleKernel:
    """A kernel in which all code ends at once."""

    async def run(self, code: str, **_: Any) -> AsyncGenerator[CodeEnded]:
        yield CodeEnded(code=code, status=ItemStatus.COMPLETED)


async def test_of_a_few_pieces_of_code_each_is_kept_before_it_runs_and_of_thousands_the_turn_now_and_then() -> None:
    record = TurnRecord(Turn(id="t1", thread_id="th1", started_at=NOON), stream=TurnStream(), ids=FakeIds())
    kernel: Any = IdleKernel()
    context = TurnContext(record=record, kernel=kernel, clock=WorkClock(None), limits=TurnLimits())
    kept: list[int] = []

    async def keep() -> None:
        kept.append(len(record.turn.items))

    context.keep = keep
    for _ in range(2000):
        await context.run("1")

    context.begin_step()
    await context.run("1")

    assert kept[-1] == 2001
    assert kept[:20] == [*range(1, 21)]
    assert sum(kept) < 30 * 2000


async def test_the_model_hears_what_the_person_wrote_who_allowed_its_code() -> None:
    class CommentedKernel:
        async def run(self, code: str, **_: Any) -> AsyncGenerator[CodeEnded]:
            yield CodeEnded(code=code, status=ItemStatus.COMPLETED, text="42", comment="round it next time")

    record = TurnRecord(Turn(id="t1", thread_id="th1", started_at=NOON), stream=TurnStream(), ids=FakeIds())
    kernel: Any = CommentedKernel()
    context = TurnContext(record=record, kernel=kernel, clock=WorkClock(None), limits=TurnLimits())

    told = await context.run_code("6 * 7")

    assert told == "The person who allowed the code says: round it next time\n42"
