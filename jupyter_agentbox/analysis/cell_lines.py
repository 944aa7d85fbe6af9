"""The lines of a cell as Python runs them, each in its original position, and their syntax tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any, Final

from IPython.core.inputtransformer2 import TransformerManager

from jupyter_agentbox.core.text import one_line

from .edited_call import LONGEST, NotUpdatableError

#: Cell magics whose body is Python that runs once in the notebook's names.
_PYTHON_MAGICS: Final = re.compile(r"%%(time|capture|prun)\b")
#: Ends of lines for IPython or for Python, but not for both.
_LINE_END: Final = re.compile("[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_UNREADABLE: Final = "The cell's code cannot be read as Python. Change it there."


def parse(lines: Sequence[str]) -> ast.Module:
    """Parse lines that `run_lines` returns."""
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        tree: ast.Module = compile("\n".join(lines), "<cell>", "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotUpdatableError(_UNREADABLE) from error
    return tree


def run_lines(source: str) -> list[str]:
    """Return the lines that Python runs after IPython has transformed them; there are as many as in the cell."""
    if len(source) > LONGEST:
        raise NotUpdatableError(f"The cell has more than {LONGEST:,} characters. Change its code there.")
    if _LINE_END.search(source):
        raise NotUpdatableError("The lines of the cell end in an unusual way. Change its code there.")
    lines = source.split("\n")
    empty = 0  # lines at the beginning that Python does not run
    while True:
        rest = _cleaned([f"{line}\n" for line in lines[empty:]])
        empty = len(lines) - len(rest)
        if not rest or not rest[0].startswith("%%"):
            break
        if not _PYTHON_MAGICS.match(rest[0]):
            magic = one_line(rest[0].split()[0])[:40]
            raise NotUpdatableError(f"The cell is run by `{magic}`. Change its code there.")
        empty += 1  # what follows is read as a cell of its own
    return [""] * empty + [line.removesuffix("\n") for line in _without_commands(rest)]


def _cleaned(lines: list[str]) -> list[str]:
    """Return lines without what IPython removes: leading empty lines, common indentation and prompts."""
    for transform in _ipython().cleanup_transforms:
        lines = transform(lines)
    return lines


def _ipython() -> Any:
    """Return IPython's transformer of cells into Python."""
    manager: Any = TransformerManager  # it has no types
    return manager()


def _without_commands(lines: list[str]) -> list[str]:
    """Return the lines with IPython's commands turned into Python."""
    try:
        transformed = _ipython().do_token_transforms(lines)
    except (SyntaxError, RuntimeError, RecursionError) as error:
        raise NotUpdatableError(_UNREADABLE) from error
    if len(transformed) != len(lines):  # what looks like a call there may be a part of the command
        raise NotUpdatableError("A command of the cell goes on in its next line. Change the cell's code there.")
    return list(transformed)
