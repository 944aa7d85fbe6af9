"""What code in a real kernel can do to the server, short of being stopped by the system."""

from __future__ import annotations

import asyncio
from pathlib import Path

from .conftest import Server, start_server


async def test_many_calls_that_expire_together_all_end(
    tmp_path: Path, jp_asyncio_loop: asyncio.AbstractEventLoop
) -> None:
    server = await start_server(tmp_path, options=("--AgentBoxApp.approval_timeout=2",))
    code = """
import asyncio
from jupyter_agentbox import tools
calls = [tools.shop.get_order.aio(order_id=1001) for _ in range(300)]
ended = await asyncio.gather(*calls, return_exceptions=True)
{type(error).__name__ for error in ended}
"""
    async with server.kernel() as kernel:
        assert (await kernel.run(code)).value == "{'ApprovalExpiredError'}"
    await server.stop()


async def test_arguments_that_are_too_large_are_refused_in_the_cell(server: Server) -> None:
    code = """
from jupyter_agentbox import tools
call = tools.shop.get_order.__globals__["_call"]
call("get_order", {"x": "y" * 40_000_000})
"""
    before = await server.api("GET", "jupyter-agentbox/approvals")
    async with server.kernel() as kernel:
        assert ((await kernel.run(code)).error or "").startswith("ToolArgumentsError")
        assert (await kernel.run("1 + 1")).value == "2"
    assert await server.api("GET", "jupyter-agentbox/approvals") == before
