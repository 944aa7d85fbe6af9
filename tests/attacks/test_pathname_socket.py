from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("connect to a unix socket in the file system (an agent's, a bus's, a container engine's)")


def attack(facts: dict[str, Any]) -> Any:
    import socket

    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(facts["pathname"])
        return connection.recv(5).decode()


def test_sockets_in_the_file_system_cannot_be_reached(stage: Stage) -> None:
    stage.expect(ATTACK, attack, lambda heard: heard == "hello")
