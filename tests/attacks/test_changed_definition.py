from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack(
    "change a tool's definition after it was allowed for good",
    plain=False,
    control="test_an_unchanged_tool_asks_no_more",
)


def attack(facts: dict[str, Any]) -> Any:
    from jupyter_agentbox.kernel import runtime

    return runtime.link().call("ledger", facts["tool"], {}).text


def allow_for_good(stage: Stage) -> Any:
    with stage.running(attack, tool="growing") as evidence:
        [request] = stage.world.await_pending("growing")
        stage.world.decide(request, "allow_always")
        assert evidence() == "done", stage.said
    return request


def test_an_unchanged_tool_asks_no_more(plain: Stage) -> None:
    with plain.alone("grown") as stage:
        allow_for_good(stage)

        assert stage.run(attack, tool="growing") == "done", stage.said


def test_a_changed_tool_asks_again(stage: Stage) -> None:
    world = stage.world
    request = allow_for_good(stage)
    with stage.running(attack, tool="grow") as evidence:
        [grow] = world.await_pending("grow")
        world.decide(grow, "allow_once")
        assert evidence() == "done", stage.said
    before = len(world.calls("growing"))
    with stage.running(attack, tool="growing") as evidence:
        [again] = world.await_pending("growing")
        ran = len(world.calls("growing")) != before
        assert again["tool"]["description"] != request["tool"]["description"]
        world.decide(again, "reject_once")
        evidence()
    stage.judge(ATTACK, ran)
