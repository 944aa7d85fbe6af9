from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("trace the server with `ptrace`, or read its memory", plain=None)


def attack(facts: dict[str, Any]) -> Any:
    import ctypes
    import os

    if os.fork() == 0:  # what a process traces is let go when that process ends
        os._exit(ctypes.CDLL(None).ptrace(0x4206, facts["server_pid"], None, None) & 1)  # PTRACE_SEIZE
    return "traced" if os.wait()[1] == 0 else None


def test_the_server_cannot_be_traced(stage: Stage) -> None:
    stage.expect(ATTACK, attack)
