from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("leave by `chroot` or a new mount", plain=None)


def attack(facts: dict[str, Any]) -> Any:
    import ctypes

    libc = ctypes.CDLL(None)
    if libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0:
        libc.umount(b"/tmp")
        return "mounted"
    import os

    if os.fork() == 0:
        try:
            os.chroot(".")
            os._exit(0)
        except OSError:
            os._exit(1)
    return "changed" if os.wait()[1] == 0 else None


def test_the_root_cannot_be_changed(stage: Stage) -> None:
    if stage.level.value != "none":
        stage.expect(ATTACK, attack)
