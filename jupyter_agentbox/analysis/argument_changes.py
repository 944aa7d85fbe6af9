"""The changes to a call's text that give it other arguments, and alter no other byte."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from jupyter_agentbox.core.calls import JsonValue
from jupyter_agentbox.core.text import one_line

from .cell_calls import given_arguments
from .edited_call import EditedCall, NotUpdatableError
from .literals import has_star, is_plain, is_same, source_of, text_keys


@dataclass(frozen=True, slots=True)
class Change:
    """A range of bytes in the code, and what replaces it."""

    start: int
    end: int
    text: str


class SourceText:
    """Code with positions in bytes, as Python's syntax trees count them."""

    def __init__(self, source: str) -> None:
        self.data = source.encode()
        self._starts = [0]
        for line in self.data.split(b"\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)

    def start(self, node: ast.expr | ast.keyword) -> int:
        """Return where a node begins."""
        return self._starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.keyword) -> int:
        """Return where a node ends."""
        return self._starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)

    def of(self, start: int, end: int) -> str:
        """Return a part of the code."""
        return self.data[start:end].decode()


def argument_changes(node: ast.Call, call: EditedCall, text: SourceText) -> Iterator[Change]:
    """Yield the changes that turn the requested arguments into the edited ones; `replaced` applies them.

    Raises
    ------
    NotUpdatableError
        If something that would have to change is not a literal in the code.
    """
    given = given_arguments(node, call) or {}
    for wire in sorted(call.asked.keys() & call.edited.keys()):
        name = call.names.get(wire, wire)
        if wire in given:
            yield from _replacements(given[wire], call.asked[wire], call.edited[wire], name, text)
        elif not is_same(call.asked[wire], call.edited[wire]):
            _refuse(name)
    gone: dict[ast.expr, str] = {}
    for wire in sorted(call.asked.keys() - call.edited.keys()):
        name = call.names.get(wire, wire)
        if wire not in given or not is_plain(given[wire]):
            _refuse(name)
        gone[given[wire]] = name
    yield from _removals(node, gone, text)
    new = {call.names.get(wire, wire): call.edited[wire] for wire in call.edited if wire not in call.asked}
    if new:
        yield _addition(node, new, text, is_first=len(gone) == len(_arguments(node)))


def replaced(source: str, changes: Sequence[Change]) -> str:
    """Return the code with the changes; everything else stays the same, byte for byte."""
    data = source.encode()
    pieces: list[bytes] = []
    at = 0
    for change in sorted(changes, key=lambda each: (each.start, each.end)):
        if change.start < at:
            raise NotUpdatableError("The code of the cell could not be updated safely. Change it there.")
        pieces += [data[at : change.start], change.text.encode()]
        at = change.end
    return b"".join([*pieces, data[at:]]).decode()


def _refuse(name: str) -> NoReturn:
    raise NotUpdatableError(f"The cell's code does not give `{one_line(name)[:80]}` as a plain value. Change it there.")


def _replacements(node: ast.expr, asked: JsonValue, edited: JsonValue, name: str, text: SourceText) -> Iterator[Change]:
    """Yield the changes that turn a value into another one and leave equal parts alone."""
    if is_same(asked, edited):
        return
    parts = _parts(node, asked, edited)
    if parts is not None:
        for part, before, after in parts:
            yield from _replacements(part, before, after, name, text)
        return
    if not is_plain(node):
        _refuse(name)
    start, end = text.start(node), text.end(node)
    old = text.of(start, end)
    if _has_comment(old):
        raise NotUpdatableError(f"A comment stands in the value of `{one_line(name)[:80]}`. Change it there.")
    yield Change(start, end, source_of(edited, like=old))


def _parts(node: ast.expr, asked: JsonValue, edited: JsonValue) -> list[tuple[ast.expr, JsonValue, JsonValue]] | None:
    """Return the parts of a dict or list with the same keys or length before and after; `None` for any other."""
    match node:
        case ast.Dict(keys=keys, values=values) if isinstance(asked, dict) and isinstance(edited, dict):
            names = text_keys(keys) or []
            if len(names) == len(asked) and asked.keys() == edited.keys() == set(names):
                return [(item, asked[key], edited[key]) for key, item in zip(names, values, strict=True)]
        case ast.List(elts=items) | ast.Tuple(elts=items) if isinstance(asked, list) and isinstance(edited, list):
            if len(items) == len(asked) == len(edited) and not has_star(items):
                return list(zip(items, asked, edited, strict=True))
    return None


def _addition(node: ast.Call, new: Mapping[str, JsonValue], text: SourceText, *, is_first: bool) -> Change:
    for name in new:
        if not name.isidentifier() or any(each.arg is None for each in node.keywords):
            _refuse(name)
    last = next(reversed(_arguments(node)), None)
    like = text.of(text.start(_value(last)), text.end(last)) if last else ""
    written = ", ".join(f"{name}={source_of(value, like=like)}" for name, value in new.items())
    if last is None or is_first:
        at = text.end(node) - 1
        return Change(at, at, written)
    return Change(text.end(last), text.end(last), f", {written}")


def _removals(node: ast.Call, gone: Mapping[ast.expr, str], text: SourceText) -> Iterator[Change]:
    """Yield the changes that remove arguments, each with one comma; `gone` has their values and names."""
    arguments = _arguments(node)
    has_kept = False
    for index, argument in enumerate(arguments):
        if _value(argument) not in gone:
            has_kept = True
            continue
        start, end = text.start(argument), text.end(argument)
        if has_kept:
            start = text.end(arguments[index - 1])
        elif index + 1 < len(arguments):
            end = text.start(arguments[index + 1])
        else:
            end = text.end(node) - 1
        if _has_comment(text.of(start, end)):
            name = one_line(gone[_value(argument)])[:80]
            raise NotUpdatableError(f"A comment stands beside `{name}`. Change it there.")
        yield Change(start, end, "")


def _arguments(node: ast.Call) -> list[ast.expr | ast.keyword]:
    """Return the arguments in the order of the code; only a `*` could follow one that is given by name."""
    return [*node.args, *node.keywords]


def _value(argument: ast.expr | ast.keyword) -> ast.expr:
    return argument.value if isinstance(argument, ast.keyword) else argument


def _has_comment(part: str) -> bool:
    try:
        return any(
            token.type == tokenize.COMMENT for token in tokenize.generate_tokens(io.StringIO(f"({part}\n)").readline)
        )
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return "#" in part
