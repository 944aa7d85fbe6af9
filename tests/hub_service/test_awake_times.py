"""A service that was stopped for a while gives callers their whole time to come back when it goes on."""

from __future__ import annotations

import asyncio
import time
from typing import cast

from jupyter_agentbox.hub.awake_times import AwakeTimes
from jupyter_agentbox.hub.open_calls import OpenCall
from jupyter_agentbox.services.calls.manager import FinishedCall

from .service import TIMEOUT


class Seconds:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_what_counts_of_the_time_in_which_nobody_looked_counts_from_the_next_look_on() -> None:
    clock = Seconds()
    times = AwakeTimes(look_every=60.0, clock=clock)
    told = []
    for at, ids in [(0, "a"), (60, "ab"), (130, "ab"), (1000, "ab"), (1060, "b"), (1120, "ab")]:
        clock.now = at
        told.append(dict(times.look(ids)))
    assert told == [
        {"a": 0.0},
        {"a": 60.0, "b": 0.0},
        {"a": 130.0, "b": 70.0},
        {"a": 130.0, "b": 70.0},
        {"b": 220.0},
        {"a": 0.0, "b": 280.0},
    ]


def test_time_passes_though_every_look_is_late() -> None:
    clock = Seconds()
    times = AwakeTimes(look_every=60.0, clock=clock)
    for _ in range(11):
        clock.now += 100.0
        told = times.look(["a"])
    assert told == {"a": 810.0}


async def test_a_call_whose_connection_broke_before_a_freeze_is_kept_after_it() -> None:
    ended = asyncio.Event()
    never = asyncio.get_running_loop().create_future()
    task = cast(asyncio.Task[FinishedCall], never)
    call = OpenCall(user="ada", session="s", message_id=1, task=task, request_id="r")
    holder = object()
    call.take(holder)
    call.drop(holder, patience=0.3, on_end=lambda _: ended.set())

    time.sleep(0.6)  # the whole process stands still  # noqa: ASYNC251
    for _ in range(5):
        await asyncio.sleep(0)

    assert not ended.is_set()
    async with asyncio.timeout(TIMEOUT):
        await ended.wait()
