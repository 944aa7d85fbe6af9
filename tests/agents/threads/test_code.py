"""Turns in which code runs, in real kernels, with approvals."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox import Agent, ApprovalMode, AsyncAgent
from jupyter_agentbox.agents.threads.events import ApprovalRequested, ItemCompleted
from jupyter_agentbox.agents.threads.limits import TurnLimits
from jupyter_agentbox.agents.threads.ports import PendingApproval
from jupyter_agentbox.core.approvals import ApprovalRequest, Status
from jupyter_agentbox.core.policy import Effect, Layer, Policy, Rule
from jupyter_agentbox.core.ports import ApprovalQuery
from jupyter_agentbox.core.threads import CodeRun, ItemStatus, Notice, ToolCallItem, TurnStatus
from jupyter_agentbox.storage.approvals import SqlApprovalStore
from jupyter_agentbox.system import SystemClock
from jupyter_agentbox.testing import TIMEOUT, MockModelServer, ModelRequest

from .conftest import MakeAgent

ALLOWED = Policy(rules=(Rule(server="notebook", tool="run_code", effect=Effect.ALLOW, layer=Layer.USER),))


def told(request: ModelRequest) -> str:
    """Return what the model was told last of a function that it called."""
    outputs = [one["output"] for one in request.json()["input"] if one.get("type") == "function_call_output"]
    return str(outputs[-1])


def runs(result: Any) -> list[CodeRun]:
    return [item for item in result.items if isinstance(item, CodeRun)]


async def recorded(database: str) -> list[ApprovalRequest]:
    async with SqlApprovalStore(database, clock=SystemClock()) as store:
        return list(reversed((await store.list(ApprovalQuery())).approvals))


async def run_one(agent: AsyncAgent, model: MockModelServer, code: str, **options: Any) -> Any:
    """Let the model run code and then answer."""
    model.enqueue_tool_call("run_code", {"code": code})
    model.enqueue_message("done", "final_answer")
    return await (await agent.thread_start()).run("go", **options)


async def test_code_runs_once_it_is_accepted_and_the_model_hears_what_it_gave(
    make_agent: MakeAgent, model: MockModelServer, database: str
) -> None:
    asked = []

    async def accept(request: PendingApproval) -> None:
        asked.append((request.server_name, request.tool_name, request.tool_args))
        await request.accept()

    async with make_agent() as agent:
        result = await run_one(agent, model, "x = 6\nprint('hi')\nx * 7", on_approval=accept)
        thread_id = (await agent.thread_list()).data[0].id

    assert asked == [("notebook", "run_code", {"code": "x = 6\nprint('hi')\nx * 7"})]
    assert (result.status, result.final_response) == (TurnStatus.COMPLETED, "done")
    (run,) = runs(result)
    assert (run.status, run.text) == (ItemStatus.COMPLETED, "hi\n42")
    assert told(model.requests[1]) == "hi\n42"
    (request,) = await recorded(database)
    assert (request.id, request.call.origin.thread_id) == (run.request_id, thread_id)


async def test_the_model_is_told_what_a_person_edited(make_agent: MakeAgent, model: MockModelServer) -> None:
    async def edit(request: PendingApproval) -> None:
        await request.accept({"code": "'edited'"})

    async with make_agent() as agent:
        result = await run_one(agent, model, "'mine'", on_approval=edit)

    assert [(run.code, run.text) for run in runs(result)] == [("'edited'", "'edited'")]
    assert "'edited'" in told(model.requests[1])
    assert "edited the code" in told(model.requests[1])


async def test_declined_code_does_not_run_and_the_model_hears_why(
    make_agent: MakeAgent, model: MockModelServer
) -> None:
    async def reject(request: PendingApproval) -> None:
        await request.reject("not on a Friday")

    async with make_agent() as agent:
        result = await run_one(agent, model, "1", on_approval=reject)

    assert [run.status for run in runs(result)] == [ItemStatus.DECLINED]
    assert "not on a Friday" in told(model.requests[1])


async def test_without_anybody_to_ask_nothing_runs(make_agent: MakeAgent, model: MockModelServer) -> None:
    async with make_agent() as agent:
        result = await run_one(agent, model, "1")

    assert [run.status for run in runs(result)] == [ItemStatus.DECLINED]
    assert "on_approval" in told(model.requests[1])


async def test_deny_all_refuses_what_would_ask_and_lets_what_a_rule_allows(
    make_agent: MakeAgent, model: MockModelServer, servers: Path, database: str
) -> None:
    code = "from jupyter_agentbox import tools\ntools.mini.add(a=1, b=2)"
    async with make_agent(approval_mode=ApprovalMode.DENY_ALL, policy=ALLOWED, mcp_config_path=servers) as agent:
        result = await run_one(agent, model, code, on_approval=lambda _: True)

    assert [run.status for run in runs(result)] == [ItemStatus.FAILED]
    assert "deny_all" in told(model.requests[1])
    assert [(one.call.qualified_name, one.status) for one in await recorded(database)] == [
        ("notebook.run_code", Status.APPROVED),
        ("mini.add", Status.REJECTED),
    ]


async def test_a_rule_stands_above_the_mode(make_agent: MakeAgent, model: MockModelServer) -> None:
    denied = Policy(rules=(Rule(server="notebook", tool="*", effect=Effect.DENY, layer=Layer.SITE, reason="not here"),))
    async with make_agent(policy=denied) as agent:
        result = await run_one(agent, model, "1", on_approval=lambda _: True)

    assert [run.status for run in runs(result)] == [ItemStatus.DECLINED]
    assert "not here" in told(model.requests[1])


async def test_tool_calls_of_code_ask_for_themselves_and_carry_the_thread(
    make_agent: MakeAgent, model: MockModelServer, servers: Path, database: str
) -> None:
    code = "from jupyter_agentbox import tools\ntools.mini.add(a=1, b=2)"
    async with make_agent(mcp_config_path=servers) as agent:
        result = await run_one(agent, model, code, on_approval=lambda _: True)
        (thread,) = (await agent.thread_list()).data

    calls = [item for item in result.items if isinstance(item, ToolCallItem)]
    assert [(call.server, call.tool, call.status) for call in calls] == [("mini", "add", ItemStatus.COMPLETED)]
    assert told(model.requests[1]) == "'3'"
    assert {one.call.origin.thread_id for one in await recorded(database)} == {thread.id}


async def test_of_many_tool_calls_the_first_are_listed_and_all_ask(
    make_agent: MakeAgent, model: MockModelServer, servers: Path, database: str
) -> None:
    code = "from jupyter_agentbox import tools\nsum(int(tools.mini.add(a=n, b=1)) for n in range(4))"
    async with make_agent(mcp_config_path=servers, limits=TurnLimits(calls=2)) as agent:
        result = await run_one(agent, model, code, on_approval=lambda _: True)

    assert told(model.requests[1]) == "10"
    assert [type(item).__name__ for item in result.items if isinstance(item, ToolCallItem | Notice)] == [
        "ToolCallItem",
        "ToolCallItem",
        "Notice",
    ]
    assert len(await recorded(database)) == 5


async def test_a_model_finds_tools_and_variables(make_agent: MakeAgent, model: MockModelServer, servers: Path) -> None:
    model.enqueue_tool_call("run_code", {"code": "import math\nnames = ['a', 'b']\nsecret = 's3cret'"})
    model.enqueue_tool_call("list_variables", {})
    model.enqueue_tool_call("search_tools", {"query": "add numbers"})
    model.enqueue_tool_call("describe_tool", {"server": "mini", "tool": "add"})
    model.enqueue_tool_call("describe_tool", {"server": "mini", "tool": "nothing"})
    model.enqueue_tool_call("read_cells", {})
    model.enqueue_message("found")
    async with make_agent(policy=ALLOWED, mcp_config_path=servers) as agent:
        await (await agent.thread_start()).run("look")

    heard = [told(request) for request in model.requests[2:]]
    assert heard[0] == "names: list, length 2\nsecret: str, length 6"
    assert heard[1].startswith("mini.add")
    assert "def add(" in heard[2]
    assert "tools.mini.add" in heard[2]
    assert "no tool `nothing`" in heard[3]
    assert "did not share" in heard[4]


async def test_interrupting_withdraws_what_waits_and_ends_what_runs(
    make_agent: MakeAgent, model: MockModelServer, database: str
) -> None:
    async with make_agent() as agent, asyncio.timeout(2 * TIMEOUT):
        thread = await agent.thread_start()
        model.enqueue_tool_call("run_code", {"code": "waits = True"})
        turn = await thread.turn("go")
        async for event in turn.stream():
            if isinstance(event, ApprovalRequested):
                break
        waiting = await turn.interrupt()
        model.enqueue_tool_call("run_code", {"code": "import time\nran = True\ntime.sleep(600)"})
        turn = await thread.turn("go")
        async for event in turn.stream():
            if isinstance(event, ApprovalRequested):
                await event.request.accept()
                break
        running = await turn.interrupt()
        model.enqueue_tool_call("run_code", {"code": "'waits' in globals()"})
        model.enqueue_message("done")
        after = await thread.run("go on", on_approval=lambda _: True)

    assert [result.status for result in (waiting, running)] == [TurnStatus.INTERRUPTED] * 2
    assert [run.status for result in (waiting, running) for run in runs(result)] == [ItemStatus.INTERRUPTED] * 2
    assert [run.text for run in runs(after)] == ["False"]
    assert [one.status for one in await recorded(database)] == [Status.CANCELLED, Status.APPROVED, Status.APPROVED]


async def test_the_time_of_a_turn_stands_still_while_a_person_thinks(
    make_agent: MakeAgent, model: MockModelServer, let_time_pass: Callable[[float], None]
) -> None:
    async def think(request: PendingApproval) -> None:
        let_time_pass(1000)
        await request.accept()

    async with make_agent(limits=TurnLimits(seconds=100)) as agent:
        thread = await agent.thread_start()
        model.enqueue_tool_call("run_code", {"code": "1"})
        model.enqueue_message("started")
        await thread.run("start the kernel", on_approval=lambda _: True)
        model.enqueue_tool_call("run_code", {"code": "2"})
        model.enqueue_message("done")
        result = await thread.run("go", on_approval=think)

    assert (result.status, result.final_response) == (TurnStatus.COMPLETED, "done")


async def test_a_kernel_that_dies_is_told_and_the_turn_goes_on_in_a_new_one(
    make_agent: MakeAgent, model: MockModelServer
) -> None:
    model.enqueue_tool_call("run_code", {"code": "x = 1\nimport os\nos._exit(3)"})
    async with make_agent(policy=ALLOWED) as agent:
        result = await run_one(agent, model, "'x' in globals()")

    assert result.status is TurnStatus.COMPLETED
    assert [(run.status, run.text) for run in runs(result)] == [
        (ItemStatus.FAILED, ""),
        (ItemStatus.COMPLETED, "False"),
    ]
    assert "with status 3" in told(model.requests[1])
    assert "all variables" in told(model.requests[1])


async def test_the_key_is_in_no_kernel_and_code_there_starts_no_agents(
    make_agent: MakeAgent, model: MockModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    code = (
        "import os\nprint('sk-secret' in str(dict(os.environ)))\n"
        "from jupyter_agentbox import AsyncAgent\nAsyncAgent('openai:x', api_key='k')"
    )
    async with make_agent(policy=ALLOWED) as agent:
        result = await run_one(agent, model, code)

    (run,) = runs(result)
    assert (run.status, run.text) == (ItemStatus.FAILED, "False")
    assert "cannot start agents" in run.error


async def test_long_outputs_are_cut_for_the_model_and_whole_in_the_record(
    make_agent: MakeAgent, model: MockModelServer
) -> None:
    async with make_agent(policy=ALLOWED, limits=TurnLimits(output_characters=100)) as agent:
        result = await run_one(agent, model, "print('a' * 10_000)")

    assert len(runs(result)[0].text) == 10_000
    assert "9,900 characters left out" in told(model.requests[1])


def test_a_program_without_an_event_loop_does_the_same(
    make_agent: MakeAgent, model: MockModelServer, database: str
) -> None:
    options: dict[str, Any] = {"base_url": model.base_url, "database_url": database}
    with Agent(model="openai:scripted", **options) as agent:
        thread = agent.thread_start(name="sync")
        model.enqueue_tool_call("run_code", {"code": "6 * 7"})
        model.enqueue_message("42", "final_answer")
        result = thread.run("go", on_approval=lambda request: request.tool_args == {"code": "6 * 7"})
        model.enqueue_tool_call("run_code", {"code": "7 * 7"})
        model.enqueue_message("49", "final_answer")
        ended = []
        for event in thread.turn("again").stream():
            if isinstance(event, ApprovalRequested):
                event.request.accept({"code": "8 * 8"})  # type: ignore[unused-coroutine]  # it blocks here
            elif isinstance(event, ItemCompleted) and isinstance(event.item, CodeRun):
                ended.append(event.item.text)
        model.enqueue_message("no", is_held=True)
        turn = thread.turn("stop")
        interrupted = turn.interrupt()
        fork = agent.thread_fork(thread.id)

        assert result.final_response == "42"
        assert ended == ["64"]
        assert interrupted.status is TurnStatus.INTERRUPTED
        assert [one.name for one in agent.thread_list().data] == ["sync", "sync"]
        assert len(fork.read(include_turns=True).turns) == 3
        agent.thread_archive(fork.id)
        agent.thread_unarchive(fork.id).set_name("copy")
        agent.thread_delete(thread.id)
        assert [one.name for one in agent.thread_list().data] == ["copy"]
    with pytest.raises(RuntimeError, match="with"):
        agent.thread_start()


async def test_the_model_is_told_what_a_terminal_shows_in_the_end(
    make_agent: MakeAgent, model: MockModelServer
) -> None:
    model.enqueue_tool_call("run_code", {"code": "print('10 %\\r\\x1b[32m100 %\\x1b[0m')"})
    model.enqueue_message("done")
    async with make_agent(policy=ALLOWED) as agent:
        await (await agent.thread_start()).run("go")

    assert told(model.requests[1]) == "100 %"
