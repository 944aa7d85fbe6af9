from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("take all memory (`memory_limit` is set)", plain=None)


def attack(facts: dict[str, Any]) -> Any:
    taken = bytearray(facts["memory_limit"] + (1 << 30))  # never written: it costs addresses, and no memory
    return len(taken)


def test_memory_has_its_limit_and_the_kernel_lives(stage: Stage) -> None:
    limited = stage.limited()
    limited.expect(ATTACK, attack)
    assert limited.run(alive) == "alive"


def alive(facts: dict[str, Any]) -> Any:
    return "alive"
