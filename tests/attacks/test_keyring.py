from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("read and add keys in the kernel's keyrings, which are shared by a login session", plain=None)


def attack(facts: dict[str, Any]) -> Any:
    import ctypes
    import platform

    keyctl = {"x86_64": 250, "aarch64": 219}[platform.machine()]
    return "asked" if ctypes.CDLL(None).syscall(keyctl, 0, -3, 0) > 0 else None


def test_the_keyrings_are_closed(stage: Stage) -> None:
    stage.expect(ATTACK, attack)
