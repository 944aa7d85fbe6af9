from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("end the server by a limit that is set for it (`prlimit`), or slow it down by its priority")


def attack(facts: dict[str, Any]) -> Any:
    import os
    import resource

    process = facts["victim_pid"]
    found = []
    for change in (
        lambda: resource.prlimit(process, resource.RLIMIT_CORE, resource.prlimit(process, resource.RLIMIT_CORE)),
        lambda: os.setpriority(os.PRIO_PROCESS, process, os.getpriority(os.PRIO_PROCESS, process)),
        lambda: os.sched_setaffinity(process, os.sched_getaffinity(process)),
    ):
        try:
            change()
            found.append("changed")
        except OSError:
            continue
    return found or None


def test_the_limits_of_others_cannot_be_set(stage: Stage) -> None:
    stage.expect(ATTACK, attack)
