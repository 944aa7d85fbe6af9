from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("send to a datagram socket in the file system (the journal's, systemd's) from one of a socket pair")


def attack(facts: dict[str, Any]) -> Any:
    import socket

    one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.sendto(b"forged", facts["log"])
    return "sent"


def test_no_socket_of_a_pair_leads_out(stage: Stage, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
        log.bind(str(tmp_path / "log"))

        stage.expect(ATTACK, attack, log=str(tmp_path / "log"))
