from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.sandbox.install import kernelspec

from .attack import Attack
from .conftest import Stage, write_spec

ATTACK = Attack("read what programs keep below `~/.local`, where the kernel's Python is reached by a link")


def attack(facts: dict[str, Any]) -> Any:
    import pathlib

    return pathlib.Path(facts["secret"]).read_text()


def test_a_link_to_python_lays_nothing_open(stage: Stage) -> None:
    home = stage.world.root / "home"
    local, environment = home / ".local", home / f"env-{stage.level.value}"
    secret = local / "share" / "tool" / "auth.json"
    packages = environment / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    for directory in (local / "bin", secret.parent, environment / "bin", packages):
        directory.mkdir(parents=True, exist_ok=True)
    secret.write_text("secret")
    if not (local / "bin" / "python3").is_symlink():
        (local / "bin" / "python3").symlink_to(Path(sys.executable).resolve())
    (environment / "bin" / "python3").symlink_to(local / "bin" / "python3")
    (environment / "pyvenv.cfg").write_text(f"home = {local / 'bin'}\n")
    own = sysconfig.get_path("purelib")
    (packages / "own.pth").write_text(f"{own}\n")
    config = {"levels": [stage.level.value], "readable": [own]}
    spec = kernelspec(str(environment / "bin" / "python3"), display_name="linked", config=config)
    if stage.level is Isolation.NONE:
        del spec["metadata"]
    write_spec(stage.world.root, f"linked-{stage.level.value}", spec)
    if stage.level is Isolation.SRT:
        # srt shows what a link leads to, and not the link: such a Python is not found, and no kernel is started.
        with pytest.raises(HTTPError), stage.of("linked-srt"):
            pass
        stage.judge(ATTACK, succeeded=False)
        return
    with stage.of(f"linked-{stage.level.value}") as linked:
        linked.expect(ATTACK, attack, secret=str(secret))
