from __future__ import annotations

import ctypes
from typing import Any

import pytest

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("read a System V message queue of another process, found by its number", plain=None)


def attack(facts: dict[str, Any]) -> Any:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    message = ctypes.create_string_buffer(64)
    size = libc.msgrcv(facts["queue"], message, 40, 0, 0o4000)  # IPC_NOWAIT
    return message.raw[8 : 8 + size].decode() if size > 0 else None


def test_the_queues_of_others_cannot_be_read(stage: Stage) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    queue = libc.msgget(0, 0o1600)
    if queue < 0:
        pytest.skip("no queue can be made here")
    try:
        assert libc.msgsnd(queue, ctypes.create_string_buffer((1).to_bytes(8, "little") + b"secret"), 6, 0) == 0

        stage.expect(ATTACK, attack, lambda said: said == "secret", queue=queue)
    finally:
        libc.msgctl(queue, 0, None)
