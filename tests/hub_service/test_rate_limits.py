"""Who sends many messages waits in line, and nobody else does."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPRequest

from jupyter_agentbox.exceptions import TooManyRequestsError
from jupyter_agentbox.hub.rate_limits import BURST, LONGEST, LONGEST_REFUSAL, RateLimiter

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


def limiter_of(watch: Watch, rate: float = 10.0) -> RateLimiter:
    return RateLimiter(rate, now=watch.now, sleep=watch.sleep)


async def test_what_comes_faster_than_the_rate_waits_for_its_turn_and_others_do_not() -> None:
    watch = Watch()
    limiter = limiter_of(watch)
    for _ in range(int(10 * BURST)):
        await limiter.turn("ada")
        watch.time += 0.02
    assert watch.waits == []
    for _ in range(7):
        await limiter.turn("ada")
    assert watch.waits == [0.02, 0.04, 0.06, 0.1, 0.2, 0.3]
    await limiter.turn("bob")
    watch.time += 0.4
    await limiter.turn("ada")
    assert watch.waits == [0.02, 0.04, 0.06, 0.1, 0.2, 0.3]


async def test_what_comes_at_once_passes_one_after_the_other_so_that_others_come_between() -> None:
    watch = Watch()
    limiter = limiter_of(watch)
    for _ in range(4):
        await limiter.turn("ada")
    await limiter.turn("bob")
    assert watch.waits == [0.02, 0.04, 0.06]
    watch.time += 0.08
    await limiter.turn("ada")
    assert watch.waits == [0.02, 0.04, 0.06]


async def test_what_would_wait_for_too_long_is_refused_and_costs_no_turn() -> None:
    watch = Watch()
    limiter = limiter_of(watch)
    for _ in range(int(10 * (BURST + LONGEST))):
        await limiter.turn("ada")
    for _ in range(40):
        with pytest.raises(TooManyRequestsError, match="10 messages per second"):
            await limiter.turn("ada")
    watch.time += 0.1
    await limiter.turn("ada")
    assert max(watch.waits) == LONGEST


async def test_a_rate_below_one_a_second_lets_one_pass_at_once() -> None:
    watch = Watch()
    limiter = limiter_of(watch, rate=0.1)
    await limiter.turn("ada")
    assert watch.waits == []
    with pytest.raises(TooManyRequestsError):
        await limiter.turn("ada")


async def test_who_has_been_calm_is_forgotten() -> None:
    watch = Watch()
    limiter = limiter_of(watch)
    for number in range(50):
        await limiter.turn(str(number))
    watch.time += 60
    await limiter.turn("ada")
    assert list(limiter._lines) == ["ada"]


async def test_who_tries_again_at_once_waits_for_each_refusal_up_to_half_a_minute() -> None:
    watch = Watch()
    limiter = limiter_of(watch)
    for _ in range(int(10 * (BURST + LONGEST))):
        await limiter.turn("ada")
    watch.waits.clear()
    for _ in range(400):
        with pytest.raises(TooManyRequestsError):
            await limiter.turn("ada")
    assert watch.waits[:3] == [0.1, 0.2, 0.3]
    assert watch.waits[-1] == LONGEST_REFUSAL
    watch.time += 60
    await limiter.turn("ada")
    assert watch.waits[-1] == LONGEST_REFUSAL


@pytest.fixture
def refused_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no refusal wait for long."""
    monkeypatch.setattr("jupyter_agentbox.hub.rate_limits.LONGEST_REFUSAL", 0.1)


@pytest.mark.usefixtures("refused_soon")
async def test_the_service_refuses_a_flood_of_one_token_and_of_one_user_with_several(tmp_path: Path) -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with running_service(tmp_path, a_policy(), call_rate=0.1) as service:
        ada, keeper, bob = ({"Authorization": f"Bearer {token}"} for token in ("ada", "keeper:ada", "bob"))
        first, second = await asyncio.gather(*(service.send("mcp/warehouse", ping, ada) for _ in range(2)))
        other = await service.send("mcp/warehouse", ping, keeper)
        refused = second if first.code == 200 else first
        assert sorted([first.code, second.code]) == [200, 429]
        assert refused.headers.get("Retry-After") == "5"
        assert "0.1 messages per second" in json.loads(refused.body)["error"]["message"]
        assert other.code == 429
        assert (await service.post("mcp/warehouse", ping, bob))[0] == 200


@pytest.mark.usefixtures("refused_soon")
async def test_as_many_as_may_wait_come_back_at_once_and_a_flood_of_those_is_refused(tmp_path: Path) -> None:
    async with running_service(tmp_path, a_policy(), call_rate=0.1, most_calls=1) as service:
        ada, bob = ({"Authorization": f"Bearer {name}"} for name in ("ada", "bob"))

        async def come_back(headers: dict[str, str]) -> int:
            request = HTTPRequest(f"{service.url}mcp/warehouse", headers=headers)
            return int((await AsyncHTTPClient().fetch(request, raise_error=False)).code)

        codes = await asyncio.gather(*(come_back(ada) for _ in range(4)))
        assert sorted(codes) == [405, 405, 429, 429]
        assert await come_back(bob) == 405
