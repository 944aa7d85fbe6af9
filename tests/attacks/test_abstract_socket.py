from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("connect to an abstract unix socket")


def attack(facts: dict[str, Any]) -> Any:
    import socket

    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(facts["abstract"])
        return connection.recv(5).decode()


def test_abstract_sockets_cannot_be_reached(stage: Stage) -> None:
    stage.expect(ATTACK, attack, lambda heard: heard == "hello")
