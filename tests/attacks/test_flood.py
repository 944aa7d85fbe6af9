from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import MOST_PENDING, Stage

ATTACK = Attack(
    "flood the panel with requests, until the person gives up",
    plain=False,
    control="test_more_are_listed_where_two_kernels_ask",
)


def attack(facts: dict[str, Any]) -> Any:
    import threading
    import time

    from jupyter_agentbox.kernel import runtime

    link = runtime.link()
    refused: list[str] = []

    def ask(number: int) -> None:
        try:
            link.call("ledger", "flooded", {"number": number})
        except Exception as error:  # noqa: BLE001  # whatever it is, it is the evidence
            refused.append(f"{type(error).__name__}: {error}")

    for number in range(2 * facts["most_pending"]):
        threading.Thread(target=ask, args=(number,), daemon=True).start()
    until = time.monotonic() + 60
    while len(refused) < facts["most_pending"] and time.monotonic() < until:
        time.sleep(0.05)
    return refused


def test_only_so_many_wait_and_the_others_are_told_so(stage: Stage) -> None:
    world = stage.world
    before = world.calls("flooded")
    refused = stage.run(attack)
    assert refused, stage.said
    waiting = world.await_pending("flooded", count=MOST_PENDING)
    stage.judge(ATTACK, len(waiting) > MOST_PENDING or world.calls("flooded") != before)
    assert all(text.startswith("TooManyRequestsError: ") and str(MOST_PENDING) in text for text in refused)
    for request in waiting:  # the panel can be worked through, and then the kernel can ask again
        world.decide(request, "reject_once")
    with stage.running(once) as evidence:
        [request] = world.await_pending("flooded")
        world.decide(request, "allow_once")
        assert evidence() == "done", stage.said


def once(facts: dict[str, Any]) -> Any:
    from jupyter_agentbox.kernel import runtime

    return runtime.link().call("ledger", "flooded", {}).text


def test_more_are_listed_where_two_kernels_ask(plain: Stage) -> None:
    with plain.alone("second") as second, plain.running(attack) as one, second.running(attack) as other:
        assert one(), plain.said
        assert other(), second.said
        waiting = plain.world.await_pending("flooded", count=MOST_PENDING + 1)
        for request in waiting:
            plain.world.decide(request, "reject_once")

    assert len(waiting) == 2 * MOST_PENDING
