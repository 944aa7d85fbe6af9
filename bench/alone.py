"""What has no counterpart in the peer. Prints samples as JSON."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

from jupyter_agentbox import ApprovalRequest, AsyncAgent, CodeExecutor
from jupyter_agentbox.composition import Settings, build
from jupyter_agentbox.core.approvals import ApprovalRequest as StoredRequest
from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.core.policy import Effect, Policy, Rule
from jupyter_agentbox.headless.agent import AsyncThread
from jupyter_agentbox.storage.approvals import sqlite_url
from jupyter_agentbox.testing import MockModelServer, ModelRequest

#: Of `main`'s parts, those to do, with commas between; all if it is empty.
PARTS = os.environ.get("BENCH_ALONE", "")
SERVER = Path(__file__).with_name("server.py")
PENDING = """
import asyncio
from jupyter_agentbox import tools
add = tools.mini.add
results = await asyncio.gather(*(add.aio(a=i, b=0) for i in range(1000)))
"""
IN_CELL = """
import time
from jupyter_agentbox import tools
add = tools.mini.add
add(a=0, b=0)
samples = []
for i in range(20):
    begin = time.perf_counter()
    add(a=i, b=i)
    samples.append((time.perf_counter() - begin) * 1000)
print(samples)
"""
ONE_SECOND = "import time; time.sleep(1)"
#: The libraries that make agents, as if they were not installed.
HIDDEN = "import sys; sys.modules.update(dict.fromkeys(['pydantic_ai', 'openai', 'anthropic', 'keyring']))\n"
SERVER_IMPORT = """
import json, pathlib, sys, time
import jupyter_server.serverapp
begin = time.perf_counter()
import jupyter_agentbox.app.extension
took = (time.perf_counter() - begin) * 1000
lines = pathlib.Path("/proc/self/smaps_rollup").read_text().splitlines()
memory = next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
heavy = ["pydantic_ai", "openai", "anthropic", "keyring", "jupyter_agentbox.agent_composition"]
loaded = [name for name in heavy if sys.modules.get(name) is not None]
print(json.dumps([took, memory, loaded]))
"""
FIVE_MEGABYTES = "print('x' * 5_000_000)"

samples: dict[str, list[float]] = defaultdict(list)


class Silent:
    """An `Announcer` that nobody listens to."""

    def approval_changed(self, request: StoredRequest) -> None:
        """Do nothing."""

    def servers_changed(self) -> None:
        """Do nothing."""

    def questions_changed(self) -> None:
        """Do nothing."""

    def grants_changed(self) -> None:
        """Do nothing."""


def nothing(_request: StoredRequest) -> None:
    """Take note of nothing."""


def milliseconds_since(begin: float) -> float:
    return (time.perf_counter() - begin) * 1000


async def calls(config: Path, root: Path) -> None:
    """What deciding, recording and the kernel add to a call that needs no asking, each in turn."""
    settings = Settings(mcp_config_path=(config,), database_url=sqlite_url(str(root / "calls.sqlite")))
    policy = Policy((Rule(server="mini", tool="*", effect=Effect.ALLOW),))
    box = build(settings, announcer=Silent(), policy=policy)
    await box.start()
    call = ToolCall(server="mini", tool="add", arguments={"a": 1, "b": 2})
    await box.tools.call_tool(call)
    async with CodeExecutor(mcp_config_path=config, approve_tool_calls=False) as executor:
        await executor.execute(IN_CELL)
        for _ in range(20):
            for _ in range(20):
                begin = time.perf_counter()
                await box.tools.call_tool(call)
                samples["bare MCP call"].append(milliseconds_since(begin))
            for _ in range(20):
                begin = time.perf_counter()
                await box.calls.run(replace(call), on_waiting=nothing, on_running=nothing)
                samples["the same, allowed by a rule and recorded"].append(milliseconds_since(begin))
            result = await executor.execute(IN_CELL)
            samples["the same, from a cell"] += json.loads(result.text or "")
    await box.aclose()


async def pending() -> None:
    async with CodeExecutor() as executor:
        await executor.execute("from jupyter_agentbox import tools; tools.mini.add(a=1, b=2)")
        begin = time.perf_counter()
        waiting: list[ApprovalRequest] = []
        async for item in executor.stream(PENDING):
            if isinstance(item, ApprovalRequest):
                waiting.append(item)
            if len(waiting) == 1000:
                samples["1,000 requests pending"].append(milliseconds_since(begin))
                begin = time.perf_counter()
                await asyncio.gather(*(request.accept() for request in waiting))
                waiting.clear()
        samples["1,000 requests decided and run"].append(milliseconds_since(begin))


async def kernels() -> None:
    begin = time.perf_counter()
    executors = [CodeExecutor() for _ in range(20)]
    try:
        await asyncio.gather(*(executor.start() for executor in executors))
        results = await asyncio.gather(*(executor.execute("6 * 7") for executor in executors))
        assert [result.text for result in results] == ["42"] * 20
        samples["20 kernels at once, to the last result"].append(milliseconds_since(begin))
    finally:
        await asyncio.gather(*(executor.stop() for executor in executors))


async def large_outputs() -> None:
    async with CodeExecutor() as executor:
        for name, setup in (("without", "1"), ("with", "from jupyter_agentbox import tools; tools.mini.add(a=1, b=2)")):
            await executor.execute(setup)
            for _ in range(10):
                begin = time.perf_counter()
                await executor.execute(FIVE_MEGABYTES)
                samples[f"5 MB printed, {name} tools in use"].append(milliseconds_since(begin))


async def agents() -> None:
    """What a turn adds to the code that it runs, and many turns at once."""
    policy = Policy((Rule(server="notebook", tool="run_code", effect=Effect.ALLOW),))
    model = ScriptedModel()
    with model.server:
        async with AsyncAgent("openai:scripted", base_url=model.server.base_url, policy=policy) as agent:
            thread = await agent.thread_start()
            await thread.run("1")
            model.from_code_to_output.clear()
            for _ in range(30):
                await thread.run("1")
            samples["from a model's code to its output, by a rule"] += model.from_code_to_output
            await at_once(agent)
    async with CodeExecutor() as executor:
        for _ in range(30):
            begin = time.perf_counter()
            await executor.execute("1")
            samples["the same code, run directly"].append(milliseconds_since(begin))


class ScriptedModel:
    """A model that answers what it is asked with that as code, and the output of code with a message.

    What it measures is from the moment at which an answer with code is about to be sent until the output has come back.
    """

    def __init__(self) -> None:
        self.server = MockModelServer(answer=self._answer)
        self.from_code_to_output: list[float] = []
        self._sent: dict[str, float] = {}

    def _answer(self, request: ModelRequest) -> list[Any]:
        last = request.json()["input"][-1]
        if last.get("type") == "function_call_output":
            self.from_code_to_output.append(milliseconds_since(self._sent.pop(last["call_id"])))
            return [self.server.message("done", "final_answer")]
        call = self.server.tool_call("run_code", {"code": request.user_texts()[-1]})
        self._sent[call.id] = time.perf_counter()
        return [call]


async def at_once(agent: AsyncAgent) -> None:
    """Twenty turns in twenty kernels, one after the other and then all at once: what each waits for the others."""
    threads = [await agent.thread_start() for _ in range(20)]
    for thread in threads:
        await thread.run("1")
    for thread in threads:
        begin = time.perf_counter()
        await thread.run(ONE_SECOND)
        samples["a turn whose code sleeps for 1 s, alone"].append(milliseconds_since(begin))

    async def timed(thread: AsyncThread) -> None:
        begin = time.perf_counter()
        await thread.run(ONE_SECOND)
        samples["the same, 20 at once in 20 kernels"].append(milliseconds_since(begin))

    await asyncio.gather(*(timed(thread) for thread in threads))


async def server() -> None:
    """What agents cost a Jupyter server that uses none: with their libraries installed, and as if they were not."""
    for _ in range(5):
        for title, hidden in (("agents' libraries installed", ""), ("not installed", HIDDEN)):
            command = [sys.executable, "-c", hidden + SERVER_IMPORT]
            done = await asyncio.to_thread(subprocess.run, command, stdout=-1, text=True, check=True)
            took, megabytes, loaded = json.loads(done.stdout.splitlines()[-1])
            assert not loaded, f"a server that uses no agent has imported {loaded}"
            samples[f"import of the extension, {title}"].append(took)
            samples[f"memory then (MB), {title}"].append(megabytes)


async def main(root: Path) -> None:
    """Do the work."""
    config = root / "config" / "mcp.json"
    config.parent.mkdir()
    config.write_text(json.dumps({"mcpServers": {"mini": {"command": sys.executable, "args": [str(SERVER), "1"]}}}))
    for name, part in {
        "calls": calls(config, root),
        "pending": pending(),
        "kernels": kernels(),
        "outputs": large_outputs(),
        "agents": agents(),
        "server": server(),
    }.items():
        if PARTS and name not in PARTS.split(","):
            part.close()
        else:
            await part


if __name__ == "__main__":
    root = Path(tempfile.mkdtemp(prefix="bench-"))
    os.chdir(root)
    for place in ("CONFIG", "DATA", "RUNTIME"):
        os.environ[f"JUPYTER_{place}_DIR"] = str(root / place.lower())
    asyncio.run(main(root))
    print(json.dumps(samples))
