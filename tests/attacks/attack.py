"""What an attack is, and the table of all of them."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from jupyter_agentbox.core.isolation import Isolation
from jupyter_agentbox.core.sandbox_settings import SANDBOX_LEVELS

LEVELS = (Isolation.NONE, *SANDBOX_LEVELS)
HERE = Path(__file__).parent
HEAD = """\
<!-- Written by `python -m tests.attacks.attack`; each cell is checked by a test of the same name in tests/attacks/. -->

| attack | plain kernel | bubblewrap | bubblewrap, host's `/proc` | Landlock and seccomp | srt, on Linux |
|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Attack:
    """One attack.

    Parameters
    ----------
    name : str
        What it tries, for the table.
    plain : bool or None
        Whether it succeeds in a plain kernel; ``None`` if that depends on the machine or the user.
    remains : tuple of Isolation
        The levels at which it still succeeds.
    note : str
        Why, for the table.
    control : str
        The test of the same file in which the attack is seen to work on a target that nothing protects. Needed where a
        plain kernel shows nothing, because the attack fails there as well, or is not run there. Without it, an attack
        that depends on the machine is tried in a plain kernel first, and proves nothing where it fails.
    """

    name: str
    plain: bool | None = True
    remains: tuple[Isolation, ...] = field(default=())
    note: str = ""
    control: str = ""

    def succeeds_at(self, level: Isolation) -> bool | None:
        """Whether the attack succeeds at a level."""
        return self.plain if level is Isolation.NONE else level in self.remains

    @property
    def row(self) -> str:
        """The attack's row of the table."""
        words = {True: "**succeeds**", False: "fails", None: "may succeed"}
        cells = " | ".join(words[self.succeeds_at(level)] for level in LEVELS)
        return f"| {self.name}{f' ({self.note})' if self.note else ''} | {cells} |"


def modules() -> list[ModuleType]:
    """Return the files that declare an attack, as modules."""
    found = [importlib.import_module(f"tests.attacks.{path.stem}") for path in sorted(HERE.glob("test_*.py"))]
    return [module for module in found if hasattr(module, "ATTACK")]


def attacks() -> list[Attack]:
    """Return the attacks of all files."""
    return [module.ATTACK for module in modules()]


def table() -> str:
    """Return the table as it stands in the docs."""
    return HEAD + "".join(f"{attack.row}\n" for attack in attacks())


if __name__ == "__main__":
    (HERE.parents[1] / "docs" / "explanation" / "attack-table.md").write_text(table(), encoding="utf-8")
