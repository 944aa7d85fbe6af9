"""Find secrets in command lines that no name announces: ``curl -u ada:secret``, ``mysql -psecret``.

Shell syntax is not parsed: words are taken literally. Too much may count as a secret, or a part of one remain, but
the time taken is linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class _Command:
    """A program's secret options.

    Parameters
    ----------
    pairs : tuple of str
        Options whose value is a name and a secret: ``ada:secret``.
    wholes : tuple of str
        Options whose entire value is a secret.
    flags : str
        Letters of options without a value, which may precede another option: ``-sSu ada:secret``.
    is_attached : bool
        Whether a short option's value must be attached to it.
    """

    pairs: tuple[str, ...] = ()
    wholes: tuple[str, ...] = ()
    flags: str = ""
    is_attached: bool = False


_MYSQL: Final = _Command(wholes=("-p",), is_attached=True)
_LDAP: Final = _Command(wholes=("-w",))
_LOGIN: Final = _Command(wholes=("-p",))
_ZIP: Final = _Command(wholes=("-P",))
_MONGO: Final = _Command(wholes=("-p",))

#: Keyed by program, or by program and subcommand.
_COMMANDS: Final = {
    "curl": _Command(
        pairs=("-u", "--user", "-U", "--proxy-user", "-E", "--cert"),
        wholes=("--oauth2-bearer", "--pass"),
        flags="#0123456aBfgGiIjJklLMnNOpqRsSvVZ",
    ),
    "http": _Command(pairs=("-a",)),
    "https": _Command(pairs=("-a",)),
    **dict.fromkeys(
        ("mysql", "mysqldump", "mysqladmin", "mysqlimport", "mariadb", "mariadb-dump", "7z", "7za"), _MYSQL
    ),
    **dict.fromkeys(("ldapsearch", "ldapmodify", "ldapadd", "ldapdelete", "ldapwhoami", "ldappasswd"), _LDAP),
    **dict.fromkeys(("docker login", "podman login", "az login", "oc login", "helm login"), _LOGIN),
    **dict.fromkeys(("mongo", "mongosh", "mongodump", "mongorestore", "mongoexport", "mongoimport"), _MONGO),
    **dict.fromkeys(("zip", "unzip"), _ZIP),
    "sshpass": _Command(wholes=("-p",)),
    "redis-cli": _Command(wholes=("-a",)),
    "sqlcmd": _Command(wholes=("-P",)),
    "openssl": _Command(wholes=("-pass", "-passin", "-passout")),
}

_NAMES: Final = "|".join(
    re.escape(name).replace(r"\ ", "[ \t]{1,4}") for name in sorted(_COMMANDS, key=len, reverse=True)
)
_PROGRAM: Final = re.compile(rf"(?<![\w.-])({_NAMES})(?=[ \t])")
_GAP: Final = re.compile(r"(?:[ \t]|\\\r?\n){1,200}")
_BARE: Final = re.compile(r"""(?:[^\s"'|;&\\]|\\[^"'\r\n]){1,4000}""")
#: A word that is quoted, or whose end is quoted: ``'x y'``, ``-p'x y'``, ``ada:"x y"``. It ends at a quote that no
#: backslash precedes, or, if there is none, at any such quote; see `_VALUE` in `redaction`.
_QUOTED: Final = re.compile(
    r"""(?P<front>[^\s"'|;&\\]{0,200})(?P<quote>\\?["'])(?P<inside>(?:(?!(?P=quote))(?:\\.|[^\\\n])){0,2000}?|(?:(?!(?P=quote))[^\n]){0,2000}?)(?P=quote)"""
)
#: A quote that starts or ends a string, as opposed to an apostrophe within a word.
_QUOTE: Final = re.compile(r"""(?!(?<=\w)'\w)\\?["']""")
#: How many characters before a program are searched for the quote of its enclosing string.
_LOOK_BACK: Final = 300
#: How many words of a command are read, including its name.
_MOST_WORDS: Final = 202
#: An expansion by the shell, which is not itself a secret.
_VARIABLE: Final = re.compile(r"\$(?:\w+|\{\w+\}|\(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Word:
    """A word without its quotes, and the positions of its parts in the text."""

    front: str
    inside: str
    begin: int
    end: int

    @property
    def text(self) -> str:
        return self.front + self.inside

    def place(self, start: int) -> int:
        """Return the position in the text of a character of the word."""
        return self.begin + start if start < len(self.front) else self.end - len(self.text) + start


def secrets_in_text(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each secret in a text's command lines, in order.

    Parameters
    ----------
    text : str
        Any text: a command, a script, code with commands in its strings.
    """
    place = 0
    for found in _PROGRAM.finditer(text):
        if found.start() < place:
            continue
        words = list(_words(text, found.end(), outer=_open_quote(text, found.start())))
        name = found[1].split()
        starts = dict(secrets_in_words([*name, *(word.text for word in words)]))
        for index, word in enumerate(words, start=len(name)):
            if index in starts:
                yield word.place(starts[index]), word.end
            else:  # it may itself be a command: `ssh example.org "mysql -psecret"`
                begin = word.end - len(word.inside)
                yield from ((begin + start, begin + end) for start, end in secrets_in_text(word.inside))
        place = words[-1].end if words else found.end()


def secrets_in_words(words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the index of each word with a secret in a command given as a list, and the secret's offset in the word.

    Programs that the first one starts are included: ``sudo curl -u ada:secret``.
    """
    words = words[:_MOST_WORDS]
    commands: dict[_Command, None] = {}
    starts: dict[int, int] = {}
    for index, word in enumerate(words):
        name = word.rpartition("/")[2]
        for command in commands:
            if (found := _secret(command, words, index)) is not None:
                starts[found[0]] = min(found[1], starts.get(*found))
        for each in (name, " ".join((name, *words[index + 1 : index + 2]))):
            if each in _COMMANDS:
                commands[_COMMANDS[each]] = None
    yield from sorted(starts.items())


def _open_quote(text: str, place: int) -> str:
    """Return the quote of the string that encloses a position, judging by its line alone."""
    line = text[max(0, place - _LOOK_BACK) : place].rpartition("\n")[2]
    opened = ""
    for quote in _QUOTE.findall(line):
        if not opened:
            opened = quote
        elif quote == opened:
            opened = ""
    return opened


def _words(text: str, place: int, *, outer: str) -> Iterator[_Word]:
    """Yield a program's words, up to the end of the command or of the enclosing quotes."""
    for _ in range(_MOST_WORDS - 2):
        gap = _GAP.match(text, place)
        if gap is None:
            return
        quoted = _QUOTED.match(text, gap.end())
        if quoted and quoted["quote"] != outer:
            yield _Word(quoted["front"], quoted["inside"], quoted.start(), quoted.end("inside"))
            place = quoted.end()
            continue
        bare = _BARE.match(text, gap.end())
        if bare is None:
            return
        yield _Word(bare[0], "", bare.start(), bare.end())
        place = bare.end()


def _secret(command: _Command, words: Sequence[str], index: int) -> tuple[int, int] | None:
    """Return the word with the secret of the option at an index, and the secret's offset in it; ``None`` if none."""
    option, start = _option(command, words[index])
    if not option:
        return None
    place, begin = (index, start) if start is not None else (index + 1, 0)
    value = words[place][begin:] if place < len(words) else ""
    if start is None and value.startswith("-"):
        return None
    if option in command.pairs:
        name, colon, value = value.partition(":")
        begin += len(name + colon)
    return (place, begin) if value and not _VARIABLE.fullmatch(value) else None


def _option(command: _Command, word: str) -> tuple[str, int | None]:
    """Return a word's option and the offset of its value; ``None`` if the next word is the value."""
    for option in (*command.pairs, *command.wholes):
        if len(option) > 2:
            if word == option:
                return option, None
            if word.startswith(f"{option}="):
                return option, len(option) + 1
            continue
        place = word.find(option[1], 1)
        if not word.startswith("-") or word.startswith("--") or place < 1 or word[1:place].strip(command.flags):
            continue
        is_alone = place + 1 == len(word)
        if not (is_alone and command.is_attached):
            return option, None if is_alone else place + 1
    return "", None
