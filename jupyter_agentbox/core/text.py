"""Make untrusted text safe to display: characters that are invisible or reorder the line are spelled out.

In Markdown, fenced text cannot end its fence.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

#: Unicode categories without a visible shape: controls, formats (bidi, zero width), surrogates, separators, unassigned.
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"})

#: How many characters of a name are compared with others.
_LONGEST_NAME: Final = 200


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: ``1 record``, ``2,000 records``.

    Parameters
    ----------
    number : int
        The number.
    noun : str
        The singular.
    plural : str
        The plural, if not formed with ``s``.
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def visible(text: str) -> str:
    r"""Return the text with every character that hides or reorders others spelled as ``<U+202E>``.

    Line feeds stay; carriage returns become line feeds and tabs four spaces.

    Parameters
    ----------
    text : str
        Any text, even with lone surrogates.

    Returns
    -------
    str
        Printable characters and ``\n`` only.
    """
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    lines = text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", "    ")
    return "".join(f"<U+{ord(char):04X}>" if _is_unseen(char) else char for char in lines)


def encodable(text: str) -> str:
    """Return the text with ``�`` for each half of a surrogate pair, which UTF-8 cannot encode."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def one_line(text: str, limit: int = 200) -> str:
    """Return the text, visible, on one line and cut to `limit` characters; ``…`` at the end says that it was cut."""
    line = " ".join(visible(text[: 4 * limit]).split())
    is_cut = len(line) > limit or (len(text) > 4 * limit and not text[4 * limit :].isspace())
    return line[: limit - 1] + "…" if is_cut else line


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a full stop and a sentence with the most similar known name; empty if none is similar."""
    if len(name) > _LONGEST_NAME:
        return ""
    close = get_close_matches(name, [one for one in known if len(one) <= _LONGEST_NAME], 1)
    return f". Did you mean `{one_line(close[0])}`?" if close else ""


def fenced(text: str, language: str) -> str:
    """Return the text as a Markdown code block that it cannot end.

    Parameters
    ----------
    text : str
        Any text.
    language : str
        The text's language, for highlighting.
    """
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _is_unseen(char: str) -> bool:
    if char == "\n":
        return False
    # Variation selectors 17 to 256 are useless in tool texts, but can carry hidden bytes.
    return unicodedata.category(char) in _UNSEEN or "\U000e0100" <= char <= "\U000e01ef"
