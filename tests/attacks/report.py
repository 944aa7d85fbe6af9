"""What each attack got on this machine, from the reports of its tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jupyter_agentbox.core.isolation import Isolation

from .attack import LEVELS, Attack, modules

#: An outcome of a test, worst first -> what it says of an attack that the table says succeeds, fails, may do either.
WORDS = {
    "error": ("NOT RUN", "NOT RUN", "NOT RUN"),
    "failed": ("NOT AS TOLD", "NOT AS TOLD", "NOT AS TOLD"),
    "passed": ("succeeds", "fails", "succeeds"),
    "skipped": ("-", "-", "-"),
}
WIDTH = 22


def report_table(reports: Mapping[str, Sequence[Any]]) -> str:
    """Return a table of attacks and levels.

    Parameters
    ----------
    reports : mapping of str to sequence of reports
        What pytest's terminal reporter has: the reports of tests by their outcome.

    Returns
    -------
    str
        A line for each attack: ``succeeds``, ``fails``, ``NOT AS TOLD`` where that is not what the docs say, and ``-``
        where the level cannot be reached or the attack does not work on this machine at all.
    """
    outcomes = {
        (file, level): outcome
        for outcome in reversed(WORDS)
        for report in reports.get(outcome, ())
        if hasattr(report, "nodeid")
        for file, level in _places(report.nodeid)
    }
    head = "".join(level.value.ljust(WIDTH) for level in LEVELS) + "attack"
    lines = [_line(module.ATTACK, module.__name__.rpartition(".")[2], outcomes) for module in modules()]
    return "\n".join(["", head, *lines])


def _places(nodeid: str) -> Iterable[tuple[str, str]]:
    file, _, test = nodeid.partition("::")
    parameters = test.partition("[")[2].rstrip("]")
    name = file.rpartition("/")[2].removesuffix(".py")
    found = [level.value for level in LEVELS if _is_among(level.value, parameters)]
    # The longest: one level's name is the beginning of another's.
    return [(name, max(found, key=len))] if found else []


def _is_among(level: str, parameters: str) -> bool:
    return f"-{level}-" in f"-{parameters}-"


def _line(attack: Attack, file: str, outcomes: Mapping[tuple[str, str], str]) -> str:
    cells = []
    for level in LEVELS:
        is_not_run = level is Isolation.NONE and attack.plain is None and attack.control
        outcome = "skipped" if is_not_run else outcomes.get((file, level.value), "skipped")
        column = {True: 0, False: 1, None: 2}[attack.succeeds_at(level)]
        cells.append(WORDS[outcome][column].ljust(WIDTH))
    return "".join(cells) + attack.name
