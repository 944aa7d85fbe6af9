from __future__ import annotations

import json
from typing import Any

import pytest

from jupyter_agentbox.core.isolation import Isolation

from .attack import Attack
from .conftest import MAX_WAITING_BYTES, Stage, make_world

ATTACK = Attack(
    "fill the server's memory, and the list of what waits, with requests of megabytes",
    plain=False,
    control="test_all_of_them_wait_where_their_bytes_are_not_counted",
)
CALLS = 8
SIZE = 5_000_000


def attack(facts: dict[str, Any]) -> Any:
    import threading
    import time

    from jupyter_agentbox.kernel import runtime

    link = runtime.link()
    text, refused = "x" * facts["size"], []

    def ask() -> None:
        try:
            link.call("ledger", "flooded", {"text": text})
        except Exception as error:  # noqa: BLE001  # whatever it is, it is the evidence
            refused.append(f"{type(error).__name__}: {error}")

    for _ in range(facts["calls"]):
        threading.Thread(target=ask, daemon=True).start()
    until, waiting = time.monotonic() + 60, 0
    while len(refused) + waiting < facts["calls"] and time.monotonic() < until:
        time.sleep(0.1)
        waiting = len([one for one in link.list_pending(within=60) if one["tool"] == "flooded"])
    return {"waiting": waiting, "refused": refused}


def test_only_so_many_bytes_wait_and_the_others_are_told_so(stage: Stage) -> None:
    world = stage.world
    evidence = stage.run(attack, calls=CALLS, size=SIZE)
    assert evidence is not None, stage.said
    waiting = world.await_pending("flooded", count=evidence["waiting"])
    stage.judge(ATTACK, len(waiting) * SIZE > MAX_WAITING_BYTES)
    assert len(waiting) + len(evidence["refused"]) == CALLS
    assert all(text.startswith("TooManyRequestsError: ") for text in evidence["refused"])
    assert len(json.dumps(waiting)) < 50_000  # the list has none of the megabytes
    whole = world.api("GET", f"jupyter-agentbox/approvals/{waiting[0]['id']}")
    assert whole["call"]["arguments"] == {"text": "x" * SIZE}
    for request in waiting:
        world.decide(request, "reject_once")


def test_all_of_them_wait_where_their_bytes_are_not_counted(tmp_path_factory: pytest.TempPathFactory) -> None:
    none = ("--AgentBoxApp.max_waiting_bytes=None", "--AgentBoxApp.max_total_waiting_bytes=None")
    world = make_world(tmp_path_factory.mktemp("world"), *none)
    try:
        stage = Stage(world, Isolation.NONE)
        evidence = stage.run(attack, calls=CALLS, size=SIZE)
        assert evidence == {"waiting": CALLS, "refused": []}, stage.said
    finally:
        world.close()
