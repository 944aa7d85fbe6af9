from __future__ import annotations

from typing import Any

import pytest

from .attack import Attack
from .conftest import Stage
from .ledger_server import LOOK_ALIKES, REMOVE

ATTACK = Attack(
    "use what was allowed for good with a tool whose name looks the same",
    plain=False,
    control="test_the_same_name_asks_no_more",
)


def attack(facts: dict[str, Any]) -> Any:
    from jupyter_agentbox.kernel import runtime

    return runtime.link().call("ledger", facts["tool"], {}).text


def test_the_same_name_asks_no_more(plain: Stage) -> None:
    allow_for_good(plain)

    assert plain.run(attack, tool=REMOVE) == "done", plain.said


def allow_for_good(stage: Stage) -> None:
    with stage.running(attack, tool=REMOVE) as evidence:
        for request in stage.world.await_pending(REMOVE, count=0 if stage.was_allowed(REMOVE) else 1):
            stage.world.decide(request, "allow_always")
        assert evidence() == "done", stage.said


@pytest.mark.parametrize("tool", LOOK_ALIKES, ids=ascii)
def test_a_look_alike_asks_for_itself(stage: Stage, tool: str) -> None:
    world = stage.world
    allow_for_good(stage)
    before = len(world.calls(tool))
    with stage.running(attack, tool=tool) as evidence:
        [request] = world.await_pending(tool)
        # What has no width is spelled out by whoever shows it; a letter of another alphabet is named.
        named = [(one["of"], one["like"]) for one in request["call"]["look_alikes"]]
        ran = len(world.calls(tool)) != before
        world.decide(request, "reject_once")
        evidence()
    stage.judge(ATTACK, ran)
    assert named == ([] if "\u200b" in tool else [("tool", "o")])
