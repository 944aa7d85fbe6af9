"""Code that asks before it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jupyter_agentbox import (
    ApprovalExpiredError,
    ApprovalRequest,
    CodeExecutionError,
    CodeExecutionResult,
    CodeExecutor,
    ToolCallRejectedError,
)
from jupyter_agentbox.core.approvals import OutcomeState, Status
from jupyter_agentbox.core.policy import Effect, Layer, Policy, Rule
from jupyter_agentbox.core.ports import ApprovalQuery
from jupyter_agentbox.paths import data_dir
from jupyter_agentbox.storage.approvals import SqlApprovalStore, sqlite_url
from jupyter_agentbox.system import SystemClock


async def recorded() -> list[tuple[str, Status, OutcomeState | None]]:
    """Return what the approval store has, the oldest first."""
    async with SqlApprovalStore(sqlite_url(str(data_dir() / "approvals.sqlite")), clock=SystemClock()) as store:
        page = await store.list(ApprovalQuery())
    return [(one.call.qualified_name, one.status, one.outcome_state) for one in reversed(page.approvals)]


async def test_approved_code_runs_and_its_tool_calls_ask_for_themselves(
    make_executor: Callable[..., CodeExecutor],
) -> None:
    code = "from jupyter_agentbox import tools\nprint(tools.mini.add(a=1, b=2))"
    asked: list[tuple[str, Any]] = []
    async with make_executor(approve_code=True) as executor:
        async for item in executor.stream(code):
            if isinstance(item, ApprovalRequest):
                asked.append((f"{item.server_name}.{item.tool_name}", item.tool_args))
                await item.accept()
            elif isinstance(item, CodeExecutionResult):
                assert item.text == "3"

    assert asked == [("notebook.run_code", {"code": code}), ("mini.add", {"a": 1, "b": 2})]
    done = (Status.APPROVED, OutcomeState.SUCCEEDED)
    assert await recorded() == [("notebook.run_code", *done), ("mini.add", *done)]


async def test_code_runs_as_it_was_edited(make_executor: Callable[..., CodeExecutor]) -> None:
    async with make_executor(approve_code=True) as executor:
        items = []
        async for item in executor.stream("x = 1\nx"):
            items.append(item)
            if isinstance(item, ApprovalRequest):
                await item.accept({"code": "x = 2\nx"})

        assert items[-1].text == "2"


async def test_rejected_code_does_not_run(make_executor: Callable[..., CodeExecutor]) -> None:
    async with make_executor(approve_code=True) as executor:
        cell = executor.stream("touched = True")
        await (await anext(cell)).reject("not today")
        with pytest.raises(ToolCallRejectedError) as caught:
            await anext(cell)

        assert caught.value.reason == "not today"
        assert (await executor.execute("'touched' in globals()")).text == "False"
    assert (await recorded())[0] == ("notebook.run_code", Status.REJECTED, None)


async def test_code_that_nobody_answers_for_does_not_run(make_executor: Callable[..., CodeExecutor]) -> None:
    async with make_executor(approve_code=True, approval_timeout=0.1) as executor:
        with pytest.raises(ApprovalExpiredError):
            [_ async for _ in executor.stream("touched = True")]


async def test_the_record_says_that_code_failed(make_executor: Callable[..., CodeExecutor]) -> None:
    async with make_executor(approve_code=True) as executor:
        with pytest.raises(CodeExecutionError, match="ZeroDivisionError"):
            await executor.execute("1 / 0")

    assert await recorded() == [("notebook.run_code", Status.APPROVED, OutcomeState.FAILED)]


async def test_a_request_for_code_that_is_left_or_cancelled_is_withdrawn(
    make_executor: Callable[..., CodeExecutor],
) -> None:
    async with make_executor(approve_code=True) as executor:
        async for _ in executor.stream("touched = True"):
            break
        async for _ in executor.stream("touched = True"):
            executor.cancel()

        assert (await executor.execute("'touched' in globals()")).text == "False"
    assert [status for _, status, _ in await recorded()] == [Status.CANCELLED, Status.CANCELLED, Status.APPROVED]


async def test_cells_that_ask_at_the_same_time_get_their_own_answers(
    make_executor: Callable[..., CodeExecutor],
) -> None:
    async with make_executor(approve_code=True) as executor:
        first, second = executor.stream("'first'"), executor.stream("'second'")
        asked = [await anext(first), await anext(second)]
        await asked[1].accept()
        await asked[0].accept()

        assert [(await anext(one)).text for one in (second, first)] == ["'second'", "'first'"]
        await first.aclose()
        await second.aclose()


async def test_a_rule_decides_about_code(make_executor: Callable[..., CodeExecutor]) -> None:
    rule = Rule(server="notebook", tool="run_code", effect=Effect.DENY, layer=Layer.USER, reason="no agents here")
    async with make_executor(approve_code=True, policy=Policy(rules=(rule,))) as executor:
        with pytest.raises(ToolCallRejectedError, match="no agents here"):
            await executor.execute("1")


async def test_code_cannot_call_the_tool_that_runs_code(make_executor: Callable[..., CodeExecutor]) -> None:
    async with make_executor(approve_code=False) as executor:
        result = await executor.execute(
            "from jupyter_agentbox.kernel.runtime import link\n"
            "try:\n    link().call('notebook', 'run_code', {'code': '1'})\n"
            "except Exception as error:\n    print(type(error).__name__, error)"
        )

    assert (
        result.text
        == "UnknownServerError code cannot call `notebook.run_code`: only the program that runs the code may use it"
    )
