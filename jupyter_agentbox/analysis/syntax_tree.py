"""A pass over the syntax tree for what no linter finds: what code reaches without naming it, and what it does.

It goes by names. Code that tries to evade it finds a way, which is why code that hides names is itself a finding.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from .findings import DomainCalls
from .known_names import (
    ADDRESSES,
    BUILTINS,
    BY_NAME,
    HARMLESS_MAGICS,
    INTERNALS,
    METHODS,
    NAMES,
    SHELL_CALLS,
    SHELL_MAGICS,
    TOOLS,
    UNKNOWN_BELOW,
    WRITING_VERBS,
)

#: Arguments of a magic command that IPython does not evaluate: it does what stands in braces or after a dollar sign.
_PLAIN_WORDS: Final = re.compile(r"[\w .,%-]*")
#: How a name was reached that is not named: through a value.
_ANY: Final = "*"


@dataclass(frozen=True, slots=True)
class Place:
    """A node of the syntax tree that is a finding; line (from 1) and column (from 0) are in the transformed code."""

    code: str
    message: str
    line: int
    column: int


def places(tree: ast.Module, domains: Iterable[DomainCalls] = ()) -> list[Place]:
    """Return what the pass finds in a module.

    Parameters
    ----------
    tree : ast.Module
        The code, after IPython's transformation.
    domains : iterable of DomainCalls
        Calls that are reported as reads and writes.
    """
    nodes = list(ast.walk(tree))
    walk = _Pass(_imported_names(nodes), tuple(domains), frozenset(_shell_names(nodes)))
    # The first of a kind at a place is the outermost: of `os.environ.get`, not of `os`.
    found = list({(each.code, each.line, each.column): each for each in reversed(walk.all(nodes))}.values())[::-1]
    if not any(_binds_results(node) for node in nodes):
        found.append(
            Place("AB401", "nothing is assigned to `results`, the variable that is returned to the caller", 1, 0)
        )
    return found


class _Pass:
    """Visits nodes one by one; `aliases` has the dotted name for each name that an import binds."""

    def __init__(
        self, aliases: Mapping[str, str], domains: tuple[DomainCalls, ...], shell_names: frozenset[int]
    ) -> None:
        self._aliases = aliases
        self._shell_names = shell_names
        self._bound = frozenset(dotted.split(".")[0] for dotted in aliases.values())
        self._domains = domains

    def all(self, nodes: Iterable[ast.AST]) -> list[Place]:
        return [place for node in nodes for place in self.look_at(node)]

    def look_at(self, node: ast.AST) -> Iterator[Place]:
        match node:
            case ast.Import() | ast.ImportFrom():
                yield from self._imports(node)
            case ast.Name() if not isinstance(node.ctx, ast.Store):
                yield from self._named(self._aliases.get(node.id, node.id), node)
                if node.id in INTERNALS and id(node) not in self._shell_names:
                    yield _place("AB104", f"uses `{node.id}`, which gives access to everything that is loaded", node)
            case ast.Attribute():
                yield from self._attribute(node)
            case ast.Call():
                yield from self._call(node)
            case ast.Constant(value=str() as text):
                yield from _text(text, node)

    def _imports(self, node: ast.Import | ast.ImportFrom) -> Iterator[Place]:
        module = f"{node.module or ''}." if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            yield from self._named(f"{module}{alias.name}", node, is_import=True)
            if alias.name == "*":
                message = f"imports every name of `{module[:-1]}`, so that it is not seen which are used"
                yield _place("AB103", message, node)

    def _attribute(self, node: ast.Attribute) -> Iterator[Place]:
        dotted = self._dotted(node)
        yield from self._named(dotted, node)
        if node.attr in INTERNALS:
            yield _place("AB104", f"uses `{node.attr}`, which gives access to everything that is loaded", node)
        elif node.attr in METHODS and _entry(dotted) is None:
            code, message = METHODS[node.attr]
            yield _place(code, f"`.{node.attr}` {message}", node)

    def _named(self, dotted: str, node: ast.AST, *, is_import: bool = False) -> Iterator[Place]:
        # What is not bound by an import is a variable that may have the name of a module: `code.append(1)`.
        is_known = is_import or _is_builtin(dotted) or dotted.split(".", maxsplit=1)[0] in self._bound
        entry = _entry(dotted) if is_known else None
        if entry is not None:
            code, message = entry
            yield _place(code, f"`{dotted}` {message}", node)
        last = dotted.rpartition(".")[2]
        for domain in self._domains:
            for names, code, what in ((domain.writes, "AB302", "writes to"), (domain.reads, "AB303", "reads from")):
                if dotted in names or last in names:
                    yield _place(code, f"`{last}` {what} the {domain.name}", node)

    def _call(self, node: ast.Call) -> Iterator[Place]:
        dotted = self._dotted(node.func)
        arguments = node.args
        if dotted in BY_NAME and not _is_literal(arguments, 1):
            yield _place("AB103", f"`{dotted}` with a computed name", node)
        elif dotted in BY_NAME and isinstance(arguments[1], ast.Constant):
            yield from self._named(f"{self._dotted(arguments[0])}.{arguments[1].value!s}", node)
        if dotted in {"open", "io.open", "codecs.open"} or dotted.endswith(".open"):
            yield from _opened(node, is_method=dotted not in {"open", "io.open", "codecs.open"})
        if dotted.startswith("get_ipython()"):
            yield from _shell_call(node, dotted.removeprefix("get_ipython()."))
        for prefix in TOOLS:
            name = dotted.removeprefix(f"{prefix}.")
            if name != dotted and "." in name:
                yield _tool_call(name, node)

    def _dotted(self, node: ast.expr) -> str:
        """Return the name of an expression, imports resolved; what is not a name begins with a star."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if isinstance(node, ast.Name):
            parts.append(self._aliases.get(node.id, node.id))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "get_ipython":
            parts.append("get_ipython()")
        else:
            parts.append(_ANY)
        return ".".join(reversed(parts))


