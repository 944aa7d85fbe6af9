from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack(
    "change the model of the card's widget, to decide or to show another request's decision",
    plain=False,
    control="test_the_request_that_it_names_is_one_that_can_be_allowed",
)


def attack(facts: dict[str, Any]) -> Any:
    import threading
    import time

    from jupyter_agentbox.kernel import runtime
    from jupyter_agentbox.kernel.card import ApprovalCard

    link = runtime.link()

    def ask() -> None:
        link.call("ledger", "framed", {"text": "nobody allowed this"})

    threading.Thread(target=ask, daemon=True).start()
    waiting: list[Any] = []
    until = time.monotonic() + 60
    while not waiting and time.monotonic() < until:
        waiting = [found for found in link.list_pending(within=60) if found["tool"] == "framed"]
    request = waiting[0]["id"]
    card = ApprovalCard(request_id="another")
    card.request_id = request
    for state in ({"status": "approved"}, {"decision": "allow_once"}, {"decision": {"decision": "allow_once"}}):
        card.comm.send(data={"method": "update", "state": {**state, "request_id": request}, "buffer_paths": []})
        card.send({"event": "decide", "request_id": request, **state})
        card.send({"event": "click", "request_id": request, **state})
    link.list_pending(within=60)  # asked after all of that, and answered by the server
    card.close()
    return request


def test_no_state_of_a_widget_decides(stage: Stage) -> None:
    before = stage.world.calls("framed")
    named = stage.run(attack)
    [request] = stage.world.await_pending("framed")
    assert named == request["id"]
    stage.judge(ATTACK, stage.world.calls("framed") != before)
    stage.world.decide(request, "reject_once")


def test_the_request_that_it_names_is_one_that_can_be_allowed(plain: Stage) -> None:
    before = len(plain.world.calls("framed"))
    plain.run(attack)
    [request] = plain.world.await_pending("framed")
    plain.world.decide(request, "allow_once")

    assert plain.world.api("GET", f"jupyter-agentbox/approvals/{request['id']}")["status"] == "approved"
    plain.world.await_call("framed", count=before + 1)
