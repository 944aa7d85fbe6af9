from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("open an `AF_VSOCK` socket to the machine's hypervisor, which no network namespace holds", plain=None)


def attack(facts: dict[str, Any]) -> Any:
    import socket

    socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close()
    return "opened"


def test_the_hypervisor_cannot_be_reached(stage: Stage) -> None:
    stage.expect(ATTACK, attack)
