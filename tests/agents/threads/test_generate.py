"""Turns without a loop: code is written, analyzed, asked about and run, and written again if it fails."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_agentbox import ApprovalMode, AsyncAgent
from jupyter_agentbox.agents.threads.limits import TurnLimits
from jupyter_agentbox.agents.threads.ports import PendingApproval
from jupyter_agentbox.core.approvals import Status
from jupyter_agentbox.core.policy import Effect, Layer
from jupyter_agentbox.core.threads import ItemStatus, Notice, TurnErrorCode, TurnStatus
from jupyter_agentbox.testing import MockModelServer

from .conftest import MakeAgent
from .test_code import ALLOWED, recorded, runs


def accept(_request: PendingApproval) -> bool:
    return True


async def generate(agent: AsyncAgent, **options: Any) -> Any:
    thread = await agent.thread_start()
    return await thread.run("How many?", backend="generate", **options)


async def test_code_that_fails_is_written_again_with_what_went_wrong(
    make_agent: MakeAgent, model: MockModelServer, database: str
) -> None:
    model.enqueue_message("```python\nresults = {'n': 1 / 0}\nresults\n```")
    model.enqueue_message("```python\nresults = {'n': 42}\nresults\n```")
    async with make_agent() as agent:
        result = await generate(agent, on_approval=accept)

    assert result.status is TurnStatus.COMPLETED
    assert [(run.status, run.text) for run in runs(result)] == [
        (ItemStatus.FAILED, ""),
        (ItemStatus.COMPLETED, "{'n': 42}"),
    ]
    assert "ZeroDivisionError" in model.requests[1].user_texts()[-1]
    assert result.final_response == "The code ran at attempt 2. It showed:\n\n```text\n{'n': 42}\n```"
    requests = await recorded(database)
    assert [one.status for one in requests] == [Status.APPROVED] * 2
    assert [one.id for one in requests] == [run.request_id for run in runs(result)]
    assert result.usage.requests == 2


async def test_code_that_is_declined_is_not_written_again(make_agent: MakeAgent, model: MockModelServer) -> None:
    async def reject(request: PendingApproval) -> None:
        await request.reject("not on a Friday")

    model.enqueue_message("1")
    async with make_agent() as agent:
        result = await generate(agent, on_approval=reject)

    assert (result.status, [run.status for run in runs(result)]) == (TurnStatus.COMPLETED, [ItemStatus.DECLINED])
    assert "not on a Friday" in result.final_response
    assert len(model.requests) == 1


async def test_deny_all_holds_for_generated_code(make_agent: MakeAgent, model: MockModelServer) -> None:
    model.enqueue_message("1")
    async with make_agent(approval_mode=ApprovalMode.DENY_ALL) as agent:
        result = await generate(agent, on_approval=accept)

    assert [run.status for run in runs(result)] == [ItemStatus.DECLINED]
    assert "deny_all" in result.final_response


async def test_attempts_are_bounded_and_code_that_is_no_python_is_one(
    make_agent: MakeAgent, model: MockModelServer
) -> None:
    model.enqueue_message("def broken(")
    model.enqueue_message("1 / 0")
    async with make_agent(policy=ALLOWED, limits=TurnLimits(attempts=2)) as agent:
        result = await generate(agent)

    assert [item.code for item in result.items if isinstance(item, Notice)] == ["attempt"]
    assert [run.status for run in runs(result)] == [ItemStatus.FAILED]
    assert "ZeroDivisionError" in result.final_response
    assert len(model.requests) == 2


async def test_what_the_analysis_finds_asks_also_where_a_rule_allows(
    make_agent: MakeAgent, model: MockModelServer, database: str
) -> None:
    asked: list[PendingApproval] = []
    model.enqueue_message("import subprocess\nsubprocess.run(['true'])")
    async with make_agent(policy=ALLOWED) as agent:

        async def reject(request: PendingApproval) -> None:
            asked.append(request)
            await request.reject()

        await generate(agent, on_approval=reject)

    assert [request.tool_name for request in asked] == ["run_code"]
    (request,) = await recorded(database)
    assert request.evaluation.rule is not None
    assert (request.evaluation.effect, request.evaluation.rule.layer) == (Effect.ASK, Layer.SESSION)
    assert "static analysis" in request.evaluation.rule.reason


@pytest.mark.parametrize(("status", "code"), [(401, TurnErrorCode.MODEL), (400, TurnErrorCode.MODEL)])
async def test_a_model_that_cannot_be_asked_fails_the_turn(
    status: int, code: TurnErrorCode, make_agent: MakeAgent, model: MockModelServer
) -> None:
    model.enqueue_error(status)
    async with make_agent() as agent:
        result = await generate(agent)

    assert (result.status, result.error.code, len(model.requests)) == (TurnStatus.FAILED, code, 1)


async def test_a_limit_ends_the_turn(make_agent: MakeAgent, model: MockModelServer) -> None:
    model.enqueue_message("def broken(")
    async with make_agent(limits=TurnLimits(steps=1)) as agent:
        result = await generate(agent)

    assert (result.status, result.error.code) == (TurnStatus.FAILED, TurnErrorCode.LIMIT)


async def test_the_next_turn_knows_what_was_written_and_an_earlier_one_is_in_the_question(
    make_agent: MakeAgent, model: MockModelServer
) -> None:
    async with make_agent(policy=ALLOWED) as agent:
        thread = await agent.thread_start()
        model.enqueue_message("Hello Ada.")
        await thread.run("I am Ada.")
        model.enqueue_message("answer = 6 * 7\nanswer")
        await thread.run("How many?", backend="generate")
        model.enqueue_message("done")
        await thread.run("and now?")

    assert "I am Ada." in model.requests[1].user_texts()[-1]
    assert "answer = 6 * 7" in model.requests[2].body.decode()
    assert model.requests[2].user_texts() == ["I am Ada.", "How many?", "and now?"]


async def test_an_unknown_back_end_is_an_error_and_begins_no_turn(make_agent: MakeAgent) -> None:
    async with make_agent() as agent:
        thread = await agent.thread_start()
        with pytest.raises(ValueError, match="magic"):
            await thread.turn("go", backend="magic")
        assert (await thread.read(include_turns=True)).turns == ()
