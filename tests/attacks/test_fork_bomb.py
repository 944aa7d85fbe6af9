from __future__ import annotations

import os
from typing import Any

import pytest

from jupyter_agentbox.core.isolation import Isolation

from .attack import Attack
from .conftest import Stage

ATTACK = Attack(
    "start processes without end (`process_limit` is set)",
    note="root's processes have no such limit, so a server that runs as root refuses it",
)


def attack(facts: dict[str, Any]) -> Any:
    import subprocess

    started = []
    try:
        for _ in range(2 * facts["process_limit"]):
            started.append(subprocess.Popen(["sleep", "60"]))
        return len(started)
    finally:
        for process in started:
            process.kill()
            process.wait()


def test_processes_have_their_limit_and_the_kernel_lives(stage: Stage) -> None:
    if os.getuid() == 0 and stage.level is not Isolation.NONE:
        pytest.skip("the limit is refused to root (tests/sandbox): Linux does not count root's processes")
    limited = stage.limited()
    limited.expect(ATTACK, attack)
    assert limited.run(alive) == "alive"


def alive(facts: dict[str, Any]) -> Any:
    return "alive"
