"""A client that gives up on a request without a word, as Codex does, and sends the next one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .test_disconnect import wired
from .test_signals import begin


async def test_the_next_request_is_told_that_an_earlier_one_runs_and_how_to_go_on(
    environment: Mapping[str, str], places: Path
) -> None:
    async with wired(environment, places, "--busy-timeout", "0.5") as wire:
        await begin(wire, 2, places, after=0.2)
        busy = await wire.call(3, "execute_code", {"code": "print('ran')"})
        await wire.call(4, "reset", {})
        after = await wire.call(5, "execute_code", {"code": "6 * 7"})
        given_up = await wire.answer(2)

    assert busy["isError"]
    (said,) = busy["content"]
    assert "did not run" in said["text"]
    assert "it has been running for " in said["text"]
    assert "`reset`" in said["text"]
    assert after["content"] == [{"type": "text", "text": "42"}]
    assert given_up["isError"]


async def test_the_next_request_is_told_which_decision_the_earlier_one_waits_for(
    environment: Mapping[str, str], places: Path
) -> None:
    asks = "from jupyter_agentbox import tools\ntools.mini.add(a=1, b=2)"
    options, capabilities = ("--busy-timeout", "0.5"), {"elicitation": {}}
    async with wired(environment, places, *options, effect="ask", capabilities=capabilities) as wire:
        await begin(wire, 2, places, then=asks, after=0.2)
        await wire.asked("elicitation/create")
        busy = await wire.call(3, "execute_code", {"code": "print('ran')"})

    assert "it has been waiting for a decision about mini.add for " in busy["content"][0]["text"]
