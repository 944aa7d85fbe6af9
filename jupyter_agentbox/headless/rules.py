"""Read rules from a file given to a program."""

from __future__ import annotations

from pathlib import Path

from jupyter_agentbox.core.policy import Policy
from jupyter_agentbox.storage.rule_files import read_file


def read_rules(path: Path) -> Policy:
    """Read a rules file, in the format of ``agentbox_rules.json``.

    Raises
    ------
    ValueError
        If any part of it is invalid: then none of its rules applies. The message lists each problem with its place.
    OSError
        If it cannot be read.
    """
    found = read_file(path)
    if found.problems:
        raise ValueError("; ".join(map(str, found.problems)))
    return Policy(found.rules)
