from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.processes.removal import remove_tree

from .attack import Attack
from .conftest import TIMEOUT, Stage, World, stage_at

ATTACK = Attack(
    "leave directories in the kernel's own directory that nobody can remove, so that no later kernel starts",
    plain=None,
    control="test_the_directories_stop_who_goes_down_into_them",
)


def attack(facts: dict[str, Any]) -> Any:
    import json
    import os
    import pathlib

    from ipykernel.connect import get_connection_file

    place = facts.get("place") or os.path.dirname(json.loads(pathlib.Path(get_connection_file()).read_text())["ip"])
    before = os.open(".", os.O_RDONLY)
    os.chdir(place)
    os.mkdir("closed")
    os.mkdir("closed/inner")
    os.chmod("closed", 0)
    for _ in range(1500):
        os.mkdir("d")
        os.chdir("d")
    os.fchdir(before)
    return place


def test_what_a_kernel_leaves_stops_no_other(stage: Stage) -> None:
    if stage.level is Isolation.NONE:
        return  # it has no such directory
    directory = f"deep-{stage.level.value}"
    with stage.alone(directory) as own:
        place = own.run(attack)
        assert place is not None, own.said
        [kernel_id] = [
            one["kernel"]["id"] for one in stage.world.api("GET", "api/sessions") if directory in one["path"]
        ]
        restarted = stage.world.api("POST", f"api/kernels/{kernel_id}/restart")
        assert restarted["id"] == kernel_id
        stage.world.api("DELETE", f"api/kernels/{kernel_id}")
    with stage.alone(f"{directory}-next") as later:
        stage.judge(ATTACK, later.run(start) != "started" or Path(place).parent.exists())


def start(facts: dict[str, Any]) -> Any:
    return "started"


def remove(directory: Path) -> None:
    """Remove a directory as `shutil.rmtree` did before Python 3.13: by a call for each level."""
    for entry in directory.iterdir():
        if entry.is_dir():
            remove(entry)
        else:
            entry.unlink()
    directory.rmdir()


def test_the_directories_stop_who_goes_down_into_them(world: World, tmp_path: Path) -> None:
    plain = stage_at(world, Isolation.NONE)
    try:
        assert plain.run(attack, place=str(tmp_path)) is not None, plain.said
        with pytest.raises((RecursionError, OSError)):
            remove(tmp_path)
    finally:
        for left in list(tmp_path.iterdir()):
            assert remove_tree(left, seconds=TIMEOUT)  # pytest itself could not
