"""Makes an agent's text safe as Markdown: nothing is loaded automatically, no HTML, no terminal control.

The text is untrusted: a model repeats what it read in a tool's result. A page would load an image's URL as soon as it
shows the text, and so leak the data in that URL.
"""

from __future__ import annotations

import re
from typing import Final

from jupyter_agentbox.core.terminal import without_controls
from jupyter_agentbox.core.text import fenced

#: Zero-width and non-breaking: between two characters, it keeps Markdown and HTML from reading them as one token.
_WORD_JOINER: Final = "\u2060"

#: Active syntax, to be broken up after its first characters.
_ACTIVE: Final = re.compile(
    # the start of an image, or of an HTML tag or comment
    r"!(?=\[)"
    r"|<(?=[A-Za-z/!?])"
    # a link, or a link definition, to anything but a web page or a mail address, such as a script
    r"|\](?=[(:]\s*(?!https?://|mailto:)(?:<[^>\n]*|[^\s)]*)[:&\\])"
    # a TeX command that links, styles or loads, or gives such a command another name:
    # https://docs.mathjax.org/en/latest/input/tex/extensions/
    r"|\\(?=(?:bbox|class|csname|cssId|data|enclose|href|includegraphics|mmlToken|require|style|texttip|toggle|unicode"
    r"|url)(?![A-Za-z])|html)"
    # the fence of a diagram, which can contain images
    r"|(?:`{3,}|~{3,})[^\S\n]*(?=mermaid)",
    re.IGNORECASE,
)


def inert_markdown(text: str) -> str:
    """Return Markdown with the same words, lists, tables and code, but nothing that loads or runs.

    Parameters
    ----------
    text : str
        Untrusted Markdown.
    """
    return _ACTIVE.sub(lambda found: found.group() + _WORD_JOINER, without_controls(text))


def inert_code(code: str) -> str:
    """Return code as a Markdown block that it cannot end.

    Parameters
    ----------
    code : str
        Untrusted code.
    """
    return fenced(without_controls(code), "python")
