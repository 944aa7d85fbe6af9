from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage, World

ATTACK = Attack("send UDP, as a DNS query does")


def attack(facts: dict[str, Any]) -> Any:
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"hello", ("127.0.0.1", facts["udp"]))
    return "sent"


def heard(world: World) -> bool:
    try:
        return world.udp.recv(5) == b"hello"
    except TimeoutError:
        return False


def test_udp_is_closed(stage: Stage) -> None:
    stage.expect(ATTACK, attack, lambda _: heard(stage.world))
