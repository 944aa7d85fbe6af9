"""What a turn says of the calls that its code makes: true statuses, and all calls, whoever decided."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from jupyter_agentbox import ApprovalMode
from jupyter_agentbox.agents.threads.call_log import CallLog
from jupyter_agentbox.agents.threads.ports import PendingApproval, ToolCallBegan, ToolCallEnded
from jupyter_agentbox.core.approvals import Answer, ApprovalRequest, Lapse, Outcome, OutcomeState
from jupyter_agentbox.core.hub_reviews import HubReview
from jupyter_agentbox.core.policy import Effect, Layer, Policy, Rule
from jupyter_agentbox.core.threads import ItemStatus, ToolCallItem, TurnErrorCode, TurnStatus
from jupyter_agentbox.testing import TIMEOUT, MockModelServer
from tests.samples import a_decision, a_request

from .conftest import MakeAgent
from .test_code import ALLOWED, recorded, run_one, runs, told

TRY = """\
from jupyter_agentbox import tools
def attempt(call, **arguments):
    try:
        return call(**arguments)
    except Exception as error:
        return type(error).__name__
"""


def calls(result: Any) -> list[tuple[str, ItemStatus]]:
    return [(item.tool, item.status) for item in result.items if isinstance(item, ToolCallItem)]


async def test_a_call_has_the_status_of_its_outcome_and_not_of_its_approval(
    make_agent: MakeAgent, model: MockModelServer, servers: Path
) -> None:
    code = f"{TRY}[attempt(tools.mini.fail), attempt(tools.mini.add, a=1, b=2), attempt(tools.mini.pid)]"
    async with make_agent(policy=ALLOWED, mcp_config_path=servers) as agent:
        result = await run_one(agent, model, code, on_approval=lambda request: request.tool_name != "pid")

    assert [run.status for run in runs(result)] == [ItemStatus.COMPLETED]
    assert calls(result) == [
        ("fail", ItemStatus.FAILED),
        ("add", ItemStatus.COMPLETED),
        ("pid", ItemStatus.DECLINED),
    ]


async def test_calls_that_rules_decide_are_listed_too(
    make_agent: MakeAgent, model: MockModelServer, servers: Path, database: str
) -> None:
    rules = (
        Rule(server="mini", tool="add", effect=Effect.ALLOW),
        Rule(server="mini", tool="pid", effect=Effect.DENY, layer=Layer.SITE, reason="not here"),
    )
    code = f"{TRY}[attempt(tools.mini.add, a=1, b=2), attempt(tools.mini.pid)]"
    async with make_agent(policy=ALLOWED.with_rules(rules), mcp_config_path=servers) as agent:
        result = await run_one(agent, model, code)

    assert calls(result) == [("add", ItemStatus.COMPLETED), ("pid", ItemStatus.DECLINED)]
    requests = {one.call.tool: one.id for one in await recorded(database)}
    items = [item for item in result.items if isinstance(item, ToolCallItem)]
    assert {item.tool: item.request_id for item in items} == {name: requests[name] for name in ("add", "pid")}
    assert [run.request_id for run in runs(result)] == [requests["run_code"]]


IN_BACKGROUND = """\
import pathlib, threading
from jupyter_agentbox import tools
place = pathlib.Path({place!r})
calling = threading.Thread(target=tools.mini.add, kwargs={{"a": 1, "b": 2}})
calling.start()
(place / "asked").read_bytes()
"""


async def test_a_call_that_outlasts_the_code_that_made_it_is_listed_once(
    make_agent: MakeAgent, model: MockModelServer, servers: Path, tmp_path: Path
) -> None:
    async def decide(_request: PendingApproval) -> bool:
        await asyncio.to_thread((tmp_path / "asked").write_bytes, b"")
        await asyncio.to_thread((tmp_path / "next").read_bytes)
        return True

    for name in ("asked", "next"):  # each end of a pipe waits for the other
        os.mkfifo(tmp_path / name)

    model.enqueue_tool_call("run_code", {"code": IN_BACKGROUND.format(place=str(tmp_path))})
    async with make_agent(policy=ALLOWED, mcp_config_path=servers) as agent, asyncio.timeout(2 * TIMEOUT):
        result = await run_one(agent, model, "(place / 'next').write_bytes(b''); calling.join()", on_approval=decide)

    assert [run.status for run in runs(result)] == [ItemStatus.COMPLETED] * 2
    assert calls(result) == [("add", ItemStatus.COMPLETED)]


async def test_a_kernel_that_does_not_start_fails_the_turn_as_the_kernel(
    make_agent: MakeAgent, model: MockModelServer, tmp_path: Path
) -> None:
    async with make_agent(policy=ALLOWED, working_dir=tmp_path / "nowhere") as agent:
        result = await run_one(agent, model, "1")

    assert (result.status, result.error.code) == (TurnStatus.FAILED, TurnErrorCode.KERNEL)
    assert "could not be started" in result.error.message


async def test_an_answer_that_takes_long_holds_up_no_other_and_ends_with_the_turn(
    make_agent: MakeAgent, model: MockModelServer, let_time_pass: Callable[[float], None]
) -> None:
    thinking, given_up = asyncio.Event(), asyncio.Event()

    async def think(_request: PendingApproval) -> None:
        thinking.set()
        let_time_pass(100)
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()

    async with make_agent(approval_timeout=100) as agent, asyncio.timeout(100 + 2 * TIMEOUT):
        result = await run_one(agent, model, "1", on_approval=think)

    assert thinking.is_set()
    assert given_up.is_set()
    assert (result.status, [run.status for run in runs(result)]) == (TurnStatus.COMPLETED, [ItemStatus.DECLINED])
    assert "in time" in told(model.requests[1])


async def test_only_true_accepts(make_agent: MakeAgent, model: MockModelServer) -> None:
    async with make_agent() as agent:
        result = await run_one(agent, model, "1", on_approval=lambda _: "no")

    assert [run.status for run in runs(result)] == [ItemStatus.DECLINED]


async def test_an_error_of_on_approval_interrupts_the_turn_and_comes_out_of_it(
    make_agent: MakeAgent, model: MockModelServer
) -> None:
    def fail(_request: PendingApproval) -> bool:
        raise LookupError("no such person")

    async with make_agent() as agent:
        with pytest.raises(LookupError, match="no such person"):
            await run_one(agent, model, "1", on_approval=fail)
        (thread,) = (await agent.thread_list()).data
        (turn,) = (await (await agent.thread_resume(thread.id)).read(include_turns=True)).turns

    assert turn.status is TurnStatus.INTERRUPTED


async def test_without_rules_deny_all_runs_nothing_and_asks_nobody(
    make_agent: MakeAgent, model: MockModelServer, database: str
) -> None:
    asked: list[PendingApproval] = []
    async with make_agent(policy=Policy()) as agent:
        thread = await agent.thread_start()
        model.enqueue_tool_call("run_code", {"code": "1"})
        model.enqueue_message("done")
        result = await thread.run("go", approval_mode=ApprovalMode.DENY_ALL, on_approval=asked.append)

    assert asked == []
    assert [run.status for run in runs(result)] == [ItemStatus.DECLINED]
    assert "deny_all" in told(model.requests[1])
    (request,) = await recorded(database)
    assert request.evaluation.rule is not None
    assert (request.evaluation.rule.layer, request.decision) == (Layer.THREAD, None)


def approved(*states: OutcomeState, review: HubReview | None = None) -> list[ApprovalRequest]:
    """Return a request that waits, and what it is after each state of its outcome, with the Hub's review of it."""
    request = a_request()
    steps = [request, request.decide(a_decision(request, Answer.ALLOW_ONCE))]
    for state in (OutcomeState.RUNNING, *states):
        steps.append(steps[-1].with_outcome(Outcome(state=state, review=review)))
    return steps


