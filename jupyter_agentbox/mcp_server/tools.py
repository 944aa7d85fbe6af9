"""The tools that clients see: their names, descriptions and arguments."""

from __future__ import annotations

from typing import Annotated, Any, Final

from mcp_types import Tool, ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .sessions import SessionError


class ExecuteCode(BaseModel):
    """Run Python code in a kernel and return what it prints, its last expression's value, and its images.

    Code is as in a notebook cell: top-level `await` works, and variables stay for the next call. The tools of MCP
    servers are Python functions: `from jupyter_agentbox import tools`, then `tools.<server>.<tool>(argument=value)`,
    with the names that `list_tools` gives. A person, or a rule, decides about each such call before it runs; one that
    is refused raises an error with the reason: do not work around it. Calls of this tool run one after the other, in
    the order in which they came.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    code: Annotated[str, Field(description="Python code")]
    timeout: Annotated[
        float | None,
        Field(
            gt=0,
            le=86_400,
            description="How long the code may run, in seconds; waiting for decisions and for other "
            "cells does not count",
        ),
    ] = None


class Reset(BaseModel):
    """Start again with a fresh kernel: all variables are gone. Code that runs, or waits to run, ends with an error."""

    model_config = ConfigDict(extra="forbid", strict=True)


class RegisterMcpServer(BaseModel):
    """Add an MCP server, whose tools code can call then. A person decides first; without that nothing is started.

    Write `${NAME}` for a secret: it stands for an environment variable of this server.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, Field(description="The server's name in code: letters, digits, `_` and `-`")]
    configuration: Annotated[
        dict[str, Any],
        Field(
            description="An entry as in mcp.json: `command`, `args`, `env` and `cwd` for a program, "
            "or `url` and `headers` for a streamable HTTP server"
        ),
    ]


class ListTools(BaseModel):
    """List the tools that code can call: the exact names on their servers, the Python functions, and their schemas."""

    model_config = ConfigDict(extra="forbid", strict=True)

    server: Annotated[str | None, Field(description="List only this server's tools; default: those of all servers")] = (
        None
    )


Arguments = ExecuteCode | Reset | RegisterMcpServer | ListTools

_MODELS: Final[dict[str, type[ExecuteCode | Reset | RegisterMcpServer | ListTools]]] = {
    "execute_code": ExecuteCode,
    "reset": Reset,
    "register_mcp_server": RegisterMcpServer,
    "list_tools": ListTools,
}
_ANNOTATIONS: Final = {
    "execute_code": ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True),
    "reset": ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False),
    "register_mcp_server": ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True),
    "list_tools": ToolAnnotations(read_only_hint=True, open_world_hint=True),
}


def offered() -> list[Tool]:
    """Return the tools in the form in which clients list them."""
    return [
        Tool(
            name=name,
            description=" ".join((model.__doc__ or "").split()),
            input_schema=_schema(model),
            annotations=_ANNOTATIONS[name],
        )
        for name, model in _MODELS.items()
    ]


def read_arguments(name: str, values: dict[str, Any]) -> Arguments | None:
    """Return a tool's arguments; ``None`` if there is no such tool.

    Raises
    ------
    SessionError
        If they are invalid; the text names what is wrong, and repeats no value.
    """
    model = _MODELS.get(name)
    if model is None:
        return None
    try:
        return model.model_validate(values)
    except ValidationError as error:
        problems = "; ".join(
            f"`{'.'.join(map(str, problem['loc']))}`: {problem['msg']}"
            for problem in error.errors(include_url=False, include_input=False, include_context=False)
        )
        raise SessionError(f"the arguments of `{name}` do not fit: {problems}") from None


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema()
    schema.pop("title", None)
    schema.pop("description", None)
    for field in schema.get("properties", {}).values():
        field.pop("title", None)
        if "anyOf" in field:  # an optional one: leaving it out is enough, and clients know plain types best
            (plain,) = (option for option in field.pop("anyOf") if option != {"type": "null"})
            field.update(plain)
            field.pop("default", None)
    return schema
