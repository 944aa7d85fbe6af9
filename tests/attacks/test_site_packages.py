from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

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
    stage.expect(ATTACK, attack, lambda _: planted())
