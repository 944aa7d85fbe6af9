from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("read the server's environment, memory map or files through `/proc/<pid>`")


def attack(facts: dict[str, Any]) -> Any:
    import os
    import pathlib

    process = pathlib.Path("/proc") / str(facts["server_pid"])
    for look in (
        lambda: (process / "environ").read_text(),
        lambda: (process / "maps").read_text(),
        lambda: (process / "mem").open("rb").close() or "opened",
        lambda: os.listdir(process / "root" / "root"),
        lambda: os.listdir(process / "cwd") or "listed",
        lambda: os.readlink(process / "fd" / "1"),
    ):
        try:
            return look()[:2000]
        except OSError:
            continue
    return None


def test_proc_shows_nothing_of_the_server(stage: Stage) -> None:
    stage.expect(ATTACK, attack)
