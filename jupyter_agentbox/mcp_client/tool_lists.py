"""Servers' lists of tools: nearly valid tools are repaired, others left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import mcp_types
from mcp_types import methods
from pydantic import ValidationError

from jupyter_agentbox.core.calls import JsonObject, canonical_json
from jupyter_agentbox.core.tools import ToolDescription

#: Maximum number of a server's tools; further ones are ignored.
MOST_TOOLS: Final = 2000
#: Maximum size of a tool with its schemas, as JSON.
_LARGEST_TOOL: Final = 2_000_000
#: Fields without which a tool is still usable.
_OPTIONAL: Final = frozenset({"outputSchema", "annotations", "icons", "execution", "title", "description", "_meta"})


def repair_tool_list(result: dict[str, Any], version: str, log: Callable[[str], None]) -> dict[str, Any]:
    """Return a ``tools/list`` result that the SDK accepts; one invalid tool must not hide the others.

    Parameters
    ----------
    result : dict
        The server's result.
    version : str
        The negotiated protocol version.
    log : callable
        Called with a line for each tool that is left out or lost a field.
    """
    tools = result.get("tools")
    if not isinstance(tools, list):
        return result  # not a list of tools, which the SDK reports
    try:
        methods.validate_server_result("tools/list", version, {**result, "tools": []})
    except (ValueError, KeyError):
        return result
    if len(tools) > MOST_TOOLS:
        log(f"{len(tools)} tools are listed: only the first {MOST_TOOLS} are used")
    if _is_right(result, tools, version):
        return {**result, "tools": tools[:MOST_TOOLS]}
    repaired: dict[str, Any] = {}
    for number, tool in enumerate(tools[:MOST_TOOLS]):
        name = tool.get("name") if isinstance(tool, dict) else None
        if not isinstance(name, str) or not name:
            log(f"tool number {number + 1} is left out: it has no name")
        elif name in repaired:
            log(f"tool `{name}` is listed twice; the first one counts")
        elif problem := _problem_of(tool):
            log(f"tool `{name:.100}` is left out: {problem}")
        elif (usable := _repair_tool(result, tool, version, log)) is not None:
            repaired[name] = usable
    return {**result, "tools": list(repaired.values())}


def _is_right(result: dict[str, Any], tools: list[Any], version: str) -> bool:
    """Whether nothing needs repair, as with nearly all servers."""
    tools = tools[:MOST_TOOLS]
    if not all(isinstance(tool, dict) and isinstance(tool.get("inputSchema"), dict) for tool in tools):
        return False
    names = {tool.get("name") for tool in tools if isinstance(tool.get("name"), str)}
    has_types = all(tool["inputSchema"].get("type") is not None and None not in tool.values() for tool in tools)
    if "" in names or len(names) < len(tools) or not has_types:
        return False
    if any(map(_problem_of, tools)):
        return False
    try:
        methods.validate_server_result("tools/list", version, {**result, "tools": tools})
    except (ValueError, KeyError):
        return False
    return True


def _problem_of(tool: dict[str, Any]) -> str:
    """Return why a description cannot be stored or hashed; empty if it can."""
    try:
        size = len(canonical_json(tool))
    except (TypeError, ValueError) as error:
        return f"its description is not JSON: {error}"
    return f"its description has {size / 1e6:.1f} MB" if size > _LARGEST_TOOL else ""


def _repair_tool(
    result: dict[str, Any], tool: dict[str, Any], version: str, log: Callable[[str], None]
) -> dict[str, Any] | None:
    tool = {key: value for key, value in tool.items() if value is not None}
    schema = tool.get("inputSchema", {})
    if isinstance(schema, dict) and schema.get("type") is None:
        tool["inputSchema"] = {**schema, "type": "object"}
    for _ in range(len(_OPTIONAL) + 1):
        try:
            methods.validate_server_result("tools/list", version, {**result, "tools": [tool]})
            return tool
        except ValidationError as error:
            wrong = {str(place["loc"][2]) for place in error.errors(include_input=False) if len(place["loc"]) > 2}
        name = tool["name"]
        if not wrong or not wrong <= _OPTIONAL or wrong.isdisjoint(tool):
            log(f"tool `{name}` is left out: its {', '.join(sorted(wrong)) or 'fields'} are not valid MCP")
            return None
        log(f"tool `{name}`: ignored {', '.join(sorted(wrong))}, which is not valid MCP")
        tool = {key: value for key, value in tool.items() if key not in wrong}
    return None


def describe(tool: mcp_types.Tool) -> ToolDescription:
    """Convert the SDK's tool to a `ToolDescription`."""
    annotations: JsonObject = {}
    if tool.annotations is not None:
        annotations = tool.annotations.model_dump(by_alias=True, mode="json", exclude_none=True)
    title = tool.title or annotations.get("title") or ""
    return ToolDescription(
        name=tool.name,
        title=title if isinstance(title, str) else "",
        description=tool.description or "",
        input_schema=cast(JsonObject, tool.input_schema),
        output_schema=cast(JsonObject | None, tool.output_schema),
        annotations=annotations,
    )


def is_wrapper(output_schema: JsonObject | None) -> bool:
    """Whether a tool's output schema merely wraps a value that is not an object, as ``{"result": value}``.

    FastMCP marks its wrappers; the official SDK's are objects whose only, required property is ``result``.
    """
    if output_schema is None:
        return False
    if output_schema.get("x-fastmcp-wrap-result") is True:
        return True
    properties = output_schema.get("properties")
    has_only_result = isinstance(properties, dict) and set(properties) == {"result"}
    return has_only_result and output_schema.get("required") == ["result"]
