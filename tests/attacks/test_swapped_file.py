from __future__ import annotations

from typing import Any

from .attack import LEVELS, Attack
from .conftest import Stage

ATTACK = Attack(
    "swap a file that an argument names, between review and run",
    remains=LEVELS[1:],
    note="the arguments are reviewed, and a path is not what is in the file: let tools take content, or put what they"
    " read outside of the work directory",
)


def attack(facts: dict[str, Any]) -> Any:
    import pathlib
    import threading
    import time

    from jupyter_agentbox.kernel import runtime

    link = runtime.link()
    path = pathlib.Path(facts["work"], "report.txt")
    path.write_text("harmless")
    said: list[str] = []

    def ask() -> None:
        said.append(link.call("ledger", "report", {"path": str(path)}).text)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if any(found["tool"] == "report" for found in link.list_pending(within=60)):
            break
    path.write_text("harmful")
    link.call("ledger", "ready", {})
    asking.join(60)
    return said


def test_a_path_is_not_what_is_in_the_file(stage: Stage) -> None:
    world = stage.world
    with stage.running(attack) as evidence:
        [ready] = world.await_pending("ready")
        [request] = world.await_pending("report")
        world.decide(request, "allow_once")
        world.decide(ready, "allow_once")
        said = evidence()
    assert said, stage.said
    stage.judge(ATTACK, said == ["harmful"])
