from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("leave a program in the work directory that runs as you, whoever starts it")


def attack(facts: dict[str, Any]) -> Any:
    import contextlib
    import os
    import stat

    for make in (
        lambda path: os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o4755)),
        lambda path: os.mknod(path, stat.S_IFREG | 0o4755),
        lambda path: (open(path, "w").close(), os.chmod(path, 0o4755)),
        lambda path: (open(path, "w").close(), os.fchmod(os.open(path, os.O_RDONLY), 0o2755)),
    ):
        with contextlib.suppress(OSError):
            make(facts["name"])
        with contextlib.suppress(FileNotFoundError):
            if os.stat(facts["name"]).st_mode & 0o6000:
                return "left"
            os.unlink(facts["name"])
    return None


def test_no_program_of_its_owner_is_left(stage: Stage) -> None:
    stage.expect(ATTACK, attack, name=f"shell-{stage.level.value}")
