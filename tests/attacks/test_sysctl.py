from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("set `/proc/sys/kernel/core_pattern`, which runs a program as root", plain=None)


def attack(facts: dict[str, Any]) -> Any:
    for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/kernel/modprobe"):
        try:
            open(path, "r+").close()
        except OSError:
            continue
        return path
    return None


def test_the_system_cannot_be_set(stage: Stage) -> None:
    stage.expect(ATTACK, attack)
