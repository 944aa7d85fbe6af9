"""A model that says what a test wrote for it, and agents that ask it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox import AsyncAgent
from jupyter_agentbox.storage.approvals import sqlite_url
from jupyter_agentbox.testing import MockModelServer
from tests.headless.executor.conftest import MINI

MakeAgent = Callable[..., AsyncAgent]


@pytest.fixture
def model() -> Iterator[MockModelServer]:
    with MockModelServer() as server:
        yield server


@pytest.fixture
def database(tmp_path: Path) -> str:
    return sqlite_url(str(tmp_path / "approvals.db"))


@pytest.fixture
def servers(tmp_path: Path) -> Path:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"mini": MINI}}))
    return path


@pytest.fixture
def make_agent(model: MockModelServer, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeAgent:
    for name in ("CONFIG", "DATA", "RUNTIME"):
        monkeypatch.setenv(f"JUPYTER_{name}_DIR", str(tmp_path / name.lower()))

    def make(provider: str = "openai", **options: Any) -> AsyncAgent:
        return AsyncAgent(
            **{"model": f"{provider}:scripted", "base_url": model.base_url, "database_url": database, **options}
        )

    return make
