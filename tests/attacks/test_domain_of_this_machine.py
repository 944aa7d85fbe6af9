from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("reach the Jupyter server through an allowed name that leads to this machine")


def attack(facts: dict[str, Any]) -> Any:
    import json
    import urllib.request

    with urllib.request.urlopen(f"http://localhost:{facts['port']}/api", timeout=5) as answer:
        return json.loads(answer.read())["version"]


def attack_by_a_tunnel(facts: dict[str, Any]) -> Any:
    import http.client
    import os
    import urllib.parse

    connection = http.client.HTTPConnection("localhost", facts["port"], timeout=5)
    if "HTTPS_PROXY" in os.environ:
        proxy = urllib.parse.urlsplit(os.environ["HTTPS_PROXY"])
        connection = http.client.HTTPConnection(proxy.hostname, proxy.port, timeout=5)
        connection.set_tunnel("localhost", facts["port"])
    connection.request("GET", "/api")
    return connection.getresponse().read().decode()


def test_allowed_name_does_not_lead_to_the_server(stage: Stage) -> None:
    online = stage.online()

    online.expect(ATTACK, attack)
    online.expect(ATTACK, attack_by_a_tunnel, lambda heard: heard is not None and "version" in heard)
