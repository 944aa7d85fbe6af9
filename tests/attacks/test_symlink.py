from __future__ import annotations

from typing import Any

from .attack import Attack
from .conftest import Stage

ATTACK = Attack("read through a symbolic link in the work directory")


def attack(facts: dict[str, Any]) -> Any:
    import os
    import pathlib

    link = pathlib.Path("link-out")
    link.unlink(missing_ok=True)
    os.symlink(facts["home"] + "/.ssh/id_ed25519", link)
    try:
        return link.read_text()
    finally:
        link.unlink()


def test_a_link_leads_nowhere(stage: Stage) -> None:
    stage.expect(ATTACK, attack)
