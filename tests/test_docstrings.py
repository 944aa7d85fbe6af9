"""Docstrings have well-formed sections, and the parameters that they describe exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import jupyter_agentbox

PACKAGE = Path(jupyter_agentbox.__file__).parent
ENTRY = re.compile(r"(?P<names>\*{0,2}[\w.]+(, \*{0,2}[\w.]+)*)( : .+)?")
Documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def entries(docstring: str) -> Iterator[tuple[str, str]]:
    """Yield each entry of a section that lists names, with the section's title."""
    section = ""
    for line, following in pairwise([*docstring.splitlines(), ""]):
        if re.fullmatch("-{3,}", following):
            section = line
        elif section in {"Attributes", "Parameters", "Raises"} and re.match(r"[^\s-]", line):
            yield section, line


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    named = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
    return {each.arg for each in named if each is not None}


def problems(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, Documented):
            continue
        for section, line in entries(ast.get_docstring(node) or ""):
            entry = ENTRY.fullmatch(line)
            if entry is None:
                yield f"{node.name}: not an entry of {section}: {line}"
            elif section == "Parameters" and not isinstance(node, ast.ClassDef):
                names = {name.strip("* ") for name in entry["names"].split(",")}
                yield from (f"{node.name}: no parameter `{name}`" for name in sorted(names - parameters(node)))


def test_sections_of_docstrings_list_names_that_exist() -> None:
    found = {
        str(path.relative_to(PACKAGE)): list(problems(path.read_text(encoding="utf-8")))
        for path in PACKAGE.rglob("*.py")
    }
    assert {path: problem for path, problem in found.items() if problem} == {}


def test_a_lost_name_and_one_that_does_not_exist_are_found() -> None:
    source = '''
def f(a, *b):
    """Do it.

    Parameters
    ----------
    a : int
        One.
    *b
        The others.
    Whose name was lost.
    c : str
        Not there.
    """
'''
    assert list(problems(source)) == ["f: not an entry of Parameters: Whose name was lost.", "f: no parameter `c`"]
