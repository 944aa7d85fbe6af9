"""The approval modes and back ends of `%%agent`, in a real server and kernel."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from jupyter_agentbox.testing import MockModelServer

from .conftest import Server, for_one_test, server_in_thread
from .test_agent_cell import RUN_CODE, approve, last_turn, notebook_kernel, outputs_told, running

CALL = "from jupyter_agentbox import tools\nlen(tools.shop.list_orders())"
YES = json.dumps({"risk": "low", "outcome": "allow", "rationale": "It only reads."})


@pytest.fixture(scope="module")
def agent_server(model: MockModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    options = (
        "--AgentBoxApp.agent_model=openai:scripted",
        f"--AgentBoxApp.agent_base_url={model.base_url}",
        "--AgentBoxApp.agent_review_model=openai:careful",
        "--AgentBoxApp.agent_model_may_allow=notebook.run_code",
    )
    with server_in_thread(tmp_path_factory.mktemp("modes"), options) as started:
        yield started


@pytest.fixture
def server(
    agent_server: Server, model: MockModelServer, jp_asyncio_loop: asyncio.AbstractEventLoop
) -> Iterator[Server]:
    model.reset()
    with for_one_test(agent_server, jp_asyncio_loop) as lent:
        yield lent


async def approvals(server: Server, kernel_id: str) -> list[Any]:
    """Return the kernel's requests, the oldest first."""
    _, page = await server.api("GET", f"jupyter-agentbox/approvals?kernel_id={kernel_id}")
    return list(reversed(page["approvals"]))


def asked(model: MockModelServer) -> list[str]:
    """Return which models were asked, one after the other."""
    return [request.json()["model"] for request in model.requests]


async def test_deny_all_asks_nobody_and_is_the_threads_alone(server: Server, model: MockModelServer) -> None:
    model.enqueue_tool_call(RUN_CODE, {"code": CALL})
    model.enqueue_message("It is not allowed.")

    async with notebook_kernel(server, "deny.ipynb") as kernel:
        async with running(kernel, "%%agent --new --mode deny_all\nCount"):
            pass
        (request,) = await approvals(server, kernel.id)
        own = asyncio.create_task(kernel.run(CALL))
        await approve(server, "list_orders")
        value = (await own).value

    evaluation = request["evaluation"]
    assert (request["status"], evaluation["effect"]) == ("rejected", "deny")
    assert evaluation["rule"] == "thread: deny notebook.run_code"
    assert "deny_all" in outputs_told(model)[0]
    assert value is not None
    assert [item["status"] for item in (await last_turn(server))["items"] if item["type"] == "code_run"] == ["declined"]


async def test_a_model_reviews_code_and_a_person_the_calls_that_nothing_leaves_to_it(
    server: Server, model: MockModelServer
) -> None:
    model.enqueue_tool_call(RUN_CODE, {"code": CALL})
    model.enqueue_message(YES)
    model.enqueue_message("Counted.")

    async with notebook_kernel(server, "review.ipynb") as kernel:
        async with running(kernel, "%%agent --new --mode auto_review\nCount") as cell:
            await approve(server, "set_approval_mode")
            await approve(server, "list_orders")
        _, code, call = await approvals(server, kernel.id)

    assert cell.result().error is None
    assert asked(model) == ["scripted", "careful", "scripted"]
    decision = code["decision"]
    assert [decision[name] for name in ("decision", "reviewer", "reviewer_kind", "via", "reason")] == [
        "allow_once",
        "model:openai:careful",
        "model",
        "model",
        "It only reads.",
    ]
    assert call["decision"]["reviewer_kind"] == "user"
    assert [(item["type"], item["status"]) for item in (await last_turn(server))["items"] if "status" in item] == [
        ("code_run", "completed"),
        ("tool_call", "completed"),
    ]


async def test_code_in_which_the_analysis_finds_something_is_for_a_person(
    server: Server, model: MockModelServer
) -> None:
    model.enqueue_tool_call(RUN_CODE, {"code": "import subprocess\nsubprocess.run(['true'])"})
    model.enqueue_message("Done.")

    async with (
        notebook_kernel(server, "found.ipynb") as kernel,
        running(kernel, "%%agent --new --mode auto_review\nGo"),
    ):
        await approve(server, "set_approval_mode")
        await approve(server, RUN_CODE, "reject_once")

    assert asked(model) == ["scripted", "scripted"]


async def test_the_back_end_generate_writes_code_again_that_failed(server: Server, model: MockModelServer) -> None:
    model.enqueue_message("```python\nresults = {'n': 1 / 0}\nresults\n```")
    model.enqueue_message("```python\nresults = {'n': 42}\nresults\n```")

    async with notebook_kernel(server, "generate.ipynb") as kernel:
        async with running(kernel, "%%agent --new --mode ask --backend generate\nHow many?") as cell:
            await approve(server)
            await approve(server)
        kept = await kernel.run("results")

    assert cell.result().value == "{'n': 42}"
    assert kept.value == "{'n': 42}"
    turn = await last_turn(server)
    assert [item["status"] for item in turn["items"] if item["type"] == "code_run"] == ["failed", "completed"]
    assert "ZeroDivisionError" in model.requests[1].user_texts()[-1]
    assert turn["items"][-1]["phase"] == "final_answer"
    assert "{'n': 42}" in turn["items"][-1]["text"]
