from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("ask a name server (the resolver's sockets)", plain=None)


def attack(facts: dict[str, Any]) -> Any:
    import socket

    return socket.getaddrinfo("jupyter.org", 443)[0][4][0]


def test_names_cannot_be_resolved(stage: Stage) -> None:
    stage.expect(ATTACK, attack)