def _imported_names(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """Return the dotted name of each name that is bound by an import, or by an assignment from such a name.

    If the code does not say what `tools` is, it is assumed to be this package's: earlier code may have imported it.
    """
    names = {} if any(_binds_tools(node) for node in nodes) else {"tools": TOOLS[0]}
    assigned: list[tuple[str, ast.expr]] = []
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module or ''}.{alias.name}"
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            assigned += [(target.id, node.value) for target in targets if isinstance(target, ast.Name)]
    for name, value in assigned:
        dotted = _plain_name(value)
        root, dot, rest = dotted.partition(".")
        if root in names and name not in names:
            names[name] = f"{names[root]}{dot}{rest}"
    return names


def _binds_tools(node: ast.AST) -> bool:
    match node:
        case ast.Name(id="tools"):
            return not isinstance(node.ctx, ast.Load)
        case ast.arg(arg="tools"):
            return True
        case ast.FunctionDef(name="tools") | ast.AsyncFunctionDef(name="tools") | ast.ClassDef(name="tools"):
            return True
        case _:
            return False


def _plain_name(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _shell_names(nodes: Iterable[ast.AST]) -> Iterator[int]:
    """Yield the `get_ipython` of each call that IPython's transformation makes: it is looked at for what it does."""
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="get_ipython") as name), attr=method)):
                if method in SHELL_CALLS or method in {"run_line_magic", "run_cell_magic"}:
                    yield id(name)


def _entry(dotted: str) -> tuple[str, str] | None:
    """Return what is known about a dotted name, or about what it belongs to."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        if ".".join(parts[:length]) in UNKNOWN_BELOW:
            return None
        found = NAMES.get(".".join(parts[:length]))
        if found is not None:
            return found
    return None


def _is_builtin(dotted: str) -> bool:
    return dotted.split(".", maxsplit=1)[0] in BUILTINS


def _text(text: str, node: ast.AST) -> Iterator[Place]:
    if text in INTERNALS and text.startswith("__"):
        yield _place("AB104", f"names `{text}`, which gives access to everything that is loaded", node)
    elif text.lower().startswith(ADDRESSES):
        yield _place("AB203", "contains a network address", node)
    elif "{" in text and ".__" in text:
        yield _place("AB104", "formats a string that accesses attributes of its values", node)


def _is_literal(arguments: list[ast.expr], index: int) -> bool:
    return len(arguments) > index and isinstance(arguments[index], ast.Constant)


def _opened(node: ast.Call, *, is_method: bool) -> Iterator[Place]:
    index = 0 if is_method else 1
    given = [each.value for each in node.keywords if each.arg == "mode"] or node.args[index : index + 1]
    mode = given[0].value if given and isinstance(given[0], ast.Constant) else None
    is_unsure = any(each.arg is None for each in node.keywords) or any(
        isinstance(each, ast.Starred) for each in node.args
    )
    if is_unsure or (given and not (isinstance(mode, str) and not set(mode) & set("wax+"))):
        yield _place("AB202", "opens a file for writing, or in a computed mode", node)


def _shell_call(node: ast.Call, method: str) -> Iterator[Place]:
    if method in SHELL_CALLS:
        yield _place("AB206", f"runs a shell command{_quoted(node, 0)}", node)
    elif method in {"run_line_magic", "run_cell_magic", "magic"}:
        name = _literal(node, 0)
        if name is None:
            yield _place("AB207", "runs a magic command with a computed name", node)
        elif name in SHELL_MAGICS:
            yield _place("AB206", f"runs a shell command: `%{name}`{_quoted(node, 1)}", node)
        elif (
            method != "run_line_magic"
            or name not in HARMLESS_MAGICS
            or not _PLAIN_WORDS.fullmatch(_literal(node, 1) or "")
        ):
            yield _place("AB207", f"runs the magic command `%{name}`", node)


def _quoted(node: ast.Call, index: int) -> str:
    value = _literal(node, index)
    return f" `{value:.80}`" if value else ""


def _literal(node: ast.Call, index: int) -> str | None:
    """Return the value of an argument that is a string literal."""
    argument = node.args[index] if len(node.args) > index else None
    return argument.value if isinstance(argument, ast.Constant) and isinstance(argument.value, str) else None


def _tool_call(name: str, node: ast.Call) -> Place:
    words = name.removesuffix(".raw").removesuffix(".aio").removesuffix(".run").rpartition(".")[2].lower().split("_")
    if words[0] in WRITING_VERBS or words[-1] in WRITING_VERBS:
        return _place("AB302", f"calls the tool `{name}`, whose name suggests that it changes something", node)
    return _place("AB301", f"calls the tool `{name}`", node)


def _binds_results(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "results" and isinstance(node.ctx, ast.Store)


def _place(code: str, message: str, node: ast.AST) -> Place:
    return Place(code, message, getattr(node, "lineno", 1), getattr(node, "col_offset", 0))
