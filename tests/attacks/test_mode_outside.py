from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("open a secret to other users by its mode, or change its owner, times or attributes")


def attack(facts: dict[str, Any]) -> Any:
    import os

    found = []
    for change in (
        lambda path: os.chmod(path, 0o644),
        lambda path: os.fchmod(os.open(path, os.O_RDONLY), 0o644),
        lambda path: os.utime(path),
        lambda path: os.utime(path, (1, 1)),
        lambda path: os.chown(path, os.getuid(), os.getgid()),
        lambda path: os.setxattr(path, "user.mark", b"1"),
    ):
        try:
            change(facts["secret"])
            found.append("changed")
        except OSError:
            continue
    return found or None


def test_what_cannot_be_written_keeps_its_mode(stage: Stage) -> None:
    stage.expect(ATTACK, attack, secret=str(stage.world.root / "neighbor" / "diary"))
