from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("change jupyter_agentbox itself, which the server runs too")


def attack(facts: dict[str, Any]) -> Any:
    import jupyter_agentbox

    with open(jupyter_agentbox.__file__, "a"):
        return "opened"


def test_the_package_cannot_be_changed(stage: Stage) -> None:
    stage.expect(ATTACK, attack)
