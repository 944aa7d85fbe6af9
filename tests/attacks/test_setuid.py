from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("gain rights by a setuid program or a capability", plain=None)


def attack(facts: dict[str, Any]) -> Any:
    status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
    held = int(status["CapEff"], 16) | int(status["CapPrm"], 16)
    return None if status["NoNewPrivs"].strip() == "1" and held == 0 else status["CapEff"]


def test_no_rights_can_be_gained(stage: Stage) -> None:
    stage.expect(ATTACK, attack)
