"""What the names of a cell stand for, as far as its own code says."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final


class Origin:
    """Where a name comes from."""

    IMPORT: Final = "import"
    CELL: Final = "cell"
    ELSEWHERE: Final = "elsewhere"


class Names:
    """What the names of a cell stand for, as far as its imports say."""

    def __init__(self, tree: ast.Module) -> None:
        self._imported: dict[str, tuple[str, ...]] = {}
        self._bound: set[str] = set()
        self._has_star = False  # after which any name may stand for something else
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                self._add_imports(node)
            else:
                self._bound.update(_bound_by(node))

    def _add_imports(self, node: ast.Import | ast.ImportFrom) -> None:
        module = (node.module or "").split(".") if isinstance(node, ast.ImportFrom) else []
        for alias in node.names:
            self._has_star |= alias.name == "*"
            parts = tuple(part for part in (*module, *alias.name.split(".")) if part)
            is_whole = alias.asname is not None or isinstance(node, ast.ImportFrom)
            name = alias.asname or (alias.name if is_whole else parts[0])
            target = parts if is_whole else parts[:1]
            if isinstance(node, ast.ImportFrom) and node.level:
                target = ("", *parts)
            if self._imported.setdefault(name, target) != target:
                self._bound.add(name)  # twice, as two things

    def origin(self, name: str) -> str:
        """Return where the first name of a dotted one, imports resolved, comes from."""
        if name in self._bound or not name or self._has_star:
            return Origin.CELL
        return Origin.IMPORT if any(name == each[0] for each in self._imported.values()) else Origin.ELSEWHERE

    def dotted(self, node: ast.expr) -> tuple[str, ...]:
        """Return the parts of a dotted name, imports resolved; before what is none, an empty one."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        parts.reverse()
        if not isinstance(node, ast.Name):
            return ("", *parts)
        if node.id in self._imported and node.id not in self._bound:
            return (*self._imported[node.id], *parts)
        return (node.id, *parts)


def _bound_by(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.Attribute(ctx=ast.Store() | ast.Del(), value=value):
            while isinstance(value, ast.Attribute):
                value = value.value
            if isinstance(value, ast.Name):  # what it is called no longer says what it is
                yield value.id
        case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case (
            ast.ExceptHandler(name=str() as name) | ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name)
        ):
            yield name
        case ast.MatchMapping(rest=str() as name):
            yield name
