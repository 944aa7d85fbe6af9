"""Find letters in names and addresses that look like others: a Cyrillic `а` in a Latin word, a full-width form.

After Unicode Technical Standard 39, with its table of confusables and the standard library's data. A name written
entirely in one alphabet is fine, whichever that is, unless each of its letters could be mistaken for ASCII.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from .calls import JsonValue
from .confusables import LETTERS, SIGNS

#: Maximum number of letters reported per call; a single one is reason enough to look twice.
_MOST: Final = 5

#: Maximum number of characters examined per name, and per call: longer names are not mistaken for others.
_LONGEST_NAME: Final = 200
_LONGEST: Final = 20_000

_WORD: Final = re.compile(r"[^\W\d_]+")

#: What marks a word as a possible web, mail, host or file address.
_ADDRESS: Final = re.compile(r"[@/\\]|\w\.\w")
_ASCII_LETTER: Final = re.compile("[A-Za-z]")

#: Letters that look like an ASCII letter: from Unicode's table, and some that most fonts draw alike.
_LIKE: Final[Mapping[str, str]] = {
    **{char: like for like, chars in LETTERS.items() for char in chars},
    **dict(zip("κχյԼꞁӏІӀΙ", "kxjLllIII", strict=True)),
}

#: Signs that look like those used in names and addresses.
_SIGNS: Final[Mapping[str, str]] = {char: like for like, chars in SIGNS.items() for char in chars}

#: Scripts that may be mixed with one another and with Latin in one word: languages are written so.
_TOGETHER: Final = frozenset({"LATIN", "CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC"})

#: Scripts of living languages whose letters are not mistaken for Latin ones; they may be mixed with those.
_UNMISTAKABLE: Final = frozenset(
    (
        *("BENGALI", "DEVANAGARI", "ETHIOPIC", "GEORGIAN", "GUJARATI", "GURMUKHI", "KANNADA", "KHMER", "LAO"),
        *("MALAYALAM", "MYANMAR", "ORIYA", "SINHALA", "TAMIL", "TELUGU", "THAI", "TIBETAN"),
    )
)

_BEYOND_DOUBT: Final = (_TOGETHER | _UNMISTAKABLE) - {"LATIN"}

#: Scripts that need whole words of their own: they look like others, or run right to left.
_APART: Final = frozenset({"CYRILLIC", "GREEK", "ARMENIAN", "ARABIC", "HEBREW", "THAANA"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LookAlike:
    """A letter that is not what it looks like.

    Parameters
    ----------
    of : str
        What it occurs in: ``server``, ``tool`` or ``argument``; ``value`` for a name or address among the values.
    letter : str
        The letter.
    like : str
        The letter it looks like; empty if it is merely out of place in its word.
    """

    of: str
    letter: str
    like: str = ""

    @property
    def code(self) -> str:
        """The letter's code point: ``U+0430``."""
        return f"U+{ord(self.letter):04X}"

    @property
    def letter_name(self) -> str:
        """The letter's name in Unicode."""
        return unicodedata.name(self.letter, "a letter")

    @property
    def text(self) -> str:
        """A sentence about it."""
        what = f"looks like `{self.like}`" if self.like else "differs in alphabet from its neighbors"
        return f"In {_WHERE[self.of]}, {self.code} {self.letter_name} {what}."


_WHERE: Final = {
    "server": "the server's name",
    "tool": "the tool's name",
    "argument": "the name of an argument",
    "value": "a value",
}


def look_alikes(*, server: str, tool: str = "", arguments: Mapping[str, JsonValue] | None = None) -> list[LookAlike]:
    """Return the suspicious letters in a call's names and addresses, look-alikes first.

    Parameters
    ----------
    server, tool : str
        Wire names.
    arguments : mapping or None
        The names of all fields are examined, and values that are a single word with Latin letters or contain
        addresses. Prose is not: it may quote any alphabet.
    """
    fields, values = _parts(arguments or {})
    names = [("server", server), ("tool", tool), *(("argument", name) for name in fields)]
    found = _look([one for one in names if not one[1].isascii()])
    found |= _look([("value", name) for value in values if not value.isascii() for name in _names_in(value)])
    return sorted(found, key=lambda one: not one.like)[:_MOST]


def look_alikes_to_json(found: Iterable[LookAlike]) -> list[JsonValue]:
    """Return suspicious letters as JSON."""
    return [{"of": one.of, "code": one.code, "name": one.letter_name, "like": one.like} for one in found]


