"""The blocks of code of a page of the documentation."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block of code.

    Parameters
    ----------
    heading : str
        The heading above it.
    language : str
        What the page calls it.
    text : str
        The code, not indented.
    """

    heading: str
    language: str
    text: str

    def commands(self) -> str:
        """Return what is typed, if it shows a terminal."""
        return "\n".join(line.removeprefix("$ ") for line in self.text.splitlines() if line.startswith("$ "))

    def printed(self) -> str:
        """Return what is printed, if it shows a terminal."""
        return "".join(f"{line}\n" for line in self.text.splitlines() if not line.startswith("$ "))


def blocks_of(page: Path) -> Iterator[Block]:
    """Return the blocks of a page, in its order."""
    heading, opened, lines = "", "", list[str]()
    for line in page.read_text("utf-8").splitlines():
        if not opened and line.startswith("#"):
            heading = line.lstrip("# ")
        if fence := re.match(r"\s*```(.*)", line):
            if opened:
                yield Block(heading=heading, language=opened, text=textwrap.dedent("\n".join(lines)))
            opened, lines = "" if opened else fence[1] or "text", []
        elif opened:
            lines.append(line)
