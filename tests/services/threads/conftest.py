"""Agents of notebooks with a scripted model, and kernels that do what a test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox.agents.threads.ports import ApprovalAsked, Catalog, CodeEnded, KernelEvent
from jupyter_agentbox.core.threads import ItemStatus
from jupyter_agentbox.testing import MockModelServer

#: Seconds; what asks models is imported at the first turn, which takes many where the machine is busy.
PATIENCE = 60
KEY = "sk-a-very-secret-key"


@dataclass
class AskedCall:
    """A request that waits until a test decides."""

    id: str = "r1"
    server_name: str = "notebook"
    tool_name: str = "run_code"
    tool_args: dict[str, Any] = field(default_factory=dict)
    decided: asyncio.Future[bool] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    async def accept(self, arguments: Mapping[str, Any] | None = None) -> None:  # noqa: ARG002  # by name
        self.decided.set_result(True)

    async def reject(self, reason: str = "") -> None:  # noqa: ARG002  # by name
        self.decided.set_result(False)

    async def response(self) -> bool:
        return await asyncio.shield(self.decided)


class ScriptedKernel:
    """An `AgentKernel` that asks about code, and then says that it ran, and printed a text."""

    def __init__(self, text: str = "42") -> None:
        self.text = text
        self.asked: asyncio.Queue[AskedCall] = asyncio.Queue()

    async def run(self, code: str, **_: Any) -> AsyncGenerator[KernelEvent]:
        request = AskedCall(tool_args={"code": code})
        self.asked.put_nowait(request)
        yield ApprovalAsked(request=request)
        ran = await request.response()
        yield CodeEnded(code=code, status=ItemStatus.COMPLETED if ran else ItemStatus.DECLINED, text=self.text)

    async def variables(self) -> str:
        return ""

    async def catalog(self) -> Catalog:
        return NoTools()

    async def cells(self) -> str | None:
        return None


class NoTools:
    def names(self) -> Sequence[str]:
        return ()

    async def tools(self, server: str) -> Sequence[Any]:  # noqa: ARG002  # by name
        return ()

    async def documentation(self, server: str, tool: str) -> str:  # noqa: ARG002  # by name
        return ""


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, KEY)
    with MockModelServer() as server:
        yield server


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'approvals.sqlite'}"
