"""The way of a call: a real server, a real kernel, a real MCP server, a person over REST."""

from __future__ import annotations

import asyncio

from .conftest import Server


async def test_call_waits_runs_and_gives_its_typed_result(server: Server, ipykernel: str) -> None:
    async with server.kernel("walk.ipynb", ipykernel) as kernel:
        cell = asyncio.create_task(
            kernel.run("from jupyter_agentbox import tools\norders = tools.shop.list_orders()\nlen(orders)", "cell-7")
        )
        approval = await server.pending("list_orders")
        assert (approval["call"]["kernel_id"], approval["call"]["notebook_path"], approval["call"]["cell_id"]) == (
            kernel.id,
            "walk.ipynb",
            "cell-7",
        )
        await server.decide(approval)
        done = await cell

    assert done.error is None
    assert int(done.value or 0) > 0
    ended = await server.approval(lambda found: found["id"] == approval["id"] and found["outcome"] is not None)
    assert ended["outcome"]["state"] == "succeeded"


async def test_calls_of_several_threads_wait_side_by_side(server: Server, ipykernel: str) -> None:
    code = """
from concurrent.futures import ThreadPoolExecutor
from jupyter_agentbox import tools
with ThreadPoolExecutor(4) as pool:
    orders = list(pool.map(lambda id: tools.shop.get_order(order_id=id)["id"], [1001, 1002, 1003, 1004]))
orders
"""
    async with server.kernel("walk.ipynb", ipykernel) as kernel:
        cell = asyncio.create_task(kernel.run(code))
        decided = 0
        async for approvals in server.pending_requests():
            for approval in approvals:
                await server.decide(approval)
            decided += len(approvals)
            if decided == 4:
                break
        done = await cell
    assert (done.error, done.value) == (None, "[1001, 1002, 1003, 1004]")
