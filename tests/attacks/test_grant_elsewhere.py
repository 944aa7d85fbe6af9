from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack(
    "use in one notebook what was allowed for good in another",
    plain=False,
    control="test_the_notebook_that_it_was_allowed_in_asks_no_more",
)


def attack(facts: dict[str, Any]) -> Any:
    from jupyter_agentbox.kernel import runtime

    link = runtime.link()
    call = {"type": "call", "server": "ledger", "tool": "granted", "arguments": {}}
    claims: list[dict[str, Any]] = [
        {"kernel_id": facts["kernel_id"]},
        {"origin": {"kernel_id": facts["kernel_id"]}},
        {"grant": facts["grant"]},
        {"evaluation": {"effect": "allow", "grant": {"id": facts["grant"]}}},
    ]
    for number, claim in enumerate(claims):
        link.transport.send({**call, "id": f"claim{number}", **claim})
    for kind in ("grant", "revoke", "decision"):
        link.transport.send({"type": kind, "id": kind, "grant": facts["grant"], "scope": "user", "uses": 1000})
    return link.call("ledger", "granted", {}).text


def allow_for_good(stage: Stage, **facts: Any) -> Any:
    """Allow the tool in the kernel of a stage until it ends; return the grant."""
    with stage.running(attack, kernel_id="", grant="", **facts) as evidence:
        requests = stage.world.await_pending("granted")
        stage.world.decide(requests[0], "allow_always", grant={"scope": "kernel"})
        assert evidence() == "done", stage.said
    [grant] = [one for one in stage.world.api("GET", "jupyter-agentbox/grants")["grants"] if one["tool"] == "granted"]
    return grant


def test_the_notebook_that_it_was_allowed_in_asks_no_more(plain: Stage) -> None:
    with plain.alone("granted") as stage:
        grant = allow_for_good(stage)

        assert stage.run(attack, kernel_id=grant["kernel_id"], grant=grant["id"]) == "done", stage.said
        plain.world.api("DELETE", f"jupyter-agentbox/grants/{grant['id']}")


def test_another_notebook_asks(stage: Stage, plain: Stage) -> None:
    world = stage.world
    with plain.alone("granting") as other:
        grant = allow_for_good(other)
        before = len(world.calls("granted"))
        with stage.running(attack, kernel_id=grant["kernel_id"], grant=grant["id"]) as evidence:
            asked = world.await_pending("granted")
            ran = len(world.calls("granted")) != before
            [known] = [one for one in world.api("GET", "jupyter-agentbox/grants")["grants"] if one["tool"] == "granted"]
            assert (known["scope"], known["uses"], known["used"]) == ("kernel", None, grant["used"])
            for request in asked:
                world.decide(request, "reject_once")
            evidence()
        world.api("DELETE", f"jupyter-agentbox/grants/{grant['id']}")
    stage.judge(ATTACK, ran)
