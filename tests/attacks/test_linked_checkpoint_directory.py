from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack(
    "let the server delete or rename a file elsewhere as a notebook's checkpoint, in a directory that is a link"
)


def attack(facts: dict[str, Any]) -> Any:
    import os
    import pathlib

    pathlib.Path("own.txt").write_text("mine")
    os.symlink(facts["target"], ".ipynb_checkpoints")
    return "linked"


def test_the_server_deletes_no_checkpoint_through_a_link_of_a_kernel(stage: Stage) -> None:
    place = f"deleting-{stage.level.value}"
    elsewhere = stage.world.root / "home" / f"elsewhere-{stage.level.value}"
    elsewhere.mkdir()
    victim = elsewhere / "own-checkpoint.txt"
    victim.write_text("kept")
    with stage.alone(place) as own:
        assert own.run(attack, target=str(elsewhere)) == "linked", own.said

    refused = stage.world.is_refused("DELETE", f"api/contents/{place}/own.txt/checkpoints/checkpoint")

    stage.judge(ATTACK, not victim.exists())
    assert refused is victim.exists()
