from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.core.isolation import Isolation

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("leave a `sitecustomize.py` or `.pth` file where Python finds it")
PLANTED = "agentbox-planted.pth"


def attack(facts: dict[str, Any]) -> Any:
    import contextlib
    import os
    import pathlib
    import sys

    for directory in filter(os.path.isdir, sys.path):
        with contextlib.suppress(OSError):
            pathlib.Path(directory, "agentbox-planted.pth").write_text("")
    return "tried"


def planted() -> bool:
    """Whether the file is anywhere that Python outside looks; it is taken away."""
    found = [path for path in {Path(directory, PLANTED) for directory in sys.path} if path.exists()]
    for path in found:
        path.unlink()
    return bool(found)


def test_no_place_of_python_can_be_written(stage: Stage) -> None:
    if stage.level is Isolation.NONE and not any(os.access(path, os.W_OK) for path in sys.path if Path(path).is_dir()):
        pytest.skip("Python belongs to another user here: whoever installed it")
    stage.expect(ATTACK, attack, lambda _: planted())
