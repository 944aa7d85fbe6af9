from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("ask the proxy past what listens inside, over its socket, for what is not allowed", plain=None)


def attack(facts: dict[str, Any]) -> Any:
    import socket

    for target in (f"127.0.0.1:{facts['port']}", f"localhost:{facts['port']}", f"localhost:{facts['tcp']}"):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect("/run/agentbox/proxy")
            connection.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
            said = connection.recv(1000)
        if said.startswith(b"HTTP/1.1 200"):
            return said.decode()
    return None


def test_the_proxy_itself_decides(stage: Stage) -> None:
    if stage.level.value != "none":
        stage.online().expect(ATTACK, attack)
