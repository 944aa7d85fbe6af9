from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("reach a domain that is not allowed, where another is")


def attack(facts: dict[str, Any]) -> Any:
    import urllib.request

    # Another name of this machine. What is allowed is `localhost`.
    with urllib.request.urlopen(f"http://127.0.0.1:{facts['web']}/", timeout=5) as answer:
        return answer.read().decode()


def attack_by_a_tunnel(facts: dict[str, Any]) -> Any:
    import os
    import socket
    import urllib.parse

    proxy = urllib.parse.urlsplit(os.environ.get("HTTPS_PROXY", f"http://127.0.0.1:{facts['tcp']}"))
    with socket.create_connection((proxy.hostname, proxy.port), 5) as connection:
        if "HTTPS_PROXY" in os.environ:
            connection.sendall(f"CONNECT 127.0.0.1:{facts['tcp']} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
        return connection.recv(5).decode()


def reach_the_allowed_one(facts: dict[str, Any]) -> Any:
    import urllib.request

    with urllib.request.urlopen(f"http://localhost:{facts['web']}/", timeout=5) as answer:
        return answer.read().decode()


def test_domain_that_is_not_allowed_cannot_be_reached(stage: Stage) -> None:
    online = stage.online()

    online.expect(ATTACK, attack, lambda heard: heard == "open site")
    online.expect(ATTACK, attack_by_a_tunnel, lambda heard: heard == "hello")
    if stage.level.value not in ("landlock", "srt"):  # there our proxy has no part
        assert online.run(reach_the_allowed_one) == "open site"
