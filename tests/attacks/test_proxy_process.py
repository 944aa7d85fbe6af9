from __future__ import annotations

from typing import Any

import pytest

from jupyter_agentbox.core.isolation import Isolation

from .attack import Attack
from .conftest import Stage, World, stage_at

ATTACK = Attack(
    "ask the proxy past what listens inside, over its socket, for what is not allowed",
    plain=None,
    control="test_what_is_allowed_is_reached_over_the_same_socket",
)


def attack(facts: dict[str, Any]) -> Any:
    import socket

    for target in facts["targets"]:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect("/run/agentbox/proxy")
            connection.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
            said = connection.recv(1000)
        if said.startswith(b"HTTP/1.1 200"):
            return said.decode()
    return None


def test_the_proxy_itself_decides(stage: Stage) -> None:
    if stage.level is not Isolation.NONE:  # a plain kernel has no proxy
        port, tcp = stage.world.port, stage.world.facts["tcp"]
        targets = [f"127.0.0.1:{port}", f"localhost:{port}", f"localhost:{tcp}"]
        stage.online().expect(ATTACK, attack, targets=targets)


@pytest.mark.parametrize("level", [Isolation.BUBBLEWRAP, Isolation.BUBBLEWRAP_HOST_PROC])
def test_what_is_allowed_is_reached_over_the_same_socket(world: World, level: Isolation) -> None:
    stage = stage_at(world, level).online()

    said = stage.run(attack, targets=[f"localhost:{world.web.server_port}"])

    assert said is not None, stage.said
