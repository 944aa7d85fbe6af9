"""NumPy-style docstrings with untrusted text, and their safe representation as source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from jupyter_agentbox.core.text import one_line, visible
from jupyter_agentbox.core.tools import ToolDescription

from .annotations import TypedDictSource
from .parameters import Parameter, Parameters

_LONGEST_TEXT: Final = 10_000
_LONGEST_PARAMETER: Final = 2_000
_MOST_CLASSES: Final = 30
#: Quotes that could end a triple-quoted literal.
_ENDING: Final = re.compile(r'"{3,}|"+\Z')
_HINTS: Final = {
    ("readOnlyHint", True): "it only reads",
    ("destructiveHint", True): "it may delete or overwrite",
    ("idempotentHint", True): "calling it again changes nothing more",
    ("openWorldHint", True): "it contacts other systems",
}


def tool_docstring(
    tool: ToolDescription, parameters: Parameters, returns: str, classes: Sequence[TypedDictSource] = ()
) -> str:
    """Return the text that ``?`` shows below the signature.

    Parameters
    ----------
    tool : ToolDescription
        Title, description and hints, untrusted.
    parameters : Parameters
        The function's parameters.
    returns : str
        Source of the result's annotation.
    classes : sequence of TypedDictSource
        The classes that the annotations refer to.
    """
    description = _cut(tool.description, _LONGEST_TEXT).strip()
    title = one_line(tool.title)
    sections = [f"{title}\n\n{description}" if title and description else title or description or one_line(tool.name)]
    if hints := [text for (key, value), text in _HINTS.items() if tool.annotations.get(key) is value]:
        sections.append(f"The server says (a hint, not a promise): {', '.join(hints)}.")
    if entries := [_entry(each) for each in parameters.named]:
        sections.append("\n".join([_headed("Parameters"), *entries]))
    if parameters.extra:
        sections.append("Other keyword arguments are sent under their own names.")
    sections.append(f"{_headed('Returns')}\n{returns}")
    if classes:
        shown = ["\n    ".join([f"{each.name} : dict", *each.fields]) for each in classes[:_MOST_CLASSES]]
        sections.append("\n".join([_headed("Types"), *shown]))
    return "\n\n".join(sections)


def as_source(text: str, indent: str = "") -> str:
    r"""Return a triple-quoted literal whose value is the text, visible and indented.

    After `visible`, the text has only printable characters and line feeds. Backslashes and quotes are escaped, so
    nothing ends the literal.
    """
    body = visible(text).replace("\\", "\\\\")
    body = _ENDING.sub(lambda quotes: '\\"' * len(quotes[0]), body)
    lines = [line.rstrip() for line in body.split("\n")]
    joined = "\n".join([lines[0], *(indent + line if line else "" for line in lines[1:])])
    return f'"""{joined}\n{indent}"""' if len(lines) > 1 else f'"""{joined}"""'


def _entry(parameter: Parameter) -> str:
    default = f", default {parameter.default}" if parameter.default is not None else ""
    optional = "" if parameter.required else ", optional"
    name = one_line(parameter.wire_name)
    renamed = "" if parameter.wire_name == parameter.name else f"\n    Sent as `{name}`."
    words = _cut(parameter.description, _LONGEST_PARAMETER).strip()
    body = "".join(f"\n    {line}" if line.strip() else "\n" for line in words.split("\n")) if words else ""
    return f"{parameter.name} : {parameter.annotation}{optional}{default}{body}{renamed}"


def _headed(title: str) -> str:
    return f"{title}\n{'-' * len(title)}"


def _cut(text: str, limit: int) -> str:
    text = text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit} more characters)"
    return visible(text)
