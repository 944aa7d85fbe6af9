"""A Jupyter server that is killed, or stopped, in the middle of an agent's turn, and started again."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from jupyter_agentbox.testing import MockModelServer

from .conftest import TIMEOUT, Server, start_server
from .test_agent_cell import RUN_CODE, asked, notebook_kernel, outputs_told

#: Notes each run, and then goes on for long.
CODE = "with open({path!r}, 'a') as file: file.write('ran ')\nimport time; print('begun', flush=True); time.sleep(600)"


@asynccontextmanager
async def started(root: Path, model: MockModelServer) -> AsyncIterator[Server]:
    options = ("--AgentBoxApp.agent_model=openai:scripted", f"--AgentBoxApp.agent_base_url={model.base_url}")
    server = await start_server(root, options=options)
    try:
        yield server
    finally:
        await server.stop()


@pytest.mark.parametrize(
    ("state", "end"),
    [
        ("the code is asked about", signal.SIGKILL),
        ("the code is asked about", signal.SIGTERM),
        ("code runs", signal.SIGKILL),
        ("the model thinks", signal.SIGKILL),
    ],
)
async def test_a_turn_whose_server_ends_is_interrupted_runs_nothing_twice_and_is_gone_on_with(
    tmp_path: Path, model: MockModelServer, state: str, end: signal.Signals
) -> None:
    model.reset()
    runs = tmp_path / "runs"
    if state == "the model thinks":
        model.enqueue_message("Never heard.", is_held=True)
    else:
        model.enqueue_tool_call(RUN_CODE, {"code": CODE.format(path=str(runs))})

    async with started(tmp_path, model) as first, notebook_kernel(first, "dies.ipynb") as kernel:
        pid = int((await kernel.run("import os; os.getpid()")).value or 0)
        cell = asyncio.create_task(kernel.run("%%agent --new\nGo"))
        async with asyncio.timeout(TIMEOUT):
            await asked(model, 1)
            if state != "the model thinks":
                request = await first.pending(RUN_CODE)
            if state == "code runs":
                await first.decide(request)
                await kernel.printed("begun")
        first.hang_up()
        first.process.send_signal(end)
        await first.process.wait()
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)  # it would soon have ended itself
        cell.cancel()

    had_run = runs.exists()
    model.release()
    async with started(tmp_path, model) as second, notebook_kernel(second, "dies.ipynb") as kernel:
        (entry,) = (await second.api("GET", "jupyter-agentbox/threads"))[1]["threads"]
        read = (await second.api("GET", f"jupyter-agentbox/threads/{entry['id']}"))[1]
        waiting = (await second.api("GET", "jupyter-agentbox/approvals?status=pending"))[1]["approvals"]
        shown = (await kernel.run("%agent show")).stdout
        model.enqueue_message("Still here.", "final_answer")
        after = await kernel.run("%%agent\nAre you there?")

    (turn,) = read["turns"]
    assert (entry["state"], turn["status"]) == ("idle", "interrupted")
    assert [item.get("status", "interrupted") for item in turn["items"]] == ["interrupted"] * len(turn["items"])
    assert (after.error, waiting) == (None, [])
    assert model.requests[-1].user_texts() == ["Go", "Are you there?"]
    assert had_run == (state == "code runs")
    assert not had_run or runs.read_text() == "ran "
    if state != "the model thinks":
        assert [item["type"] for item in turn["items"]] == ["user_message", "code_run"]
        assert f"Code (interrupted):\n    with open({str(runs)!r}" in shown
        assert outputs_told(model) == ["The tool call was interrupted before a result was produced."]
