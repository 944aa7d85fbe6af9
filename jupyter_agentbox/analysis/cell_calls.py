"""The calls in a cell's code, and which of them a person edited, if that is beyond doubt."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from jupyter_agentbox.core.text import one_line

from .cell_flow import calls_in, may_be_skipped
from .cell_names import Names, Origin
from .edited_call import EditedCall, NotUpdatableError
from .literals import agrees, is_plain

_TOOLS: Final = ("jupyter_agentbox", "tools")
#: What a tool's function has besides being called itself.
_VARIANTS: Final = frozenset({"aio", "raw"})
#: Functions that call no tool, for all that one may give them, and types that call nothing they are given.
_HARMLESS: Final = ({name for name, each in vars(builtins).items() if isinstance(each, type)} - {"filter", "map"}) | {
    "abs",
    "all",
    "any",
    "display",
    "divmod",
    "input",
    "isinstance",
    "len",
    "open",
    "print",
    "repr",
    "round",
    "sum",
}


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A call in the code that may be the edited one."""

    node: ast.Call
    is_certain: bool
    is_once: bool


def find_call(tree: ast.Module, call: EditedCall) -> ast.Call:
    """Return the call that was edited.

    Raises
    ------
    NotUpdatableError
        If no call is the edited one, several may be, or the call may run more than once.
    """
    names = Names(tree)
    named = list(_candidates(tree, names, call))
    alike = [each for each in named if _may_be(each.node, call)]
    if not named:
        if magic := _magic_with(tree, call.function):
            raise NotUpdatableError(f"The call stands in the command `{one_line(magic)[:40]}`. Change it there.")
        raise NotUpdatableError("The cell's code does not have this call: other code made it. Change it there.")
    if not alike:
        raise NotUpdatableError("The cell's code has other arguments now than it asked for. Change them there.")
    if len(alike) > 1:
        raise NotUpdatableError("More than one call in the cell's code may be this one. Change it there.")
    (only,) = alike
    if not only.is_certain or (may_be_skipped(tree, only.node) and _has_unknown_call(tree, names, call.server)):
        raise NotUpdatableError("It is not certain that the call in the cell's code is this one. Change it there.")
    if not only.is_once:
        raise NotUpdatableError("The call is in a loop or a function, which may run more than once. Change it there.")
    if function := _function_beside(tree, names, only.node):
        raise NotUpdatableError(
            f"The cell also calls `{one_line(function)[:80]}`, which may have made this call. Change it there."
        )
    return only.node


def _candidates(tree: ast.Module, names: Names, call: EditedCall) -> Iterator[_Candidate]:
    full = (*_TOOLS, call.server, call.function)
    for node, is_once in calls_in(tree, is_once=True):
        dotted = names.dotted(node.func)
        # `shop.raw(…)` is a tool called `raw`, or a variant of a function `shop`.
        whole = [dotted, dotted[:-1]] if dotted[-1] in _VARIANTS else [dotted]
        ends = [each for each in whole if each and each[-1] == call.function]
        origin = names.origin(dotted[0])
        if origin is Origin.IMPORT:
            if full in ends:
                yield _Candidate(node, is_certain=True, is_once=is_once)
        elif ends:
            # A name of another cell: what it is called there is all that can be known.
            is_certain = origin is Origin.ELSEWHERE and any(each == full[-len(each) :] for each in ends)
            yield _Candidate(node, is_certain=is_certain, is_once=is_once)


def _magic_with(tree: ast.Module, function: str) -> str | None:
    """Return the line magic, such as `%time`, in whose text a function is called."""
    for node, _ in calls_in(tree, is_once=True):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="run_line_magic"),
                args=[ast.Constant(value=str(name)), ast.Constant(value=str(text))],
            ) if re.search(rf"\b{re.escape(function)}\b", text):
                return f"%{name}"
    return None


def _function_beside(tree: ast.Module, names: Names, found: ast.Call) -> str | None:
    """Return a function that the cell calls by its bare name and that may call the same tool with the same arguments.

    That is how a notebook's own functions are called. Functions that are called as attributes, such as those of a
    package, are not suspected, nor are commands such as `%matplotlib`: hardly any cell would remain.
    """
    for node, _ in calls_in(tree, is_once=True):
        if node is found or not isinstance(node.func, ast.Name):
            continue
        dotted = names.dotted(node.func)
        is_tool = dotted[: len(_TOOLS)] == _TOOLS
        is_known = dotted == ("get_ipython",) or (len(dotted) > 1 and dotted[0] in sys.stdlib_module_names)
        if not (is_tool or is_known or _is_harmless(dotted)) or names.origin(dotted[0]) is Origin.CELL:
            return node.func.id
    return None


def _is_harmless(dotted: tuple[str, ...]) -> bool:
    return len(dotted) == 1 and dotted[0] in _HARMLESS


def _has_unknown_call(tree: ast.Module, names: Names, server: str) -> bool:
    """Whether the cell calls a function that may call any tool itself."""
    for node, _ in calls_in(tree, is_once=True):
        dotted = names.dotted(node.func)
        is_tool = dotted[: len(_TOOLS)] == _TOOLS or dotted[0] in (_TOOLS[-1], server)
        if not (is_tool or _is_harmless(dotted)) or names.origin(dotted[0]) is Origin.CELL:
            return True
    return False


def _may_be(node: ast.Call, call: EditedCall) -> bool:
    """Whether no argument in the code has a value other than the requested one."""
    given = given_arguments(node, call)
    if given is None:
        return False
    has_more = any(each.arg is None for each in node.keywords)
    if not has_more and call.asked.keys() - given.keys():
        return False
    return all(
        agrees(each, call.asked[wire]) if wire in call.asked else not is_plain(each) for wire, each in given.items()
    )


def given_arguments(node: ast.Call, call: EditedCall) -> dict[str, ast.expr] | None:
    """Return the code's arguments by wire name, without those of a `**`; `None` if the function does not take them."""
    wires = {name: wire for wire, name in call.names.items()}
    given = [(wires.get(each.arg, each.arg), each.value) for each in node.keywords if each.arg is not None]
    match node.args:
        case []:
            pass
        case [first] if call.positional is not None and not isinstance(first, ast.Starred):
            given.append((call.positional, first))
        case _:
            return None
    by_wire = dict(given)
    return by_wire if len(by_wire) == len(given) else None
