"""Executors with a server of their own and places of their own."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox import CodeExecutor

MINI_SERVER = Path(__file__).with_name("mini_server.py")
MINI = {"command": sys.executable, "args": [str(MINI_SERVER)]}


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep Jupyter's directories of the user out of it."""
    for name in ("CONFIG", "DATA", "RUNTIME"):
        monkeypatch.setenv(f"JUPYTER_{name}_DIR", str(tmp_path / name.lower()))
    monkeypatch.setenv("A_SECRET", "s3cret")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "mcp.json").write_text(json.dumps({"mcpServers": {"mini": MINI}}))
    return tmp_path


@pytest.fixture
def make_executor(places: Path) -> Callable[..., CodeExecutor]:
    def make(**options: Any) -> CodeExecutor:
        return CodeExecutor(**{"images_dir": places / "images", **options})

    return make
