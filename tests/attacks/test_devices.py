from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("open the disk, the memory or a new device file", plain=None)


def attack(facts: dict[str, Any]) -> Any:
    import glob
    import os
    import stat

    for path in [*glob.glob("/dev/[svn][dv][a-z]*"), "/dev/mem", "/dev/kmsg", "/dev/port", "/dev/fuse", "/dev/kvm"]:
        try:
            open(path, "rb").close()
        except OSError:
            continue
        return path
    os.mknod("planted-device", 0o600 | stat.S_IFBLK, os.makedev(254, 0))
    os.unlink("planted-device")
    return "made"


def test_no_device_can_be_opened(stage: Stage) -> None:
    stage.expect(ATTACK, attack)
