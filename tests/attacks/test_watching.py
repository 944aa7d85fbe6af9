from __future__ import annotations

from pathlib import Path
from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("watch what is made and changed in a directory that cannot be read (inotify, fanotify)")


def attack(facts: dict[str, Any]) -> Any:
    import ctypes
    import os

    libc = ctypes.CDLL(None, use_errno=True)
    watcher = libc.inotify_init1(os.O_NONBLOCK)
    if libc.inotify_add_watch(watcher, facts["directory"].encode(), 0xFFF) >= 0:
        return "watches"
    watcher = libc.fanotify_init(0x200, 0)  # FAN_REPORT_FID
    made = 0x100  # FAN_CREATE
    if watcher >= 0 and libc.fanotify_mark(watcher, 1, ctypes.c_uint64(made), -100, facts["directory"].encode()) >= 0:
        return "watches"
    return None


def test_nobody_elses_directory_can_be_watched(stage: Stage) -> None:
    stage.expect(ATTACK, attack, directory=str(Path(stage.world.root, "neighbor")))
