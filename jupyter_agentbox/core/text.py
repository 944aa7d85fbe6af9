"""Make untrusted text safe to display: characters that are invisible or reorder the line are spelled out.

In Markdown, fenced text cannot end its fence.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Final

#: Unicode categories without a visible shape: controls, formats (bidi, zero width), surrogates, private, unassigned,
#: and separators of lines.
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
#: Letters and marks without a shape: joiners, fillers and variation selectors. They can carry hidden bytes. The page
#: has the same list in `visibleText.ts`.
_SHAPELESS: Final = frozenset(
    map(
        chr,
        (
            *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0),
            *range(0x180B, 0x1810),
            *range(0xFE00, 0xFE10),
            *range(0xE0100, 0xE01F0),
        ),
    )
)
#: Blanks that look like a space and are another character.
_BLANKS: Final = frozenset(map(chr, (0x00A0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000)))
#: Makes the picture before it a colored one.
_EMOJI_SELECTOR: Final = "\ufe0f"

#: In how many characters of a description the first sentence is looked for.
_DESCRIPTION: Final = 2_000
#: The end of a sentence: not that of an abbreviation such as “e.g.”, after which the sentence goes on in lower case.
_SENTENCE_END: Final = re.compile(r"[.!?]['\")\]”’]*\s+(?![a-z])")
_PARAGRAPH_END: Final = re.compile(r"\n[^\S\n]*\n")

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
    r"""Return the text with every character that is invisible, or hides or reorders others, spelled as ``<U+202E>``.

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
    if _EMOJI_SELECTOR not in lines:  # then each character means the same everywhere: looking at each once is faster
        return lines.translate({ord(char): _spelled(char) for char in set(lines) if _is_spelled(char)})
    return "".join(_spelled(char) if is_unseen or char in _BLANKS else char for char, is_unseen in _looked_at(lines))


def unseen(text: str) -> Iterator[tuple[int, str]]:
    """Return the indexes of characters that are invisible or reorder the text, and the characters, except line feeds.

    A picture's own variation selector is part of something that can be seen.
    """
    return ((at, char) for at, (char, is_unseen) in enumerate(_looked_at(text)) if is_unseen)


def encodable(text: str) -> str:
    """Return the text with ``�`` for each half of a surrogate pair, which UTF-8 cannot encode."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def one_line(text: str, limit: int = 200) -> str:
    """Return the text, visible, on one line and cut to `limit` characters; ``…`` at the end says that it was cut."""
    line = " ".join(visible(text[: 4 * limit]).split())
    is_cut = len(line) > limit or (len(text) > 4 * limit and not text[4 * limit :].isspace())
    return line[: limit - 1] + "…" if is_cut else line


def first_sentence(text: str, limit: int = 200) -> str:
    """Return the first sentence of a description, visible, on one line and cut to `limit` characters."""
    looked_at = text.strip()[:_DESCRIPTION].replace("\r\n", "\n")
    paragraph = _PARAGRAPH_END.split(looked_at, maxsplit=1)[0]
    end = _SENTENCE_END.search(paragraph)
    return one_line(paragraph[: end.end()] if end else paragraph, limit)


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


def _looked_at(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each character, and whether it is invisible or reorders the text."""
    before = ""
    for char in text:
        yield char, _is_unseen(char) and not (char == _EMOJI_SELECTOR and _is_picture(before))
        before = char


def _spelled(char: str) -> str:
    return f"<U+{ord(char):04X}>"


def _is_spelled(char: str) -> bool:
    return _is_unseen(char) or char in _BLANKS


def _is_unseen(char: str) -> bool:
    if char.isascii():
        return not char.isprintable() and char != "\n"
    return char in _SHAPELESS or unicodedata.category(char) in _UNSEEN


def _is_picture(char: str) -> bool:
    return char != "" and unicodedata.category(char) == "So" and char not in _SHAPELESS
