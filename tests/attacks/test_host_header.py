from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("reach another site of an allowed server by its `Host` header, in plain HTTP")


def attack(facts: dict[str, Any]) -> Any:
    import os
    import socket
    import urllib.parse

    place, path = ("127.0.0.1", facts["web"]), "/"
    if "HTTP_PROXY" in os.environ:
        proxy = urllib.parse.urlsplit(os.environ["HTTP_PROXY"])
        place, path = (proxy.hostname, proxy.port), f"http://localhost:{facts['web']}/"
    for hosts in (["hidden.example"], ["localhost", "hidden.example"], ["hidden.example", f"localhost:{facts['web']}"]):
        lines = [f"GET {path} HTTP/1.1", *(f"Host: {host}" for host in hosts), "Connection: close", "", ""]
        with socket.create_connection(place, 5) as connection:
            connection.sendall("\r\n".join(lines).encode())
            if b"hidden site" in (said := connection.makefile("rb").read()):
                return said.decode()
    return None


def test_host_header_names_no_other_site(stage: Stage) -> None:
    stage.online().expect(ATTACK, attack)
