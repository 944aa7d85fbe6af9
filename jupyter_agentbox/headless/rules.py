"""Rules from a file that a program is given."""

from __future__ import annotations

from pathlib import Path

from jupyter_agentbox.core.policy import Policy
from jupyter_agentbox.storage.rule_files import read_file


def read_rules(path: Path) -> Policy:
    """Read a file of rules, in the format of ``agentbox_rules.json``.

    Raises
    ------
    ValueError
        If anything in it is not understood: then no rule of it counts. The message has each problem with its place.
    OSError
        If it is missing.
    """
    found = read_file(path)
    if found.problems:
        raise ValueError("; ".join(map(str, found.problems)))
    return Policy(found.rules)
