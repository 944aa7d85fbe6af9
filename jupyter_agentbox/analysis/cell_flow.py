"""The flow of control through a cell: which of its calls run at most once, and which may not run at all."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from typing import Final

_REPEATING: Final = (ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_ENDING: Final = (ast.Raise, ast.Return, ast.Break, ast.Continue)


def calls_in(node: ast.AST, *, is_once: bool) -> Iterator[tuple[ast.Call, bool]]:
    """Yield the calls below a node, always in the same order, and whether each runs at most once."""
    rest: list[tuple[ast.AST, bool]] = [(node, is_once)]
    while rest:
        each, once = rest.pop()
        if isinstance(each, ast.Call):
            yield each, once
        rest.extend((child, once and _runs_once(each, child)) for child in reversed([*ast.iter_child_nodes(each)]))


def _runs_once(parent: ast.AST, child: ast.AST) -> bool:
    if isinstance(parent, ast.For | ast.AsyncFor):
        return child is parent.iter
    if isinstance(parent, _COMPREHENSIONS):
        return child is parent.generators[0]
    if isinstance(parent, ast.comprehension):
        return child is parent.iter  # of the first; the others are not reached
    return not isinstance(parent, _REPEATING)


def may_be_skipped(tree: ast.Module, found: ast.Call) -> bool:
    """Whether the cell may have run without reaching a call in it."""
    parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    node: ast.AST = found
    while parent := parents.get(node):
        if _may_skip(parent, node):
            return True
        node = parent
    return False


def _may_skip(parent: ast.AST, child: ast.AST) -> bool:
    match parent:
        case ast.If() | ast.IfExp():
            return child is not parent.test
        case ast.BoolOp():
            return child is not parent.values[0]
        case ast.Compare():
            return child not in (parent.left, parent.comparators[0])
        case ast.Match():
            return child is not parent.subject
        case ast.Assert():
            return child is not parent.test
        case ast.Try() | ast.TryStar():
            # What fails before it may be caught.
            return child not in (parent.body[0], *parent.finalbody)
        case ast.With() | ast.AsyncWith():
            return child in parent.body[1:]
        case ast.Module():
            before = itertools.takewhile(lambda each: each is not child, parent.body)
            return any(isinstance(each, _ENDING) for each in before)
    return False
