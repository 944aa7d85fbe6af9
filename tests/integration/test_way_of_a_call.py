"""The way of a call: a real server, a real kernel, a real MCP server, a person over REST."""

from __future__ import annotations

import asyncio

from .conftest import TIMEOUT, Cell, Server


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


def lines_of(cell: Cell) -> list[str]:
    """The lines of a cell's calls as they were shown last."""
    lines: list[str] = cell.updates[-1]["text/plain"].splitlines()
    return lines


async def test_many_calls_are_withdrawn_by_one_interrupt_and_their_cell_says_so_before_it_ends(
    server: Server, ipykernel: str
) -> None:
    count = 60
    code = f"""
import asyncio
from jupyter_agentbox import tools
await asyncio.gather(*(tools.shop.get_order.aio(order_id=1000 + number) for number in range({count})))
"""
    waiting: list[str] = []
    async with server.kernel("many.ipynb", ipykernel) as kernel:
        cell = asyncio.create_task(kernel.run(code))
        async for approvals in server.pending_requests():
            waiting += [approval["id"] for approval in approvals]
            if len(waiting) == count:
                break
        async with asyncio.timeout(TIMEOUT):
            await kernel.shows(lambda cell: bool(cell.updates) and len(lines_of(cell)) == count)
        await server.api("POST", f"api/kernels/{kernel.id}/interrupt", {})
        done = await cell
        ended = [await server.approval(lambda found, id=id: found["id"] == id and found["ended_at"]) for id in waiting]

    [output] = done.displays
    assert output["application/vnd.jupyter-agentbox.request+json"]["request_id"] in waiting
    assert [line.endswith("withdrawn") for line in lines_of(done)] == [True] * count
    assert len(done.updates) < count
    assert [request["status"] for request in ended] == ["cancelled"] * count
    _, audit = await server.api("GET", "jupyter-agentbox/audit?notebook_path=many.ipynb&status=cancelled&limit=500")
    assert {record["id"] for record in audit["records"]} >= set(waiting)
