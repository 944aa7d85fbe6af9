"""What an agent says, as Markdown that loads nothing by itself, holds no markup of its own and steers no terminal.

The text is untrusted: a model repeats what it read in a tool's answer. A page would load an image's address as soon as
it shows the text, and so tell the address what it carries.
"""

from __future__ import annotations

import re
from typing import Final

from jupyter_agentbox.core.terminal import without_controls
from jupyter_agentbox.core.text import fenced

#: Has no width and lets no line break: between two characters, neither Markdown nor HTML takes them for one sign.
_WORD_JOINER: Final = "\u2060"

#: What is broken up, after its first sign or signs.
_ACTIVE: Final = re.compile(
    # where an image begins, and where a tag or a comment of HTML does
    r"!(?=\[)"
    r"|<(?=[A-Za-z/!?])"
    # a link, or what it refers to, that leads neither to a web page nor to a mail address: a script, for one
    r"|\](?=[(:]\s*(?!https?://|mailto:)(?:<[^>\n]*|[^\s)]*)[:&\\])"
    # a command of TeX that links, styles or loads, and what can name such a command otherwise:
    # https://docs.mathjax.org/en/latest/input/tex/extensions/
    r"|\\(?=(?:bbox|class|csname|cssId|data|enclose|href|includegraphics|mmlToken|require|style|texttip|toggle|unicode"
    r"|url)(?![A-Za-z])|html)"
    # the fence of a diagram, which can name images
    r"|(?:`{3,}|~{3,})[^\S\n]*(?=mermaid)",
    re.IGNORECASE,
)


def inert_markdown(text: str) -> str:
    """Return Markdown that shows the text's words, lists, tables and code, and nothing that is loaded or runs.

    Parameters
    ----------
    text : str
        Untrusted Markdown.
    """
    return _ACTIVE.sub(lambda found: found.group() + _WORD_JOINER, without_controls(text))


def inert_code(code: str) -> str:
    """Return code as a block in Markdown. Nothing in the code ends it.

    Parameters
    ----------
    code : str
        Untrusted code.
    """
    return fenced(without_controls(code), "python")
