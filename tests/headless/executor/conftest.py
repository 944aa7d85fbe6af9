"""Executors with a server of their own and places of their own."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox import CodeExecutor
from tests.loops import loop_of_the_file

MINI_SERVER = Path(__file__).with_name("mini_server.py")
ADD = "from jupyter_agentbox import tools\nprint(tools.mini.add(a=1, b=2))"
MINI = {"command": sys.executable, "args": [str(MINI_SERVER)]}

jp_asyncio_loop = pytest.fixture(scope="module", autouse=True)(loop_of_the_file)


def furnish(root: Path, patch: pytest.MonkeyPatch) -> None:
    """Put Jupyter's directories below a place of ours, with one MCP server, and a secret into the environment."""
    for name in ("CONFIG", "DATA", "RUNTIME"):
        patch.setenv(f"JUPYTER_{name}_DIR", str(root / name.lower()))
    patch.setenv("A_SECRET", "s3cret")
    (root / "config").mkdir()
    (root / "config" / "mcp.json").write_text(json.dumps({"mcpServers": {"mini": MINI}}))


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep Jupyter's directories of the user out of it."""
    furnish(tmp_path, monkeypatch)
    return tmp_path


@pytest.fixture
def make_executor(places: Path) -> Callable[..., CodeExecutor]:
    def make(**options: Any) -> CodeExecutor:
        return CodeExecutor(**{"images_dir": places / "images", **options})

    return make


@contextmanager
def shared(root: Path, loop: asyncio.AbstractEventLoop, **options: Any) -> Iterator[CodeExecutor]:
    """Start an executor for a file. Its MCP server runs by then: there are tests that count processes."""
    with pytest.MonkeyPatch.context() as patch:
        furnish(root, patch)
        executor = CodeExecutor(images_dir=root / "images", **options)
        loop.run_until_complete(executor.start())
        loop.run_until_complete(executor.execute(ADD))
    yield executor
    loop.run_until_complete(executor.stop())


@pytest.fixture(scope="module")
def shared_executor(
    jp_asyncio_loop: asyncio.AbstractEventLoop, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CodeExecutor]:
    """An executor with no options."""
    with shared(tmp_path_factory.mktemp("shared"), jp_asyncio_loop) as executor:
        yield executor


@pytest.fixture
def executor(shared_executor: CodeExecutor, jp_asyncio_loop: asyncio.AbstractEventLoop) -> Iterator[CodeExecutor]:
    """The executor that the tests of a file share. Nothing runs in it, and it has no variables."""
    yield shared_executor
    jp_asyncio_loop.run_until_complete(forget(shared_executor))


async def forget(executor: CodeExecutor) -> None:
    """Remove the variables of a test, whose last cell is over then."""
    async with asyncio.timeout(60):
        await executor.execute("%reset -f")
