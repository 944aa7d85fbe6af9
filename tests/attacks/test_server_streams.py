from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("cut the server's log, or read its terminal, through the standard streams that a kernel inherits")


def attack(facts: dict[str, Any]) -> Any:
    import glob
    import os

    for link in glob.glob("/proc/self/fd/*"):
        try:
            if os.readlink(link) == facts["root"] + "/server.log" or os.readlink(link).startswith("/dev/pts"):
                return os.readlink(link)
        except OSError:
            continue
    return None


def test_the_streams_of_the_server_are_not_inherited(stage: Stage) -> None:
    stage.expect(ATTACK, attack)
