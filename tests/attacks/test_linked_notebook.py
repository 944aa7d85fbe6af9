from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("let the server save a notebook through a link that leads to a start-up file")


def attack(facts: dict[str, Any]) -> Any:
    import os

    os.symlink(facts["target"], facts["name"])
    return "linked"


def test_the_server_saves_through_no_link_of_a_kernel(stage: Stage) -> None:
    place = f"saving-{stage.level.value}/linked.ipynb"
    target = stage.world.root / "home" / f".profile-{stage.level.value}"
    # In bash, the line of the file that holds it is a command.
    output = {"output_type": "stream", "name": "stdout", "text": '$(touch "$HOME/taken")'}
    cell = {"cell_type": "code", "id": "one", "source": "", "metadata": {}, "outputs": [output], "execution_count": 1}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    with stage.alone(f"saving-{stage.level.value}") as own:
        assert own.run(attack, name="linked.ipynb", target=str(target)) == "linked", own.said

        refused = stage.world.is_refused("PUT", f"api/contents/{place}", {"type": "notebook", "content": notebook})

        stage.judge(ATTACK, target.exists())
        assert refused is not target.exists()
