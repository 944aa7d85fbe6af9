"""Real server processes, and the certainty that none is left behind."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from jupyter_agentbox.core.questions import QuestionAction, QuestionAnswer, ServerQuestion
from jupyter_agentbox.core.tools import LogMessage, Progress
from jupyter_agentbox.mcp_client.configuration_files import ConfigurationFiles
from jupyter_agentbox.mcp_client.limits import ServerLimits
from jupyter_agentbox.mcp_client.servers import McpServers
from tests.processes_alive import children, survivors

SCRIPTS = Path(__file__).parent / "servers"
LIMITS = [limit.name for limit in fields(ServerLimits)]

Running: TypeAlias = Callable[..., AbstractAsyncContextManager[McpServers]]


class Changes:
    """Waits for what `on_change` announces."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def __call__(self) -> None:
        self._event.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not condition():
                self._event.clear()
                await self._event.wait()


@dataclass
class Hears:
    """A `CallListener` that hands what it hears to a test's functions."""

    on_progress: Callable[[Progress], None] = lambda _: None
    on_question: Callable[[ServerQuestion], Awaitable[QuestionAnswer]] | None = None
    messages: list[LogMessage] = field(default_factory=list)
    request_id: str = "r1"

    def progressed(self, progress: Progress) -> None:
        self.on_progress(progress)

    def logged(self, message: LogMessage) -> None:
        self.messages.append(message)

    async def ask(self, question: ServerQuestion) -> QuestionAnswer:
        if self.on_question is None:
            return QuestionAnswer(action=QuestionAction.DECLINE)
        return await self.on_question(question)


@pytest.fixture
def http_server() -> Iterator[Callable[..., str]]:
    """Start a script that serves HTTP and prints its port; return its address."""
    with ExitStack() as stack:

        def start(name: str, *args: str) -> str:
            command = [sys.executable, str(SCRIPTS / name), *args]
            process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            stack.callback(process.kill)
            assert process.stdout is not None
            return f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"

        yield start


@pytest.fixture
def script() -> Callable[..., dict[str, Any]]:
    """Return the entry of a server that is one of our scripts."""

    def entry(name: str, *args: str, **more: object) -> dict[str, Any]:
        return {"command": sys.executable, "args": [str(SCRIPTS / name), *args], **more}

    return entry


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """Run servers of these entries; afterwards no process may be left."""
    before = children()

    @asynccontextmanager
    async def run(entries: dict[str, Any], **options: Any) -> AsyncIterator[McpServers]:
        path = tmp_path / "mcp.json"
        path.write_text(json.dumps({"mcpServers": entries}))
        limits = ServerLimits(**{name: options.pop(name) for name in LIMITS if name in options})
        servers = McpServers(source=ConfigurationFiles([path], os.environ), limits=limits, **options)
        try:
            yield servers
        finally:
            await servers.aclose()

    yield run
    assert not survivors(children(beside=before))
