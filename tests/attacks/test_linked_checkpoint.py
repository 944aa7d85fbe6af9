from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("let the server copy a secret into the work directory, as the checkpoint of a notebook that is a link")


def attack(facts: dict[str, Any]) -> Any:
    import os

    os.symlink(facts["target"], facts["name"])
    return "linked"


def look(facts: dict[str, Any]) -> Any:
    import pathlib

    name, _, kind = facts["name"].rpartition(".")
    return pathlib.Path(f".ipynb_checkpoints/{name}-checkpoint.{kind}").read_text()


def test_the_server_copies_through_no_link_of_a_kernel(stage: Stage) -> None:
    secret = str(stage.world.root / "neighbor" / "diary")
    with stage.alone(f"copying-{stage.level.value}") as own:
        assert own.run(attack, name="copied.ipynb", target=secret) == "linked", own.said

        refused = stage.world.is_refused("POST", f"api/contents/copying-{stage.level.value}/copied.ipynb/checkpoints")

        succeeded = own.run(look, name="copied.ipynb") == stage.world.ssh_key
        stage.judge(ATTACK, succeeded)
        assert refused is not succeeded
