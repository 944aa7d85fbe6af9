"""Who sends many messages waits in line, and nobody else does."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from jupyter_agentbox.exceptions import TooManyRequestsError
from jupyter_agentbox.hub.pace import BURST, LONGEST, Pace

from .service import a_policy, running_service


class Watch:
    """A clock, and what was asked to wait."""

    def __init__(self) -> None:
        self.time = 100.0
        self.waits: list[float] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.waits.append(round(seconds, 6))


def pace_of(watch: Watch, rate: float = 10.0) -> Pace:
    return Pace(rate, now=watch.now, sleep=watch.sleep)


async def test_what_comes_faster_than_the_rate_waits_for_its_turn_and_others_do_not() -> None:
    watch = Watch()
    pace = pace_of(watch)
    for _ in range(int(10 * BURST)):
        await pace.turn("ada")
    assert watch.waits == []
    for _ in range(3):
        await pace.turn("ada")
    assert watch.waits == [0.1, 0.2, 0.3]
    await pace.turn("bob")
    watch.time += 0.4
    await pace.turn("ada")
    assert watch.waits == [0.1, 0.2, 0.3]


async def test_what_would_wait_for_too_long_is_refused_and_costs_no_turn() -> None:
    watch = Watch()
    pace = pace_of(watch)
    for _ in range(int(10 * (BURST + LONGEST))):
        await pace.turn("ada")
    for _ in range(100):
        with pytest.raises(TooManyRequestsError, match="10 messages a second"):
            await pace.turn("ada")
    watch.time += 0.1
    await pace.turn("ada")
    assert max(watch.waits) == LONGEST


async def test_a_rate_below_one_a_second_lets_one_pass_at_once() -> None:
    watch = Watch()
    pace = pace_of(watch, rate=0.1)
    await pace.turn("ada")
    assert watch.waits == []
    with pytest.raises(TooManyRequestsError):
        await pace.turn("ada")


async def test_who_has_been_calm_is_forgotten() -> None:
    watch = Watch()
    pace = pace_of(watch)
    for number in range(50):
        await pace.turn(str(number))
    watch.time += 60
    await pace.turn("ada")
    assert list(pace._used_until) == ["ada"]


async def test_the_service_refuses_a_flood_before_it_asks_the_hub_whose_it_is(tmp_path: Path) -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with running_service(tmp_path, a_policy(), call_rate=0.1) as service:
        ada, bob = ({"Authorization": f"Bearer {name}"} for name in ("ada", "bob"))
        answers = await asyncio.gather(*(service.send("mcp/warehouse", ping, ada) for _ in range(4)))
        refused = [answer for answer in answers if answer.code == 429]
        assert sorted(answer.code for answer in answers) == [200, 429, 429, 429]
        assert {answer.headers.get("Retry-After") for answer in refused} == {"5"}
        assert "0.1 messages a second" in json.loads(refused[0].body)["error"]["message"]
        assert (await service.post("mcp/warehouse", ping, bob))[0] == 200
