"""A program that adds an MCP server through an executor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox import ApprovalExpiredError, ApprovalRequest, CodeExecutor, ToolCallRejectedError
from jupyter_agentbox.core.policy import Effect, Policy, Rule
from jupyter_agentbox.exceptions import ApprovalCancelledError, InvalidTransitionError, ServerConfigurationError
from jupyter_agentbox.paths import added_servers_path, keep_server

from .conftest import MINI

Make = Callable[..., CodeExecutor]
ADD = "from jupyter_agentbox import tools; print(tools.two.add(a=1, b=1))"


async def nobody(_request: ApprovalRequest) -> None:
    raise AssertionError("nobody is to be asked")


async def test_an_accepted_server_is_added_and_its_request_is_no_item_of_a_cell(make_executor: Make) -> None:
    asked: list[ApprovalRequest] = []

    async def accept(request: ApprovalRequest) -> None:
        asked.append(request)
        # a cell whose calls are all accepted does not accept this one
        assert (await executor.execute("6 * 7")).text == "42"
        await request.accept()

    async with make_executor(approve_tool_calls=False) as executor:
        names = await executor.register_mcp_server("two", MINI, decide=accept)
        called = await executor.execute(ADD)

    [request] = asked
    assert (request.server_name, request.tool_name) == ("agentbox", "register_mcp_server")
    assert request.tool_args["name"] == "two"
    assert "add" in names
    assert called.text == "2"


async def test_a_rejected_server_is_not_added(make_executor: Make) -> None:
    async def reject(request: ApprovalRequest) -> None:
        await request.reject("not this one")

    async with make_executor() as executor:
        with pytest.raises(ToolCallRejectedError, match="not this one"):
            await executor.register_mcp_server("two", MINI, decide=reject)
        assert [status.name for status in (await executor.servers()).servers()] == ["mini"]


async def test_a_rule_with_the_full_name_asks_nobody(make_executor: Make) -> None:
    policy = Policy((Rule(server="agentbox", tool="register_mcp_server", effect=Effect.ALLOW),))
    async with make_executor(policy=policy) as executor:
        assert "add" in await executor.register_mcp_server("two", MINI, decide=nobody)


async def test_a_request_that_expires_cancels_who_decides(
    make_executor: Make, let_time_pass: Callable[[float], None]
) -> None:
    is_cancelled = asyncio.Event()

    async def think(_request: ApprovalRequest) -> None:
        let_time_pass(100)
        try:
            await asyncio.Event().wait()
        finally:
            is_cancelled.set()

    async with make_executor(approval_timeout=100) as executor:
        with pytest.raises(ApprovalExpiredError):
            await executor.register_mcp_server("two", MINI, decide=think)
        assert is_cancelled.is_set()


async def test_what_fails_while_deciding_withdraws_the_request(make_executor: Make) -> None:
    asked: list[ApprovalRequest] = []

    async def fail(request: ApprovalRequest) -> None:
        asked.append(request)
        raise RuntimeError("no window")

    async with make_executor() as executor:
        with pytest.raises(RuntimeError, match="no window"):
            await executor.register_mcp_server("two", MINI, decide=fail)
        with pytest.raises(InvalidTransitionError):
            await asked[0].accept()


async def test_stopping_the_executor_ends_the_question(make_executor: Make) -> None:
    asked = asyncio.Event()

    async def think(_request: ApprovalRequest) -> None:
        asked.set()
        await asyncio.Event().wait()

    executor: Any = make_executor()
    await executor.start()
    adding = asyncio.create_task(executor.register_mcp_server("two", MINI, decide=think))
    async with asyncio.timeout(60):
        await asked.wait()
        await executor.stop()
        with pytest.raises(ApprovalCancelledError):
            await adding


async def test_where_a_file_was_named_no_program_adds_servers(make_executor: Make, places: Path) -> None:
    async with make_executor(mcp_config_path=places / "config" / "mcp.json") as executor:
        with pytest.raises(ServerConfigurationError):
            await executor.register_mcp_server("two", MINI, decide=nobody)


async def test_server_that_was_allowed_in_jupyterlab_is_known_and_mcp_json_comes_first(
    make_executor: Make, places: Path
) -> None:
    keep_server(added_servers_path(), "two", MINI)
    keep_server(added_servers_path(), "mini", {"command": "no-such-program"})

    async with make_executor(approve_tool_calls=False) as executor:
        assert (await executor.execute(ADD)).text == "2"
        assert (await executor.execute(ADD.replace("two", "mini"))).text == "2"
        with pytest.raises(ServerConfigurationError):
            await executor.register_mcp_server("two", MINI, decide=nobody)
    async with make_executor(mcp_config_path=places / "config" / "mcp.json") as executor:
        assert [status.name for status in (await executor.servers()).servers()] == ["mini"]