def _look(names: Iterable[tuple[str, str]]) -> dict[LookAlike, None]:
    """Examine names, each with what it belongs to, up to the limit."""
    found: dict[LookAlike, None] = {}
    left = _LONGEST
    for of, name in names:
        if left > 0:
            looked_at = name[:_LONGEST_NAME]
            left -= len(looked_at)
            found |= {LookAlike(of=of, letter=letter, like=like): None for letter, like in _odd(looked_at)}
    return found


def _parts(arguments: Mapping[str, JsonValue]) -> tuple[list[str], list[str]]:
    """Return the names of all fields, outer ones first, and all texts."""
    names: list[str] = []
    texts: list[str] = []
    level: list[JsonValue] = [dict(arguments)]
    while level:
        below: list[JsonValue] = []
        for value in level:
            if isinstance(value, dict):
                names += value
                below += value.values()
            elif isinstance(value, list):
                below += value
            elif isinstance(value, str):
                texts.append(value)
        level = below
    return names, texts


def _names_in(value: str) -> list[str]:
    """Return possible names and addresses in a value; words without a Latin letter do not imitate any."""
    words = value[:_LONGEST].split()
    return [
        word
        for word in words
        if not word.isascii() and _ASCII_LETTER.search(word) and (len(words) == 1 or _ADDRESS.search(word))
    ]


def _odd(name: str) -> tuple[tuple[str, str], ...]:
    """Return the suspicious letters of a name, each with the letter it looks like."""
    words = [word.group() for word in _WORD.finditer(name)]
    alphabets = [{alphabet for char in word if (alphabet := _alphabet(char))} for word in words]
    found = {char: like for char in name if (like := _form_of(char))}
    for word, mixed in zip(words, alphabets, strict=True):
        if not _may_mix(mixed):
            found |= _strangers(word)
    for alphabet in set().union(*alphabets) - {"LATIN"}:
        found |= _posing(words, alphabet, has_latin="LATIN" in set().union(*alphabets))
    return tuple(found.items())


def _alphabet(char: str) -> str:
    """Return the script of a letter; empty if it has none, or belongs to any."""
    alphabet = unicodedata.name(char, "").removeprefix("HALFWIDTH ").split(" ")[0].partition("-")[0]
    is_shared = unicodedata.category(char) == "Lm" or unicodedata.normalize("NFKC", char) != char
    return "" if is_shared and alphabet not in _TOGETHER | _APART | _UNMISTAKABLE else alphabet


def _form_of(char: str) -> str:
    """Return the character of which another is a form, or is drawn like, regardless of its neighbors."""
    if char.isascii():
        return ""
    if like := _SIGNS.get(char) or (_like(char) if _alphabet(char) in ("", "LATIN") else ""):
        return like
    if unicodedata.decomposition(char).startswith(("<super>", "<sub>", "<circle>", "<square>", "<fraction>")):
        return ""  # drawn differently
    plain = unicodedata.normalize("NFKC", char)
    return plain if plain != char and plain.isascii() and plain.isprintable() and " " not in plain else ""


def _like(char: str) -> str:
    """Return the ASCII letter that a letter can be mistaken for; empty if there is none."""
    return "" if _alphabet(char) in _BEYOND_DOUBT else _LIKE.get(char, "")


def _may_mix(alphabets: set[str]) -> bool:
    """Whether letters of these scripts may occur in one word."""
    if len(alphabets) < 2:
        return alphabets <= _TOGETHER | _APART | _UNMISTAKABLE
    return alphabets <= _TOGETHER or (len(alphabets) == 2 and alphabets <= _UNMISTAKABLE | {"LATIN"})


def _strangers(word: str) -> dict[str, str]:
    """Return the letters of a word whose script does not belong there."""
    of = {char: _alphabet(char) for char in word}
    most = max(dict.fromkeys(of.values()), key=lambda one: (one == "LATIN", sum(of[char] == one for char in word)))
    strange = {char: alphabet for char, alphabet in of.items() if alphabet and alphabet != most} or of
    # An unmistakable Greek letter is mathematics: `Δt`.
    return {char: like for char, alphabet in strange.items() if (like := _like(char)) or alphabet != "GREEK"}


def _posing(words: list[str], alphabet: str, *, has_latin: bool) -> dict[str, str]:
    """Return the letters of a script if each could be mistaken for Latin, so that none reveals the script."""
    of_it = [word for word in words if any(_alphabet(char) == alphabet for char in word)]
    letters = [char for word in of_it for char in word if _alphabet(char) == alphabet]
    is_long = any(len(word) > 1 for word in of_it)
    if all(map(_like, letters)) and (is_long or (has_latin and alphabet == "CYRILLIC")):
        return {char: _like(char) for char in letters}
    return {}
