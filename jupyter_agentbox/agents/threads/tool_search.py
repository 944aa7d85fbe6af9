"""Finds tools of all MCP servers by words: names and one line each, so that a thousand tools cost few tokens."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Final

from jupyter_agentbox.core.text import counted
from jupyter_agentbox.exceptions import AgentBoxError

from .ports import Catalog, ToolLine

#: How many tools an answer names, and characters of each one's summary.
_MOST: Final = 20
_SUMMARY: Final = 120


async def search_tools(catalog: Catalog, query: str) -> str:
    """Return the tools that match best, one per line, and how many were left out.

    Parameters
    ----------
    catalog : Catalog
        The tools.
    query : str
        Words; empty for an overview of the servers.
    """
    servers = list(catalog.names())
    answers = await asyncio.gather(*(_tools(catalog, server) for server in servers))
    problems = [answer for answer in answers if isinstance(answer, str)]
    found = [tool for answer in answers if not isinstance(answer, str) for tool in answer]
    if not servers:
        return "No MCP servers are configured."
    lines = _overview(servers, found) if not query.strip() else _best(found, query)
    return "\n".join([*lines, *problems])


async def _tools(catalog: Catalog, server: str) -> Sequence[ToolLine] | str:
    try:
        return await catalog.tools(server)
    except AgentBoxError as error:
        return f"({server}: {str(error)[:_SUMMARY]})"


def _overview(servers: Sequence[str], found: Sequence[ToolLine]) -> list[str]:
    return [f"{server}: {counted(sum(tool.server == server for tool in found), 'tool')}" for server in servers]


def _best(found: Sequence[ToolLine], query: str) -> list[str]:
    words = re.findall(r"\w+", query.lower())
    rated = sorted(((_rate(tool, words), tool) for tool in found), key=lambda pair: -pair[0])
    fitting = [tool for rate, tool in rated if rate > 0]
    lines = [f"{tool.server}.{tool.name}: {tool.summary[:_SUMMARY]}".rstrip(": ") for tool in fitting[:_MOST]]
    if not fitting:
        return [f"No tool matches. There are {len(found)} in all: try other words."]
    return [*lines, f"({len(fitting) - _MOST} more match: use more words.)"] if len(fitting) > _MOST else lines


def _rate(tool: ToolLine, words: Sequence[str]) -> float:
    """Rate a tool: words in its name count most, then in its server's, then in its summary."""
    places = ((3.0, tool.name.lower()), (2.0, tool.server.lower()), (1.0, tool.summary.lower()))
    return sum(weight for word in words for weight, text in places if word in text)
