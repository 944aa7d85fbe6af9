from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("open sockets past a filter of system calls with `io_uring`", plain=None)


def attack(facts: dict[str, Any]) -> Any:
    import ctypes
    import os

    made = ctypes.CDLL(None).syscall(425, 4, ctypes.create_string_buffer(120))
    if made < 0:
        return None
    os.close(made)
    return "made"


def test_io_uring_is_closed(stage: Stage) -> None:
    stage.expect(ATTACK, attack)
