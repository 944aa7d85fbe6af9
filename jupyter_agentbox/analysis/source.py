"""The code as the kernel will run it: after IPython's transformation, and without comments."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from IPython.core import magics
from IPython.core.alias import default_aliases
from IPython.core.inputtransformer2 import TransformerManager
from IPython.core.magic import Magics

from jupyter_agentbox.core.text import unseen

#: Lines that IPython may transform, and how many of them are looked at; IPython itself gives up at 500.
_ESCAPE: Final = re.compile(r"^\s*[%!?]|\?\s*$|=\s*[%!]", re.MULTILINE)
_MOST_ESCAPES: Final = 200
_FIRST_WORD: Final = re.compile(r"\s*([\w.*]+)(.*)", re.DOTALL)
_ASSIGNMENT: Final = re.compile(r"\s*=[^=]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A piece of code in the forms that are analyzed.

    Parameters
    ----------
    text : str
        As the kernel compiles it.
    tree : ast.Module
        Its syntax tree.
    plain : str
        A program with the same syntax tree and without comments, so that none can silence a linter.
    lines : tuple of int
        For each line of `text`, the line of the original code, from 1.
    is_in_place : bool
        Whether lines and columns of `plain` are those of `text`.
    """

    text: str
    tree: ast.Module
    plain: str
    lines: tuple[int, ...]
    is_in_place: bool

    def line(self, number: int) -> int:
        """Return the original line of a line of `text`."""
        return self.lines[min(max(number, 1), len(self.lines)) - 1] if self.lines else 1

    @property
    def may_be_automagic(self) -> bool:
        """Whether IPython may take the code, which is a single line, for a magic command: ``rm -rf`` is Python, too."""
        if len(self.text.splitlines()) != 1:
            return False
        word = _FIRST_WORD.match(self.text)
        return word is not None and word[1] in magic_words() and not _ASSIGNMENT.match(word[2])


@cache
def magic_words() -> frozenset[str]:
    """Return the names that IPython accepts as commands without a ``%``: line magics and aliases of programs."""
    classes = [each for each in vars(magics).values() if isinstance(each, type) and issubclass(each, Magics)]
    registered = (getattr(each, "magics", {}).get("line", {}) for each in classes)
    aliases = (name for name, _ in default_aliases())
    return frozenset(name for names in registered for name in names) | frozenset(aliases)


def read(code: str) -> Source:
    """Return the forms of a piece of code.

    Raises
    ------
    SyntaxError
        If it is neither Python nor something that IPython turns into Python.
    ValueError, RecursionError, MemoryError
        If Python refuses it for another reason, such as a null character or too deep a nesting.
    """
    # Python ends lines at a lone carriage return, too. What reads it later should see the same lines.
    code = code.replace("\r\n", "\n").replace("\r", "\n")
    if len(_ESCAPE.findall(code)) > _MOST_ESCAPES:
        raise RecursionError("too many magic commands")  # each costs IPython another look at the whole
    transformer: Any = TransformerManager
    text: str = transformer().transform_cell(code)
    tree = ast.parse(text)
    shape = ast.dump(tree)
    plain = without_comments(text)
    is_in_place = plain is not None and _shape(plain) == shape
    if plain is None or not is_in_place:
        plain = ast.unparse(tree)
    return Source(text=text, tree=tree, plain=plain, lines=_lines(code, text), is_in_place=is_in_place)


def unseen_characters(code: str) -> Iterator[tuple[int, int, str]]:
    """Yield line and column, from 1, and the name of each character that is invisible or reorders the line.

    Comments and strings count, and so does a lone carriage return, which ends a line for Python but for few editors.
    """
    for number, line in enumerate(code.replace("\r\n", "\n").split("\n"), 1):
        for at, character in unseen(line):
            if character not in "\t\f":
                yield number, at + 1, unicodedata.name(character, f"U+{ord(character):04X}")


def without_comments(text: str) -> str | None:
    """Return code with blanks in place of its comments; ``None`` if Python's tokenizer cannot find them."""
    lines = text.split("\n")
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="\n").readline):
            if token.type == tokenize.COMMENT:
                row, column = token.start
                lines[row - 1] = lines[row - 1][:column]
    except (tokenize.TokenError, SyntaxError, IndexError):
        return None
    return "\n".join(lines)


def _shape(text: str) -> str | None:
    try:
        return ast.dump(ast.parse(text))
    except (SyntaxError, ValueError):
        return None


def _lines(code: str, text: str) -> tuple[int, ...]:
    """Find, for each line of `text`, the original line that it was made from: the next equal one, or the next one."""
    before = [line.strip() for line in code.split("\n")]
    places: list[int] = []
    at = 0
    for line in text.split("\n"):
        stripped = line.strip()
        found = next((n for n in range(at, min(at + 200, len(before))) if before[n] == stripped), None)
        places.append(min(found if found is not None else at, len(before) - 1) + 1)
        at = min((found if found is not None else at) + 1, len(before) - 1)
    return tuple(places)
