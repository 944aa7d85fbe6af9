from __future__ import annotations

from typing import Any

import pytest

from .attack import Attack
from .conftest import Stage

ATTACK = Attack(
    "swap a call's arguments between review and run",
    plain=False,
    control="test_what_is_harmful_runs_where_it_is_what_was_reviewed",
)


def attack(facts: dict[str, Any]) -> Any:
    import threading
    import time

    from jupyter_agentbox.kernel import runtime

    link = runtime.link()
    arguments: dict[str, Any] = {"files": ["harmless"]}

    def ask() -> None:
        link.call("ledger", "edited", arguments)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if any(found["tool"] == "edited" for found in link.list_pending(within=60)):
            break
    arguments["files"][:] = ["harmful"]
    arguments["more"] = "harmful"
    again = {"type": "call", "id": link._pending.ids[0], "server": "ledger", "tool": "edited", "arguments": arguments}
    for _ in range(3):
        link.transport.send(again)
    link.call("ledger", "ready", {})  # the person may decide now
    asking.join(60)
    return not asking.is_alive()


@pytest.mark.parametrize("edited", [None, {"files": ["as the person wants"]}], ids=["as asked", "edited"])
def test_what_was_reviewed_is_what_runs(stage: Stage, edited: Any) -> None:
    world = stage.world
    before = len(world.calls("edited"))
    with stage.running(attack) as evidence:
        [ready] = world.await_pending("ready")
        [request] = world.await_pending("edited")
        assert request["call"]["arguments"] == {"files": ["harmless"]}
        world.decide(request, "allow_once", **({} if edited is None else {"arguments": edited}))
        world.decide(ready, "allow_once")
        assert evidence() is True, stage.said
    ran = world.calls("edited")[before:]
    stage.judge(ATTACK, ran != [edited or {"files": ["harmless"]}])


def test_what_is_harmful_runs_where_it_is_what_was_reviewed(plain: Stage) -> None:
    world = plain.world
    before = len(world.calls("edited"))
    with plain.running(attack) as evidence:
        [ready] = world.await_pending("ready")
        [request] = world.await_pending("edited")
        world.decide(request, "allow_once", arguments={"files": ["harmful"]})
        world.decide(ready, "allow_once")
        assert evidence() is True, plain.said

    assert world.calls("edited")[before:] == [{"files": ["harmful"]}]
