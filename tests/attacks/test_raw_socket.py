from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("open a raw or packet socket", plain=None)


def attack(facts: dict[str, Any]) -> Any:
    import socket

    for family, kind in ((socket.AF_PACKET, socket.SOCK_RAW), (socket.AF_INET, socket.SOCK_RAW)):
        try:
            socket.socket(family, kind, socket.IPPROTO_ICMP).close()
        except OSError:
            continue
        return int(family)
    return None


def test_raw_sockets_are_closed(stage: Stage) -> None:
    stage.expect(ATTACK, attack)
