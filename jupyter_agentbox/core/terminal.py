"""What untrusted text may do to a terminal: colour itself, and nothing else.

A terminal obeys what is written to it (ECMA-48): it moves its cursor, hides text, sets its title or the clipboard, and
answers questions as if somebody typed. Of all that, only colours and weights are passed on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

#: Ends what a control string began, and gives a terminal its own colours, its own characters and its cursor back.
KNOWN_STATE: Final = "\x1b\\\x1b[0m\x1b(B\x1b[?25h"
#: Goes back to the start of the line and removes what stands there, so that two texts never mix into a third.
RETURN_AND_ERASE: Final = "\r\x1b[K"

#: Controls, and the formats of Unicode that hide or reorder text; not those that join letters and emoji.
_SPECIAL: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e01ef\ud800-\udfff]"
)
#: What was written in a line and then overwritten. Looked for at the start of lines only: so it takes linear time.
_OVERWRITTEN: Final = re.compile(r"^[^\n]*\r(?!\n)", re.MULTILINE)
#: After an escape, these begin a string.
_STRINGS: Final = "PX]^_"
#: The 8-bit controls that stand for an escape and a letter: a terminal may obey them in UTF-8, too.
_AS_ESCAPE: Final = {"\x9b": "[", "\x90": "P", "\x98": "X", "\x9d": "]", "\x9e": "^", "\x9f": "_"}
#: A control string that never ends hides no more than this.
_LONGEST_STRING: Final = 4096
_LONGEST_PARAMETERS: Final = 64

#: Parameters of `SGR` that are kept: bold, italic, underlined, the eight colours and their bright ones, and what ends
#: them. Not among them are those that hide text (faint, conceal), exchange its colours or make it blink.
_STYLES: Final = frozenset(
    {0, 1, 3, 4, 22, 23, 24, *range(30, 38), 39, *range(40, 48), 49, *range(90, 98), *range(100, 108)}
)
#: Those that more parameters follow, by what the next one is: a number of the palette, or three of a colour.
_EXTENDED: Final = frozenset({38, 48})
_FOLLOWING: Final = {5: 1, 2: 3}


class TerminalFilter:
    """Passes text on, piece by piece, without what steers a terminal.

    Parameters
    ----------
    colors : bool
        Whether colours pass.
    carriage_return : str
        What a carriage return becomes that no line feed follows; by default it removes the line that it goes back to.
    """

    def __init__(self, *, colors: bool = True, carriage_return: str = RETURN_AND_ERASE) -> None:
        self._colors = colors
        self._carriage_return = carriage_return
        self._sequence = ""
        self._holds_return = False
        self.is_at_line_start = True

    def feed(self, text: str) -> str:
        """Return what may be written of the text. A sequence that it does not end is waited for."""
        return "".join(self._pieces(text))

    def _pieces(self, text: str) -> Iterator[str]:
        place = 0
        while place < len(text):
            if self._sequence:
                yield self._continued(text[place])
                place += 1
                continue
            found = _SPECIAL.search(text, place)
            end = found.start() if found is not None else len(text)
            if end > place:
                yield self._plain(text[place:end])
            if found is not None:
                yield self._special(found.group())
            place = end + 1

    def _plain(self, text: str) -> str:
        before = self._returned(text[0])
        self.is_at_line_start = text.endswith("\n")
        return before + text

    def _returned(self, following: str) -> str:
        if not self._holds_return:
            return ""
        self._holds_return = False
        return "" if following == "\n" else self._carriage_return

    def _special(self, char: str) -> str:
        if char == "\x1b" or char in _AS_ESCAPE:
            self._sequence = "\x1b" + _AS_ESCAPE.get(char, "")
            return ""
        if char == "\r":
            self._holds_return = True
            return ""
        if char < "\xa0":
            return ""
        return self._plain(f"<U+{ord(char):04X}>")

    def _continued(self, char: str) -> str:
        """Take the next character of a sequence."""
        sequence, self._sequence = self._sequence, ""
        if char in "\x18\x1a":  # these end a sequence wherever it is
            return ""
        if len(sequence) > 1 and sequence[1] in _STRINGS:
            self._sequence = _continued_string(sequence, char)
        elif char < " " or char > "~":
            return self._special(char) if _SPECIAL.match(char) else self._plain(char)
        elif sequence == "\x1b" and char in (*_STRINGS, "["):
            self._sequence = sequence + char
        elif sequence.startswith("\x1b[") and char < "@":
            self._sequence = (sequence + char)[: _LONGEST_PARAMETERS + 2]
        elif sequence.startswith("\x1b["):
            return _style(sequence[2:]) if char == "m" and self._colors else ""
        elif char < "0":
            self._sequence = sequence
        return ""


def without_controls(text: str) -> str:
    """Return a whole text without colours and without anything else that steers a terminal."""
    return TerminalFilter(colors=False, carriage_return="\n").feed(text)


def final_text(text: str) -> str:
    """Return a whole text, plain, as a terminal shows it in the end: of a progress bar, what it wrote last."""
    return without_controls(_OVERWRITTEN.sub("", text))


def _continued_string(sequence: str, char: str) -> str:
    """Return what is known of a control string after its next character; nothing when it ends."""
    is_ended = char in "\x07\x9c\n" or (sequence.endswith("\x1b") and char == "\\")
    # Of what it says only the last character counts, which may begin its end.
    longer = sequence + ("\x1b" if char == "\x1b" else " ")
    return "" if is_ended or len(longer) > _LONGEST_STRING else longer


def _style(parameters: str) -> str:
    """Return the sequence that sets what is kept of a style; empty if that is nothing."""
    if not re.fullmatch("[0-9;]*", parameters) or len(parameters) >= _LONGEST_PARAMETERS:
        return ""
    numbers = [int(one or 0) for one in parameters.split(";")]
    kept: list[int] = []
    while numbers:
        first = numbers.pop(0)
        if first in _EXTENDED:
            count = _FOLLOWING.get(numbers[0], 0) + 1 if numbers else 0
            if count > 1 and len(numbers) >= count and max(numbers[:count]) <= 255:
                kept += [first, *numbers[:count]]
            del numbers[:count]
        elif first in _STYLES:
            kept.append(first)
    return f"\x1b[{';'.join(map(str, kept))}m" if kept else ""
