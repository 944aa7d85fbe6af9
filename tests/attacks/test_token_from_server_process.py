from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("read a token in the environment of the server's process (`/proc/<pid>/environ`)")


def attack(facts: dict[str, Any]) -> Any:
    import contextlib
    import pathlib

    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            found += [entry.decode() for entry in path.read_bytes().split(b"\0") if b"API_TOKEN=" in entry]
    return found or None


def test_the_environment_of_the_server_cannot_be_read(stage: Stage) -> None:
    wanted = f"JUPYTERHUB_API_TOKEN={stage.world.hub_token}"
    stage.expect(ATTACK, attack, lambda found: found is not None and wanted in found)
