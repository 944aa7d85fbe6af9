"""Map wire names to Python identifiers: stable, valid and distinct."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Collection, Iterable
from typing import Final

#: Maximum length; longer names are cut, and numbered if they then clash.
_LONGEST: Final = 80

#: Names that `jupyter_agentbox.tools` itself defines.
OWN_NAMES: Final = frozenset({"reload"})

_NOT_WORD: Final = re.compile(r"\W+")
_DUNDER: Final = re.compile(r"__.*__\Z")


def python_names(
    names: Iterable[str], *, reserved: Collection[str] = (), prefix: str = "n", public: bool = True
) -> dict[str, str]:
    """Map names on the wire to Python identifiers.

    A name that already is one stays; ``get-user`` becomes ``get_user``, ``from`` becomes ``from_``. Names that can
    stay go first, so that no other name takes theirs; the rest are numbered in the given order.

    Parameters
    ----------
    names : iterable of str
        Any texts; duplicates count once.
    reserved : collection of str
        Identifiers that must not be used.
    prefix : str
        Prefix of names that would otherwise be empty or start with a digit.
    public : bool
        Whether to remove leading underscores.

    Returns
    -------
    dict
        Wire name to identifier, in the order of `names`.
    """
    wanted = {name: _identifier(name, prefix, public=public) for name in names}
    taken = set(reserved)
    numbers: dict[str, int] = {}
    result: dict[str, str] = {}
    for name, identifier in sorted(wanted.items(), key=lambda item: item[0] != item[1]):
        result[name] = _free(identifier, taken, numbers)
        taken.add(result[name])
    return {name: result[name] for name in wanted}


def server_names(names: Iterable[str], *, reserved: Collection[str] = OWN_NAMES) -> dict[str, str]:
    """Map MCP server names to their names in `jupyter_agentbox.tools`.

    Parameters
    ----------
    names : iterable of str
        All configured servers: a name may depend on the others.
    reserved : collection of str
        Identifiers that must not be used.

    Returns
    -------
    dict
        Wire name to identifier, in the order of `names`.
    """
    return python_names(names, reserved=reserved, prefix="server")


def _identifier(name: str, prefix: str, *, public: bool) -> str:
    # Python normalizes identifiers to NFKC.
    text = _NOT_WORD.sub("_", unicodedata.normalize("NFKC", name[: 4 * _LONGEST])).strip() or prefix
    if text != name:
        text = text.strip("_")
    if public or _DUNDER.match(text):
        text = text.lstrip("_")
    text = text[:_LONGEST] or prefix
    if not text.isidentifier():
        text = f"{prefix}_{text}"
    if not text.isidentifier():  # a word character not allowed in identifiers: 720 fractions and the like (U+09F4)
        text = "".join(char if f"_{char}".isidentifier() else "_" for char in text)
    return f"{text}_" if keyword.iskeyword(text) else text


def _free(identifier: str, taken: Collection[str], numbers: dict[str, int]) -> str:
    if identifier not in taken:
        return identifier
    stem = identifier.rstrip("_")
    candidate = f"{stem}_"
    while candidate in taken:
        numbers[stem] = numbers.get(stem, 1) + 1  # continue after the last clash, so that many equal names stay cheap
        candidate = f"{stem}_{numbers[stem]}"
    return candidate
