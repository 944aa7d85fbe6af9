"""The real command as a process, and real MCP clients at it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, ElicitResult

from tests.headless.executor.conftest import MINI

TIMEOUT = 60
ROOT = Path(__file__).parents[2]
ADD = "from jupyter_agentbox import tools\nprint(tools.mini.add(a=1, b=2))"


@dataclass
class Person:
    """Answers what a client asks: as told, and keeps what they were shown."""

    answer: Callable[[str], Any] = lambda _: ElicitResult(action="accept", content={"decision": "allow"})
    shown: list[str] = field(default_factory=list)
    schemas: list[Any] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    async def elicit(self, _context: Any, params: Any) -> ElicitResult:
        self.shown.append(params.message)
        self.schemas.append(params.requested_schema)
        self.asked.set()
        answer = self.answer(params.message)
        return await answer if asyncio.iscoroutine(answer) else answer


def rejects(reason: str | None = None) -> Callable[[str], ElicitResult]:
    content = {"decision": "reject", **({"reason": reason} if reason is not None else {})}
    return lambda _: ElicitResult(action="accept", content=content)


def text_of(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


@dataclass
class Caller:
    """A client that is connected."""

    client: Client

    async def run(self, code: str, **options: Any) -> CallToolResult:
        return await self.call("execute_code", {"code": code, **options})

    async def call(self, tool: str, arguments: Any = None, **options: Any) -> CallToolResult:
        async with asyncio.timeout(TIMEOUT):
            return await self.client.call_tool(tool, arguments or {}, **options)


Connect = Callable[..., AbstractAsyncContextManager[Caller]]


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """Jupyter's directories, with one MCP server."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "mcp.json").write_text(json.dumps({"mcpServers": {"mini": MINI}}))
    return tmp_path


@pytest.fixture
def environment(places: Path) -> dict[str, str]:
    """What the command gets."""
    kept = {f"JUPYTER_{name}_DIR": str(places / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {**kept, "PYTHONPATH": path, "A_SECRET": "s3cret"}


def command(*options: str) -> list[str]:
    return [sys.executable, "-m", "jupyter_agentbox.cli", "mcp", *options]


@pytest.fixture
def connect(places: Path, environment: Mapping[str, str]) -> Connect:
    """Start the command with options and connect a client, whose user is the person, if there is one."""

    @asynccontextmanager
    async def connect(*options: str, person: Person | None = None, **more: Any) -> AsyncIterator[Caller]:
        program, *arguments = command(*options)
        parameters = StdioServerParameters(command=program, args=arguments, env=dict(environment), cwd=places)
        async with Client(parameters, elicitation_callback=person.elicit if person else None, **more) as client:
            yield Caller(client)

    return connect
