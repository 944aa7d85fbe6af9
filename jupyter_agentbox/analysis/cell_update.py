"""Writes a person's edits into the call in a cell's code, if it is beyond doubt which call that is.

What is not a literal in the code stays as it is: a variable has other uses, and code in a loop runs again.
"""

from __future__ import annotations

import ast

from .argument_changes import SourceText, argument_changes, replaced
from .cell_calls import find_call, given_arguments
from .cell_flow import calls_in
from .cell_lines import parse, run_lines
from .edited_call import EditedCall, NotUpdatableError
from .literals import agrees


def updated(source: str, call: EditedCall) -> str:
    """Return a cell's code with the edited arguments in place of the requested ones.

    Parameters
    ----------
    source : str
        The code of the cell as it is now; magic commands may stand in it.
    call : EditedCall
        The call.

    Raises
    ------
    NotUpdatableError
        If it cannot be done, or if there is any doubt.
    """
    lines = run_lines(source)
    tree = parse(lines)
    found = find_call(tree, call)
    its = slice(found.lineno - 1, found.end_lineno)
    if source.split("\n")[its] != lines[its]:
        raise NotUpdatableError("IPython changes the lines of this call before it runs them. Change it there.")
    changes = list(argument_changes(found, call, SourceText(source)))
    result = replaced(source, changes)
    if not _is_right(tree, found, result, call):
        raise NotUpdatableError("The code of the cell could not be updated safely. Change it there.")
    return result


def _is_right(before: ast.Module, found: ast.Call, result: str, call: EditedCall) -> bool:
    """Whether the new code differs from the old one only in the call, and the call has the edited arguments."""
    try:
        after = parse(run_lines(result))
    except NotUpdatableError:
        return False
    index = [node for node, _ in calls_in(before, is_once=True)].index(found)
    calls = [node for node, _ in calls_in(after, is_once=True)]
    if index >= len(calls):
        return False
    now = calls[index]
    given = given_arguments(now, call)
    if given is None or not all(wire in call.edited and agrees(it, call.edited[wire]) for wire, it in given.items()):
        return False
    is_whole = any(each.arg is None for each in now.keywords) or call.edited.keys() <= given.keys()
    found.args, found.keywords, now.args, now.keywords = [], [], [], []
    is_rest_same = ast.dump(before) == ast.dump(after)
    return is_whole and is_rest_same
