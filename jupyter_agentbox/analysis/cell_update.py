"""Writes a person's edits into the call in a cell's code, where it is beyond doubt which call that is.

What is not a plain value in the code stays as it is: a variable has other uses, and code in a loop runs again.
"""

from __future__ import annotations

import ast
import io
import itertools
import math
import re
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from jupyter_agentbox.core.calls import JsonObject, JsonValue
from jupyter_agentbox.core.text import one_line

#: Characters of code that are looked at, and of a value that is written.
LONGEST: Final = 200_000

_TOOLS: Final = ("jupyter_agentbox", "tools")
#: What a tool's function has besides being called itself.
_VARIANTS: Final = frozenset({"aio", "raw"})
#: Cell magics whose body is Python that runs once in the notebook's names.
_PYTHON_MAGICS: Final = re.compile(r"%%(time|capture|prun)\b")
#: Ends of lines for IPython or for Python, but not for both.
_LINE_END: Final = re.compile("[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
#: Lines that IPython changes even in a text: what looks like a prompt of a pasted session, and nothing but spaces.
_CHANGED_LINE: Final = re.compile(r"^[^\S\n]*(>>>|\.\.\.|(\[\w+\] *)?In *\[)|^[^\S\n]+$", re.MULTILINE)
_REPEATING: Final = (ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
#: Functions that call no tool, for all that one may give them.
_HARMLESS: Final = frozenset(
    {"bool", "dict", "display", "enumerate", "float", "int", "len", "list", "print", "range", "repr", "round", "str"}
)
_ENDING: Final = (ast.Raise, ast.Return, ast.Break, ast.Continue)
_NOT_GIVEN: Final = object()
_UNREADABLE: Final = "The cell's code cannot be read as Python. Change it there."


class NotUpdatableError(Exception):
    """Why the code is left alone, as a sentence for the person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedCall:
    """A call whose arguments a person edited.

    Parameters
    ----------
    server, function : str
        What server and tool are called in Python.
    names : mapping
        Wire name of each parameter to its name in Python.
    asked, edited : dict
        The arguments as the code gave them, and as the person left them.
    """

    server: str
    function: str
    names: Mapping[str, str]
    asked: JsonObject
    edited: JsonObject


def updated(source: str, call: EditedCall) -> str:
    """Return a cell's code with the edited arguments in the place of those that it asked for.

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
    lines = _run_lines(source)
    tree = _parse(lines)
    found = _find(tree, call)
    its = slice(found.lineno - 1, found.end_lineno)
    if source.split("\n")[its] != lines[its]:
        raise NotUpdatableError("IPython changes the lines of this call before it runs them. Change it there.")
    changes = list(_changes(found, call, _Text(source)))
    result = _replaced(source, changes)
    if not _is_right(tree, found, result, call):
        raise NotUpdatableError("The code of the cell could not be updated safely. Change it there.")
    return result


# --- reading ---------------------------------------------------------------------------------------------------------


def _parse(lines: Sequence[str]) -> ast.Module:
    """Parse lines that `_run_lines` returns."""
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        tree: ast.Module = compile("\n".join(lines), "<cell>", "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotUpdatableError(_UNREADABLE) from error
    return tree


def _run_lines(source: str) -> list[str]:
    """Return the lines that Python runs after IPython changed them, as many as the cell has."""
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
    """Return lines without what IPython takes away: empty ones at the beginning, common indents, prompts."""
    for transform in _ipython().cleanup_transforms:
        lines = transform(lines)
    return lines


def _ipython() -> Any:
    """Return what turns cells into Python before they run."""
    from IPython.core import inputtransformer2  # noqa: PLC0415  # the server needs this module, but not IPython's

    manager: Any = inputtransformer2.TransformerManager  # it has no types
    return manager()


def _without_commands(lines: list[str]) -> list[str]:
    """Return lines in which IPython's commands are Python."""
    try:
        transformed = _ipython().do_token_transforms(lines)
    except (SyntaxError, RuntimeError, RecursionError) as error:
        raise NotUpdatableError(_UNREADABLE) from error
    if len(transformed) != len(lines):  # what looks like a call there may be a part of the command
        raise NotUpdatableError("A command of the cell goes on in its next line. Change the cell's code there.")
    return list(transformed)


# --- finding the call ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A call in the code that may be the one."""

    node: ast.Call
    is_certain: bool
    is_once: bool


def _find(tree: ast.Module, call: EditedCall) -> ast.Call:
    names = _Names(tree)
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
    if not only.is_certain or (_may_be_skipped(tree, only.node) and _has_unknown_call(tree, names, call.server)):
        raise NotUpdatableError("It is not certain that the call in the cell's code is this one. Change it there.")
    if not only.is_once:
        raise NotUpdatableError("The call is in a loop or a function, which may run more than once. Change it there.")
    return only.node


def _candidates(tree: ast.Module, names: _Names, call: EditedCall) -> Iterator[_Candidate]:
    full = (*_TOOLS, call.server, call.function)
    for node, is_once in _calls(tree, is_once=True):
        dotted = names.dotted(node.func)
        # `shop.raw(…)` is a tool called `raw`, or a variant of a function `shop`.
        whole = [dotted, dotted[:-1]] if dotted[-1] in _VARIANTS else [dotted]
        ends = [each for each in whole if each and each[-1] == call.function]
        origin = names.origin(dotted[0])
        if origin is _Origin.IMPORT:
            if full in ends:
                yield _Candidate(node, is_certain=True, is_once=is_once)
        elif ends:
            # A name of another cell: what it is called there is all that can be known.
            is_certain = origin is _Origin.ELSEWHERE and any(each == full[-len(each) :] for each in ends)
            yield _Candidate(node, is_certain=is_certain, is_once=is_once)


def _magic_with(tree: ast.Module, function: str) -> str | None:
    """Return the line magic in whose text a function is called, as `%time`."""
    for node, _ in _calls(tree, is_once=True):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="run_line_magic"),
                args=[ast.Constant(value=str(name)), ast.Constant(value=str(text))],
            ) if re.search(rf"\b{re.escape(function)}\b", text):
                return f"%{name}"
    return None


class _Origin:
    """Where a name comes from."""

    IMPORT: Final = "import"
    CELL: Final = "cell"
    ELSEWHERE: Final = "elsewhere"


class _Names:
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
            return _Origin.CELL
        return _Origin.IMPORT if any(name == each[0] for each in self._imported.values()) else _Origin.ELSEWHERE

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


def _calls(node: ast.AST, *, is_once: bool) -> Iterator[tuple[ast.Call, bool]]:
    """Yield the calls below a node, in one order for all, and whether each runs once at most."""
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


def _may_be_skipped(tree: ast.Module, found: ast.Call) -> bool:
    """Whether the cell may have run without getting to a call in it."""
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


def _has_unknown_call(tree: ast.Module, names: _Names, server: str) -> bool:
    """Whether the cell calls what may call any tool itself."""
    for node, _ in _calls(tree, is_once=True):
        dotted = names.dotted(node.func)
        is_tool = dotted[: len(_TOOLS)] == _TOOLS or dotted[0] in (_TOOLS[-1], server)
        is_harmless = len(dotted) == 1 and dotted[0] in _HARMLESS
        if not (is_tool or is_harmless) or names.origin(dotted[0]) is _Origin.CELL:
            return True
    return False


def _may_be(node: ast.Call, call: EditedCall) -> bool:
    """Whether nothing that the code says of the arguments is another value than was asked for."""
    if node.args:
        return False  # the functions of tools take none by position
    given = _given(node, call)
    has_more = any(each.arg is None for each in node.keywords)
    if not has_more and call.asked.keys() - given.keys():
        return False
    return all(
        _agrees(each.value, call.asked[wire]) if wire in call.asked else not _is_plain(each.value)
        for wire, each in given.items()
    )


def _given(node: ast.Call, call: EditedCall) -> dict[str, ast.keyword]:
    """Return what the code gives by name, by wire name."""
    wires = {name: wire for wire, name in call.names.items()}
    return {wires.get(each.arg, each.arg): each for each in node.keywords if each.arg is not None}


def _agrees(node: ast.expr, value: JsonValue) -> bool:
    """Whether an expression may have a value: each plain part of it has that part."""
    match node:
        case ast.Dict(keys=keys, values=values) if (names := _texts(keys)) is not None:
            found = dict(zip(names, values, strict=True))
            return (
                isinstance(value, dict)
                and found.keys() == value.keys()
                and all(_agrees(item, value[key]) for key, item in found.items())
            )
        case ast.List(elts=items) | ast.Tuple(elts=items) if not _has_star(items):
            return (
                isinstance(value, list)
                and len(items) == len(value)
                and all(_agrees(item, part) for item, part in zip(items, value, strict=True))
            )
    plain = _plain(node)
    return plain is _NOT_GIVEN or _is_same(plain, value)


def _texts(keys: Sequence[ast.expr | None]) -> list[str] | None:
    """Return the keys of a dict; `None` if one is no plain text."""
    texts = [key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
    return texts if len(texts) == len(keys) else None


def _has_star(items: Sequence[ast.expr]) -> bool:
    return any(isinstance(each, ast.Starred) for each in items)


def _plain(node: ast.expr) -> Any:
    """Return the value of a literal; a mark of its own if it is none, or no JSON."""
    match node:
        case ast.Constant(value=str() | int() | float() | None as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            parts = [_plain(item) for item in items]
            return _NOT_GIVEN if any(part is _NOT_GIVEN for part in parts) else parts
        case ast.Dict(keys=keys, values=values) if (names := _texts(keys)) is not None:
            parts = [_plain(item) for item in values]
            return _NOT_GIVEN if any(part is _NOT_GIVEN for part in parts) else dict(zip(names, parts, strict=True))
    return _NOT_GIVEN


def _is_plain(node: ast.expr) -> bool:
    return _plain(node) is not _NOT_GIVEN


def _is_same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same: 1, 1.0 and True are three, and 0.0 and -0.0 are two."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_is_same(item, other[key]) for key, item in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if isinstance(one, float):
        return repr(one) == repr(other)
    return bool(one == other)


# --- changing it -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Change:
    """Bytes of the code, from and to, and what takes their place."""

    start: int
    end: int
    text: str


class _Text:
    """Code in which places are counted in bytes, as Python's syntax trees count."""

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


def _changes(node: ast.Call, call: EditedCall, text: _Text) -> Iterator[_Change]:
    given = _given(node, call)
    for wire in sorted(call.asked.keys() & call.edited.keys()):
        name = call.names.get(wire, wire)
        if wire in given:
            yield from _replacements(given[wire].value, call.asked[wire], call.edited[wire], name, text)
        elif not _is_same(call.asked[wire], call.edited[wire]):
            _refuse(name)
    gone = []
    for wire in sorted(call.asked.keys() - call.edited.keys()):
        if wire not in given or not _is_plain(given[wire].value):
            _refuse(call.names.get(wire, wire))
        gone.append(given[wire])
    yield from _removals(node, gone, text)
    new = {call.names.get(wire, wire): call.edited[wire] for wire in call.edited if wire not in call.asked}
    if new:
        yield _addition(node, new, text, is_first=len(gone) == len(node.keywords))


def _refuse(name: str) -> NoReturn:
    raise NotUpdatableError(f"The cell's code does not give `{one_line(name)[:80]}` as a plain value. Change it there.")


def _replacements(node: ast.expr, asked: JsonValue, edited: JsonValue, name: str, text: _Text) -> Iterator[_Change]:
    """Yield what turns a value into another one, and leaves equal parts of it as they are."""
    if _is_same(asked, edited):
        return
    parts = _parts(node, asked, edited)
    if parts is not None:
        for part, before, after in parts:
            yield from _replacements(part, before, after, name, text)
        return
    if not _is_plain(node):
        _refuse(name)
    start, end = text.start(node), text.end(node)
    old = text.of(start, end)
    if _has_comment(old):
        raise NotUpdatableError(f"A comment stands in the value of `{one_line(name)[:80]}`. Change it there.")
    yield _Change(start, end, _written(edited, like=old))


def _parts(node: ast.expr, asked: JsonValue, edited: JsonValue) -> list[tuple[ast.expr, JsonValue, JsonValue]] | None:
    """Return the parts of a dict or list that has as many before and after; `None` if it is another one."""
    match node:
        case ast.Dict(keys=keys, values=values) if isinstance(asked, dict) and isinstance(edited, dict):
            names = _texts(keys) or []
            if len(names) == len(asked) and asked.keys() == edited.keys() == set(names):
                return [(item, asked[key], edited[key]) for key, item in zip(names, values, strict=True)]
        case ast.List(elts=items) | ast.Tuple(elts=items) if isinstance(asked, list) and isinstance(edited, list):
            if len(items) == len(asked) == len(edited) and not _has_star(items):
                return list(zip(items, asked, edited, strict=True))
    return None


def _addition(node: ast.Call, new: Mapping[str, JsonValue], text: _Text, *, is_first: bool) -> _Change:
    for name in new:
        if not name.isidentifier() or any(each.arg is None for each in node.keywords):
            _refuse(name)
    last = node.keywords[-1] if node.keywords else None
    like = text.of(text.start(last.value), text.end(last)) if last else ""
    written = ", ".join(f"{name}={_written(value, like=like)}" for name, value in new.items())
    if last is None or is_first:
        at = text.end(node) - 1
        return _Change(at, at, written)
    return _Change(text.end(last), text.end(last), f", {written}")


def _removals(node: ast.Call, gone: Sequence[ast.keyword], text: _Text) -> Iterator[_Change]:
    """Yield what takes arguments away, each with one comma."""
    has_kept = False
    for index, keyword in enumerate(node.keywords):
        if keyword not in gone:
            has_kept = True
            continue
        start, end = text.start(keyword), text.end(keyword)
        if has_kept:
            start = text.end(node.keywords[index - 1])
        elif index + 1 < len(node.keywords):
            end = text.start(node.keywords[index + 1])
        else:
            end = text.end(node) - 1
        if _has_comment(text.of(start, end)):
            raise NotUpdatableError(f"A comment stands beside `{one_line(str(keyword.arg))[:80]}`. Change it there.")
        yield _Change(start, end, "")


def _has_comment(part: str) -> bool:
    try:
        return any(
            token.type == tokenize.COMMENT for token in tokenize.generate_tokens(io.StringIO(f"({part}\n)").readline)
        )
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return "#" in part


def _replaced(source: str, changes: Sequence[_Change]) -> str:
    """Return the code with the changes; what they leave alone is the same byte for byte."""
    data = source.encode()
    pieces: list[bytes] = []
    at = 0
    for change in sorted(changes, key=lambda each: (each.start, each.end)):
        if change.start < at:
            raise NotUpdatableError("The code of the cell could not be updated safely. Change it there.")
        pieces += [data[at : change.start], change.text.encode()]
        at = change.end
    return b"".join([*pieces, data[at:]]).decode()


def _written(value: JsonValue, *, like: str) -> str:
    """Return a value as Python source, with the quotes of the text that it replaces."""
    quotes = re.match(r"\w{0,2}(\"\"\"|'''|\"|')", like)
    text = _render(value, quotes[1] if quotes else '"')
    if len(text) > LONGEST:
        raise NotUpdatableError(f"The edited value has more than {LONGEST:,} characters. Write it there.")
    return text


def _render(value: JsonValue, quotes: str) -> str:
    if isinstance(value, str):
        return _quoted(value, quotes)
    one = quotes[0]
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(key, one)}: {_render(item, one)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_render(item, one) for item in value) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        raise NotUpdatableError("The edited value has a number that is no literal in Python. Write it there.")
    return repr(value)


def _quoted(value: str, quotes: str) -> str:
    """Return a text as a literal: what is not printable is escaped, and nothing in it ends the literal."""
    if len(quotes) > 1 and ("\n" not in value or _CHANGED_LINE.search(value)):
        quotes = quotes[0]
    is_long = len(quotes) > 1
    pieces = [
        character
        if is_long and character == "\n"
        else f"\\{character}"
        if character in {quotes[0], "\\"}
        else repr(character)[1:-1]
        if character not in {"'", '"'}
        else character
        for character in value
    ]
    return f"{quotes}{''.join(pieces)}{quotes}"


# --- checking --------------------------------------------------------------------------------------------------------


def _is_right(before: ast.Module, found: ast.Call, result: str, call: EditedCall) -> bool:
    """Whether the new code is the old one but for the call, and that gives what the person left."""
    try:
        after = _parse(_run_lines(result))
    except NotUpdatableError:
        return False
    index = [node for node, _ in _calls(before, is_once=True)].index(found)
    calls = [node for node, _ in _calls(after, is_once=True)]
    if index >= len(calls):
        return False
    now = calls[index]
    given = _given(now, call)
    if not all(wire in call.edited and _agrees(each.value, call.edited[wire]) for wire, each in given.items()):
        return False
    is_whole = any(each.arg is None for each in now.keywords) or call.edited.keys() <= given.keys()
    found.keywords, kept = [], found.keywords
    now.keywords = []
    is_rest_same = ast.dump(before) == ast.dump(after)
    found.keywords = kept
    return is_whole and is_rest_same
