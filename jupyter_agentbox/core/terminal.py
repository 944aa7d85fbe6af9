"""Make untrusted text safe for terminals: it can set colors, and nothing else.

A terminal obeys control sequences (ECMA-48): they move its cursor, hide text, set its title or the clipboard, and make
it answer as if somebody typed. Only colors and weights are passed through.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

#: Ends any control string, and restores the terminal's default colors, character set and cursor.
KNOWN_STATE: Final = "\x1b\\\x1b[0m\x1b(B\x1b[?25h"
#: Returns to the start of the line and erases it, so that two texts never mix into a third.
RETURN_AND_ERASE: Final = "\r\x1b[K"

#: Controls, and Unicode formats that hide or reorder text; not those that join letters and emoji.
_SPECIAL: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e01ef\ud800-\udfff]"
)
#: Overwritten text of a line. Matched only at line starts, for linear time.
_OVERWRITTEN: Final = re.compile(r"^[^\n]*\r(?!\n)", re.MULTILINE)
#: Characters that begin a string after an escape.
_STRINGS: Final = "PX]^_"
#: 8-bit controls equivalent to an escape and a letter: a terminal may obey them in UTF-8, too.
_AS_ESCAPE: Final = {"\x9b": "[", "\x90": "P", "\x98": "X", "\x9d": "]", "\x9e": "^", "\x9f": "_"}
#: Maximum length of a control string; an unterminated one hides no more than this.
_LONGEST_STRING: Final = 4096
_LONGEST_PARAMETERS: Final = 64

#: `SGR` parameters that are kept: bold, italic, underlined, the eight colors and their bright variants, and their
#: resets. Those that hide text (faint, conceal), swap its colors or make it blink are not.
_STYLES: Final = frozenset(
    {0, 1, 3, 4, 22, 23, 24, *range(30, 38), 39, *range(40, 48), 49, *range(90, 98), *range(100, 108)}
)
#: Parameters followed by others, depending on the next one: a palette index, or the three values of a color.
_EXTENDED: Final = frozenset({38, 48})
_FOLLOWING: Final = {5: 1, 2: 3}


class TerminalFilter:
    """Streaming filter that removes control sequences from text.

    Parameters
    ----------
    colors : bool
        Whether to keep colors.
    carriage_return : str
        Replacement for a carriage return without a line feed; by default, one that erases the line.
    """

    def __init__(self, *, colors: bool = True, carriage_return: str = RETURN_AND_ERASE) -> None:
        self._colors = colors
        self._carriage_return = carriage_return
        self._sequence = ""
        self._holds_return = False
        self.is_at_line_start = True

    def feed(self, text: str) -> str:
        """Return the filtered text. An incomplete sequence is held back until it is complete."""
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
        """Handle the next character of a sequence."""
        sequence, self._sequence = self._sequence, ""
        if char in "\x18\x1a":  # these end a sequence anywhere
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
    """Return a complete text without colors and control sequences."""
    return TerminalFilter(colors=False, carriage_return="\n").feed(text)


def final_text(text: str) -> str:
    """Return a complete text, plain, as a terminal would finally show it: of a progress bar, its last state."""
    return without_controls(_OVERWRITTEN.sub("", text))


def _continued_string(sequence: str, char: str) -> str:
    """Return the state of a control string after its next character; empty when it ends."""
    is_ended = char in "\x07\x9c\n" or (sequence.endswith("\x1b") and char == "\\")
    # Only its last character matters, which may begin the terminator.
    longer = sequence + ("\x1b" if char == "\x1b" else " ")
    return "" if is_ended or len(longer) > _LONGEST_STRING else longer


def _style(parameters: str) -> str:
    """Return the sequence for the kept part of a style; empty if there is none."""
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
