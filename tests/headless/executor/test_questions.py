"""Questions of MCP servers, answered by a program."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox import CodeExecutionResult, CodeExecutor, ServerLogMessage, ServerQuestion
from tests.headless.executor.conftest import MINI
from tests.hub_service.service import running_service

ASKING = {
    "command": sys.executable,
    "args": [str(Path(__file__).parents[2] / "mcp_client" / "servers" / "asking.py")],
}
CODE = "from jupyter_agentbox import tools\nprint(tools.asking.order())"


@pytest.fixture(autouse=True)
def asking(places: Path) -> None:
    (places / "config" / "mcp.json").write_text(json.dumps({"mcpServers": {"mini": MINI, "asking": ASKING}}))


async def test_a_program_is_asked_and_its_answer_goes_to_the_server(
    make_executor: Callable[..., CodeExecutor],
) -> None:
    asked: list[ServerQuestion] = []

    async def answer(question: ServerQuestion) -> Mapping[str, Any]:
        asked.append(question)
        return {"street": "Main"}

    async with make_executor(approve_tool_calls=False, on_question=answer) as executor:
        items = [item async for item in executor.stream(CODE, timeout=60)]
    assert [item.text for item in items if isinstance(item, CodeExecutionResult)] == [
        'accept {"street":"Main","count":1,"speed":"slow"}'
    ]
    (question,) = asked
    assert (question.server_name, question.tool_name, question.message) == ("asking", "order", "Where to?")
    assert question.schema is not None
    assert question.schema["required"] == ["street"]
    assert str(question) == "asking.order asks: Where to?"


async def test_without_a_function_a_question_is_declined_and_the_stream_says_so(
    make_executor: Callable[..., CodeExecutor],
) -> None:
    async with make_executor(approve_tool_calls=False) as executor:
        items = [item async for item in executor.stream(CODE, progress=True)]
    assert [item.text for item in items if isinstance(item, CodeExecutionResult)] == ["decline"]
    (said,) = [item for item in items if isinstance(item, ServerLogMessage)]
    assert (said.server_name, said.level) == ("asking", "warning")
    assert "declined" in said.text
    assert "Where to?" in said.text


async def test_a_program_is_asked_what_a_central_server_of_a_hub_asks(
    make_executor: Callable[..., CodeExecutor], places: Path
) -> None:
    async def answer(question: ServerQuestion) -> Mapping[str, Any]:
        return {"street": f"{question.server_name}'s"}

    rule = {"effect": "allow", "server": "asking", "tool": "*"}
    async with running_service(places, {"rules": [rule], "mcpServers": {"asking": ASKING}}) as service:
        entry = {"url": f"{service.url}mcp/asking", "headers": {"Authorization": "Bearer ada"}}
        (places / "config" / "mcp.json").write_text(json.dumps({"mcpServers": {"asking": entry}}))
        async with make_executor(approve_tool_calls=False, on_question=answer) as executor:
            items = [item async for item in executor.stream(CODE, timeout=60)]
    assert [item.text for item in items if isinstance(item, CodeExecutionResult)] == [
        'accept {"street":"asking\'s","count":1,"speed":"slow"}'
    ]
