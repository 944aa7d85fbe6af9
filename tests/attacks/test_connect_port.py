from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("tunnel to another port of an allowed server")


def attack(facts: dict[str, Any]) -> Any:
    import os
    import socket
    import urllib.parse

    place = ("localhost", facts["tcp"])
    if "HTTPS_PROXY" in os.environ:
        proxy = urllib.parse.urlsplit(os.environ["HTTPS_PROXY"])
        place = (proxy.hostname, proxy.port)
    with socket.create_connection(place, 5) as connection:
        if "HTTPS_PROXY" in os.environ:
            connection.sendall(f"CONNECT localhost:{facts['tcp']} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
        return connection.recv(5).decode()


def test_tunnel_leads_to_no_other_port(stage: Stage) -> None:
    stage.online().expect(ATTACK, attack, lambda heard: heard == "hello")
