from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("open a TCP connection")


def attack(facts: dict[str, Any]) -> Any:
    import socket

    with socket.create_connection(("127.0.0.1", facts["tcp"]), 2) as connection:
        return connection.recv(5).decode()


def test_tcp_is_closed(stage: Stage) -> None:
    stage.expect(ATTACK, attack, lambda heard: heard == "hello")