@pytest.mark.parametrize(
    ("steps", "status"),
    [
        (approved(OutcomeState.SUCCEEDED), ItemStatus.COMPLETED),
        (approved(OutcomeState.FAILED), ItemStatus.FAILED),
        (approved(OutcomeState.CANCELLED), ItemStatus.INTERRUPTED),
        (approved(OutcomeState.FAILED, review=HubReview(status="rejected")), ItemStatus.DECLINED),
        (approved(OutcomeState.FAILED, review=HubReview(status="approved")), ItemStatus.FAILED),
        ([a_request(), a_request().lapse(Lapse.TIMED_OUT)], ItemStatus.DECLINED),
        ([a_request(), a_request().lapse(Lapse.WITHDRAWN)], ItemStatus.INTERRUPTED),
        ([a_request(), a_request().lapse(Lapse.KERNEL_LOST)], ItemStatus.INTERRUPTED),
    ],
)
def test_each_end_of_a_request_is_told_once(steps: Sequence[ApprovalRequest], status: ItemStatus) -> None:
    log = CallLog()
    events = [event for step in (*steps, steps[-1]) for event in log.changed(step)]

    assert events == [ToolCallEnded(request_id=steps[0].id, status=status)]
    assert log.open == []


def test_a_call_that_nobody_is_asked_about_begins_by_itself() -> None:
    log = CallLog()
    running = approved()[-1]

    assert log.changed(running) == [ToolCallBegan(request_id=running.id, server="shop", tool="delete_order")]
    assert log.open == [running.id]
