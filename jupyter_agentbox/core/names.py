"""Python names for names on the wire: always an identifier, always the same one, never two alike."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Collection, Iterable
from typing import Final

#: Longer names are cut; a clash that this makes gets a number.
_LONGEST: Final = 80

#: What `jupyter_agentbox.tools` has besides servers.
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
        Any texts; repeated ones count once.
    reserved : collection of str
        Identifiers that must not be used.
    prefix : str
        What a name starts with that would otherwise start with a digit or be empty.
    public : bool
        Whether leading underscores are removed.

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
    """Map the names of MCP servers to those that they have in `jupyter_agentbox.tools`.

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
    # Python itself reads identifiers in this normal form.
    text = _NOT_WORD.sub("_", unicodedata.normalize("NFKC", name[: 4 * _LONGEST])).strip() or prefix
    if text != name:
        text = text.strip("_")
    if public or _DUNDER.match(text):
        text = text.lstrip("_")
    text = text[:_LONGEST] or prefix
    if not text.isidentifier():
        text = f"{prefix}_{text}"
    if not text.isidentifier():  # a word character that no identifier may hold: 720 fractions and the like (U+09F4)
        text = "".join(char if f"_{char}".isidentifier() else "_" for char in text)
    return f"{text}_" if keyword.iskeyword(text) else text


def _free(identifier: str, taken: Collection[str], numbers: dict[str, int]) -> str:
    if identifier not in taken:
        return identifier
    stem = identifier.rstrip("_")
    candidate = f"{stem}_"
    while candidate in taken:
        numbers[stem] = numbers.get(stem, 1) + 1  # goes on where the last clash ended: many equal names stay cheap
        candidate = f"{stem}_{numbers[stem]}"
    return candidate
