from __future__ import annotations

import inspect
import subprocess
import sys
import textwrap
from typing import Any

import pytest

from jupyter_agentbox.core.isolation import Isolation

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("leave by `chroot` or a new mount", plain=None, control="test_whoever_may_mount_changes_what_is_where")


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
    if stage.level is not Isolation.NONE:  # a mount of root's own would be the whole machine's
        stage.expect(ATTACK, attack)


def test_whoever_may_mount_changes_what_is_where() -> None:
    code = f"{textwrap.dedent(inspect.getsource(attack))}\nprint(attack({{}}))".replace("dict[str, Any]", "dict")
    code = code.replace("-> Any", "")
    alone = ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-c", code]
    done = subprocess.run(alone, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr:
        pytest.skip(f"no mount namespace can be made here: {done.stderr.strip()}")

    assert done.stdout == "mounted\n", done.stderr
