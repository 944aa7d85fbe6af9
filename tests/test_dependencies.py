"""What the package imports is what `pyproject.toml` declares, no more and no less."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Declared, though no module imports it: the program that the package extends, a driver that SQLAlchemy
#: loads, and a program that it runs.
NOT_IMPORTED = {"jupyterlab", "psycopg", "ruff"}
#: Imported, though not declared: what a kernel may have, and an error says what to do if it has not.
NOT_DECLARED = {"pandas"}
#: Of the extras, those for users; what is installed by one is imported late.
EXTRAS = ("agent", "hub", "keyring")


def imported() -> Iterator[str]:
    """Yield the distributions that modules of the package import, at the top or late."""
    distributions = packages_distributions()
    for path in (ROOT / "jupyter_agentbox").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            for name in _names(node):
                if name not in sys.stdlib_module_names and name != "jupyter_agentbox":
                    yield normalized(distributions[name][0])


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
        return [node.module.partition(".")[0]]
    return []


def normalized(name: str) -> str:
    """Return a distribution's name as packaging compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_what_is_imported_is_what_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = [entry for name in EXTRAS for entry in project["optional-dependencies"][name]]
    entries = [*project["dependencies"], *extras]
    declared = {normalized(re.split(r"[<>=\[;! ]", entry)[0]) for entry in entries}

    assert declared - NOT_IMPORTED == set(imported()) - NOT_DECLARED
