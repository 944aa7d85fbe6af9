from __future__ import annotations

import urllib.error
from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("get the next kernel another work directory, by a link in the place of a folder")


def attack(facts: dict[str, Any]) -> Any:
    import os

    os.symlink(facts["target"], "data")
    return "linked"


def look(facts: dict[str, Any]) -> Any:
    import pathlib

    return pathlib.Path("notes.txt").read_text()


def test_a_kernel_is_not_started_through_a_link_of_another(stage: Stage) -> None:
    other = stage.world.root / "home" / "other-project"
    other.mkdir(exist_ok=True)
    (other / "notes.txt").write_text("mine")
    place = f"linking-{stage.level.value}"
    with stage.alone(place) as own:
        assert own.run(attack, target=str(other)) == "linked", own.said
    said, refusal = None, ""
    try:
        with stage.alone(f"{place}/data") as misled:
            said = misled.run(look)
    except urllib.error.HTTPError as error:
        refusal = error.read().decode()

    stage.judge(ATTACK, said == "mine")
    assert (said is None) is ("sandboxed kernel" in refusal)
