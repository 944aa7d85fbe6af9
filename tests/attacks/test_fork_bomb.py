from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("start processes without end (`process_limit` is set)")


def attack(facts: dict[str, Any]) -> Any:
    import subprocess

    started = []
    try:
        for _ in range(4 * facts["process_limit"]):
            started.append(subprocess.Popen(["sleep", "60"]))
        return len(started)
    finally:
        for process in started:
            process.kill()
            process.wait()


def test_processes_have_their_limit_and_there_is_a_kernel_afterwards(stage: Stage) -> None:
    limited = stage.limited()
    limited.expect(ATTACK, attack)
    assert limited.run(alive) == "alive"


def alive(facts: dict[str, Any]) -> Any:
    return "alive"
