from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import jupyter_agentbox
from jupyter_agentbox.core.isolation import Isolation

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("change jupyter_agentbox itself, which the server runs too")
OWN = Path(jupyter_agentbox.__file__)


def attack(facts: dict[str, Any]) -> Any:
    import jupyter_agentbox

    with open(jupyter_agentbox.__file__, "a"):
        return "opened"


def test_the_package_cannot_be_changed(stage: Stage) -> None:
    if stage.level is Isolation.NONE and not os.access(OWN, os.W_OK):
        pytest.skip("it belongs to another user here: whoever installed it")
    stage.expect(ATTACK, attack)
