"""The tools that code can call, as clients see them."""

from __future__ import annotations

import asyncio
from typing import Any

from jupyter_agentbox.codegen.modules import generate_module
from jupyter_agentbox.core.calls import JsonObject
from jupyter_agentbox.core.names import server_names

from .sessions import CodeSession, SessionError


async def list_tools(session: CodeSession, wanted: str | None) -> JsonObject:
    """Return the tools of a server, or of all servers.

    Parameters
    ----------
    session : Session
        The session with the servers.
    wanted : str or None
        A server's name; ``None`` for all.

    Raises
    ------
    SessionError
        If there is no such server, or it cannot list its tools. Among all servers, one that cannot is listed with
        its error.
    """
    servers = list(await session.servers())
    names = [str(server["name"]) for server in servers]
    if wanted is not None and wanted not in names:
        known = ", ".join(f"`{name}`" for name in names) or "none is configured"
        raise SessionError(f"there is no MCP server `{wanted}`. Servers: {known}.")
    identifiers = server_names(names)
    listed: list[Any] = []
    for server in servers:
        name = str(server["name"])
        if wanted in (None, name):
            listed.append(await _with_tools(session, server, identifiers[name], raises=wanted is not None))
    return {"servers": listed}


async def _with_tools(session: CodeSession, server: JsonObject, identifier: str, *, raises: bool) -> JsonObject:
    name = str(server["name"])
    try:
        found = await session.list_tools(name)
    except SessionError as error:
        if raises:
            raise
        return {"name": name, "python": f"tools.{identifier}", "error": str(error), "tools": []}
    functions = dict((await asyncio.to_thread(generate_module, name, found)).functions)
    return {
        "name": name,
        "python": f"tools.{identifier}",
        "tools": [{**tool.to_json(), "python": f"tools.{identifier}.{functions[tool.name]}"} for tool in found],
    }
