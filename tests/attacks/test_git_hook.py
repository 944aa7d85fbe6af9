from __future__ import annotations

from typing import Any

from jupyter_agentbox.core.isolation import Isolation

from .attack import Attack
from .conftest import Stage

ATTACK = Attack(
    "leave a git hook in the work directory's repository, to be run outside",
    remains=(Isolation.LANDLOCK,),
    note="Landlock cannot take back a part of the work directory",
)


def attack(facts: dict[str, Any]) -> Any:
    import pathlib

    hook = pathlib.Path(".git/hooks/post-checkout")
    hook.write_text("#!/bin/sh\n")
    hook.unlink()
    return "written"


def test_the_hooks_stay_as_they_were(stage: Stage) -> None:
    stage.expect(ATTACK, attack)
