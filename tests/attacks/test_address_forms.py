from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("reach this machine by another spelling of its address: decimal, hexadecimal, octal, short, in IPv6")


def attack(facts: dict[str, Any]) -> Any:
    import os
    import socket
    import urllib.parse

    forms = ["127.0.0.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "127.1", "127.0.0.1.", "0", "0.0.0.0"]
    forms += ["[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "127.0.0.2"]
    forms += ["\uff11\uff12\uff17.0.0.1", "localhost@127.0.0.1", "localhost%00.example", "localhost.localdomain"]
    for form in forms:
        for port in (facts["web"], facts["port"]):
            place, way = (form.strip("[]"), port), None
            if "HTTP_PROXY" in os.environ:
                proxy = urllib.parse.urlsplit(os.environ["HTTP_PROXY"])
                place, way = (proxy.hostname, proxy.port), f"{form}:{port}"
            for tunnel in (True, False):
                try:
                    with socket.create_connection(place, 5) as connection:
                        if way and tunnel:
                            connection.sendall(f"CONNECT {way} HTTP/1.1\r\nHost: {way}\r\n\r\n".encode())
                            if not connection.recv(1000).startswith(b"HTTP/1.1 200"):
                                continue
                        url = f"http://{way}/" if way and not tunnel else "/"
                        host = way or f"{form}:{port}"
                        connection.sendall(f"GET {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
                        said = connection.makefile("rb").read()
                except (OSError, UnicodeError):
                    continue
                if said.startswith((b"HTTP/1.1 200", b"HTTP/1.1 302")):
                    return f"{form}:{port}"
    return None


def test_no_spelling_of_an_address_leads_anywhere(stage: Stage) -> None:
    stage.online().expect(ATTACK, attack)
