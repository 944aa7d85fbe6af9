from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("talk to another kernel over its sockets")


def attack(facts: dict[str, Any]) -> Any:
    import glob
    import json
    import os
    import socket

    own = os.environ.get("JPY_CONNECTION", "")
    for path in glob.glob(facts["runtime"] + "/kernel-*.json"):
        told = json.load(open(path))
        if told["transport"] == "tcp" and path != own:
            with socket.create_connection((told["ip"], told["control_port"]), 2):
                return path
    from ipykernel.connect import get_connection_info

    mine = get_connection_info(unpack=True)["ip"]
    for path in glob.glob(f"/tmp/agentbox-{os.getuid()}/*/ipc/k-1"):
        if not path.startswith(str(mine)):
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(path)
            return path
    return None


def test_another_kernel_cannot_be_reached(stage: Stage) -> None:
    stage.expect(ATTACK, attack)
