"""What has no counterpart in the peer. Prints samples as JSON."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from jupyter_agentbox import ApprovalRequest, CodeExecutor
from jupyter_agentbox.core.calls import ToolCall
from jupyter_agentbox.mcp_client.servers import McpServers

SERVER = Path(__file__).with_name("server.py")
PENDING = """
import asyncio
from jupyter_agentbox import tools
add = tools.mini.add
results = await asyncio.gather(*(add.aio(a=i, b=0) for i in range(1000)))
"""
FIVE_MEGABYTES = "print('x' * 5_000_000)"

samples: dict[str, list[float]] = defaultdict(list)


def milliseconds_since(begin: float) -> float:
    return (time.perf_counter() - begin) * 1000


async def bare_calls(config: Path) -> None:
    """The floor: a call on the MCP session, with nothing of ours around it but the session's owner."""
    servers = McpServers(path=config)
    try:
        call = ToolCall(server="mini", tool="add", arguments={"a": 1, "b": 2})
        await servers.call_tool(call)
        for _ in range(200):
            begin = time.perf_counter()
            await servers.call_tool(call)
            samples["bare MCP call"].append(milliseconds_since(begin))
    finally:
        await servers.aclose()


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


async def main(root: Path) -> None:
    """Do the work."""
    config = root / "config" / "mcp.json"
    config.parent.mkdir()
    config.write_text(json.dumps({"mcpServers": {"mini": {"command": sys.executable, "args": [str(SERVER), "1"]}}}))
    await bare_calls(config)
    await pending()
    await kernels()
    await large_outputs()


if __name__ == "__main__":
    root = Path(tempfile.mkdtemp(prefix="bench-"))
    os.chdir(root)
    for place in ("CONFIG", "DATA", "RUNTIME"):
        os.environ[f"JUPYTER_{place}_DIR"] = str(root / place.lower())
    asyncio.run(main(root))
    print(json.dumps(samples))
