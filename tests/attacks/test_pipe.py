from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.core.isolation import Isolation

from .attack import Attack
from .conftest import Stage

ATTACK = Attack(
    "leave a pipe that nobody writes where git's settings are looked for, so that the next kernel there never starts",
    plain=None,
    control="test_the_pipe_stops_who_opens_it_by_its_name",
)


def attack(facts: dict[str, Any]) -> Any:
    import os
    import pathlib

    repository = pathlib.Path(facts.get("place", "."), "inner", ".git")
    repository.mkdir(parents=True)
    for name in ("commondir", "config", "HEAD"):
        os.mkfifo(repository / name)
    return "made"


def start(facts: dict[str, Any]) -> Any:
    return "started"


def test_the_next_kernel_starts(stage: Stage) -> None:
    if stage.level is Isolation.NONE:
        return  # nothing is looked for
    directory = f"pipe-{stage.level.value}"
    with stage.alone(directory) as own:
        assert own.run(attack) == "made", own.said
    with stage.alone(directory) as later:
        stage.judge(ATTACK, later.run(start) != "started")


def test_the_pipe_stops_who_opens_it_by_its_name(tmp_path: Path) -> None:
    attack({"place": str(tmp_path)})
    code = "import sys; open(sys.argv[1]).readline()"
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "inner" / ".git" / "commondir")], timeout=3, check=False
        )
