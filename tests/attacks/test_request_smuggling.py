from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("smuggle a request for another site in or behind a request for an allowed one")


def attack(facts: dict[str, Any]) -> Any:
    import os
    import socket
    import urllib.parse

    place, path = ("127.0.0.1", facts["web"]), "/"
    if "HTTP_PROXY" in os.environ:
        proxy = urllib.parse.urlsplit(os.environ["HTTP_PROXY"])
        place, path = (proxy.hostname, proxy.port), f"http://localhost:{facts['web']}/"
    host = f"Host: localhost:{facts['web']}"
    second = "GET / HTTP/1.1\r\nHost: hidden.example\r\nConnection: close\r\n\r\n"
    ways = [
        [f"GET {path} HTTP/1.1", host, ""],
        [f"GET {path} HTTP/1.1", host, "Content-Length: 0", f"Content-Length: {len(second)}", ""],
        [f"POST {path} HTTP/1.1", host, "Content-Length: 5", "Transfer-Encoding: chunked", "", "0", ""],
        [f"POST {path} HTTP/1.1", host, "Content-Length: 0", "Transfer-Encoding : chunked", ""],
        [f"POST {path} HTTP/1.1", host, "Transfer-Encoding: chunked, identity", "", "0", ""],
        [f"POST {path} HTTP/1.1", host, "Connection: content-length", f"Content-Length: {len(second)}", ""],
        [f"POST {path} HTTP/1.0", host, "Connection: keep-alive", "Transfer-Encoding: chunked", "", "0", ""],
        [f"GET {path}\tHTTP/1.1\nX: y HTTP/1.1", host, ""],
        [f"GET {path} HTTP/1.1", host, "X: y\r\n\r\n" + second, ""],
    ]
    for lines in ways:
        with socket.create_connection(place, 5) as connection:
            connection.sendall(("\r\n".join(lines) + "\r\n" + second).encode())
            connection.shutdown(socket.SHUT_WR)
            try:
                said = connection.makefile("rb").read()
            except OSError:
                continue
            if b"hidden site" in said:
                return said.decode()
    return None


def test_no_request_hides_another(stage: Stage) -> None:
    stage.online().expect(ATTACK, attack)
