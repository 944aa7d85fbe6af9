"""Source of a server's Python module: plain functions with real signatures, and nothing that a server could execute.

All text of a server is written by ``repr`` or `docstrings.as_source`, all names by `core.names.python_names`. The same
tools always result in the same source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jupyter_agentbox.core.calls import JsonValue
from jupyter_agentbox.core.names import python_names
from jupyter_agentbox.core.text import one_line
from jupyter_agentbox.core.tools import ToolDescription

from .annotations import Annotations, Spelling, class_part
from .class_names import UniqueNames
from .docstrings import as_source, tool_docstring
from .parameters import Parameter, Parameters, read_parameters

_BUILTINS = frozenset({"str", "int", "float", "bool", "list", "dict"})
_TYPING = frozenset({"Any", "Literal", "NotRequired", "TypedDict"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedModule:
    """The source of a module, and the functions of its tools.

    Parameters
    ----------
    source : str
        Python source; importing it only defines functions and types.
    functions : tuple of (str, str)
        Each tool's wire name and function name, in the server's order.
    """

    source: str
    functions: tuple[tuple[str, str], ...]


def generate_module(server: str, tools: Sequence[ToolDescription]) -> GeneratedModule:
    """Generate the module of a server.

    Parameters
    ----------
    server : str
        The server's name in the configuration, as calls send it.
    tools : sequence of ToolDescription
        Its tools, untrusted; of two with the same name, the first is used.
    """
    by_name: dict[str, ToolDescription] = {}
    for tool in tools:
        by_name.setdefault(tool.name, tool)
    functions = python_names(by_name, prefix="tool")
    spell = Spelling(functions.values())
    class_names = UniqueNames({*functions.values(), *_BUILTINS, *_TYPING, "Default"})
    definitions = [_definition(tool, functions[tool.name], spell, class_names) for tool in by_name.values()]
    head = [as_source(f"Tools of the MCP server `{one_line(server)}`, generated from its tool list."), ""]
    source = "\n".join([*head, *_imports(spell), "", f"_call = _Caller({server!r})", "", "", *definitions])
    return GeneratedModule(source=source.rstrip() + "\n", functions=tuple(functions.items()))


def _imports(spell: Spelling) -> list[str]:
    lines = []
    for module, names in (("builtins", _BUILTINS), ("typing", _TYPING)):
        wanted = [
            name if alias == name else f"{name} as {alias}"
            for name, alias in sorted(spell.used.items())
            if name in names and not (module == "builtins" and alias == name)
        ]
        if wanted:
            lines.append(f"from {module} import {', '.join(wanted)}")
    lines.append("")
    lines.append("from jupyter_agentbox.kernel.functions import NOT_GIVEN as _NOT_GIVEN")
    lines.append("from jupyter_agentbox.kernel.functions import Caller as _Caller")
    lines.append("from jupyter_agentbox.kernel.functions import Default as _Default")
    return lines if lines[0] else lines[1:]


def _definition(tool: ToolDescription, name: str, spell: Spelling, class_name: UniqueNames) -> str:
    class_prefix = class_part(name) or "Tool"
    class_prefix = class_prefix if class_prefix[0].isalpha() else f"Tool{class_prefix}"
    inputs = Annotations(tool.input_schema, spell, class_name)
    parameters = read_parameters(tool.input_schema, inputs, class_prefix)
    outputs = Annotations(tool.output_schema, spell, class_name)
    returns = _returns(tool.output_schema, outputs, f"{class_prefix}Result") or spell("Any")
    classes = [*inputs.classes, *outputs.classes]
    docstring = as_source(tool_docstring(tool, parameters, returns, classes), "    ")
    sources = "".join(f"{each.source}\n\n" for each in classes)
    return (
        f"{sources}@_call.tool\ndef {name}({_signature(parameters, spell)}) -> {returns}:\n"
        f"    {docstring}\n    return _call({tool.name!r}, {_arguments(parameters)})\n\n"
    )


def _returns(schema: JsonValue, annotations: Annotations, class_name: str) -> str | None:
    target = annotations.resolve(schema)
    if not isinstance(target, dict):
        return None
    properties = target.get("properties")
    if isinstance(properties, dict) and list(properties) == ["result"]:
        return annotations.annotate(properties["result"], class_name)  # the wrapper of results that are not objects
    return annotations.annotate(target, class_name)


def _signature(parameters: Parameters, spell: Spelling) -> str:
    entries = [f"    {each.name}: {each.annotation}{_default(each)},\n" for each in parameters.named]
    at = 0 if parameters.positional is None else 1
    if entries[at:]:
        entries.insert(at, "    *,\n")
    if parameters.extra:
        entries.append(f"    **extra: {spell('Any')},\n")
    return f"\n{''.join(entries)}" if entries else ""


def _default(parameter: Parameter) -> str:
    if parameter.required:
        return ""
    return " = _NOT_GIVEN" if parameter.default is None else f" = _Default({parameter.default})"


def _arguments(parameters: Parameters) -> str:
    pairs = [f"{each.wire_name!r}: {each.name}" for each in parameters.named]
    if parameters.extra:
        pairs.append("**extra")
    return "{" + ", ".join(pairs) + "}"
