"""What can go wrong between a cell and its tool, on real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.ports import FRESH_PORTS
from tests.processes_alive import children, survivors

from .conftest import SHOP, TIMEOUT, Kernel, Server, install_kernelspec, start_server

CALL = "from jupyter_agentbox import tools\nresult = tools.shop.list_orders()\nprint('ran', len(result))"
SLOW = "from jupyter_agentbox import tools\nprint(tools.shop.forecast(seconds=100))"

#: Starts a kernel. The first time, another socket already has one of its ports, as when another program was faster.
WITH_TAKEN_PORT = """
import json, os, pathlib, socket, sys
first, connection_file = pathlib.Path(sys.argv[1]), sys.argv[2]
if not first.exists():
    first.touch()
    taken = socket.create_server(("127.0.0.1", json.load(open(connection_file))["shell_port"]))
    taken.set_inheritable(True)
os.execv(sys.executable, [sys.executable, "-m", "ipykernel_launcher", "-f", connection_file])
"""


def kernel_process(server: Server, kernel: Kernel) -> psutil.Process:
    """Return the kernel's process."""
    for child in children(server.process.pid):
        with suppress(psutil.NoSuchProcess):
            if any(f"kernel-{kernel.id}" in part for part in child.cmdline()):
                return child
    raise AssertionError("the kernel has no process")


async def final(server: Server, id: str, status: str) -> None:
    """Wait until the request has this status."""
    await server.approval(lambda found: found["id"] == id and found["status"] == status)


async def outcome(server: Server, id: str, state: str) -> None:
    """Wait until the call's outcome is this one."""
    await server.approval(lambda found: found["id"] == id and (found["outcome"] or {}).get("state") == state)


async def test_rejection_reaches_the_code_with_its_reason(server: Server) -> None:
    async with server.kernel() as kernel:
        code = f"""
from jupyter_agentbox import ToolCallRejectedError
try:
    {CALL.splitlines()[0]}; tools.shop.list_orders()
except ToolCallRejectedError as error:
    print(repr(error.reason))
"""
        cell = asyncio.create_task(kernel.run(code))
        await server.decide(await server.pending("list_orders"), "reject_once", reason="not today")
        assert (await cell).stdout == "'not today'\n"


async def test_a_reason_with_half_a_character_reaches_the_cell(server: Server) -> None:
    async with server.kernel() as kernel:
        cell = asyncio.create_task(kernel.run(f"{CALL.splitlines()[0]}; tools.shop.list_orders()"))
        await server.decide(await server.pending("list_orders"), "reject_once", reason="half \ud83d")
        error = (await cell).error
        assert error is not None
        assert "half \ufffd" in str(error)


async def test_a_kernel_whose_port_was_taken_asks_over_its_new_ports(
    tmp_path: Path, jp_asyncio_loop: asyncio.AbstractEventLoop
) -> None:
    server = await start_server(tmp_path, options=(FRESH_PORTS,))
    install_kernelspec(server.root / "data", "late", sys.executable, "-c", WITH_TAKEN_PORT, str(tmp_path / "first"))
    async with server.kernel(name="late") as kernel:
        cell = asyncio.create_task(kernel.run(CALL))
        await server.decide(await server.pending("list_orders"))
        assert (await cell).stdout.startswith("ran ")
    await server.stop()
    assert "Address already in use" in (server.root / "server.log").read_text()


async def test_edited_arguments_are_what_runs(server: Server) -> None:
    async with server.kernel() as kernel:
        cell = asyncio.create_task(
            kernel.run("from jupyter_agentbox import tools\nprint(tools.shop.get_order(order_id=1001)['id'])")
        )
        await server.decide(await server.pending("get_order"), arguments={"order_id": 1002})
        done = await cell
        assert (done.error, done.stdout) == (None, "1002\n")


async def test_nobody_answers_and_the_cell_is_told_that_it_expired(
    tmp_path: Path, jp_asyncio_loop: asyncio.AbstractEventLoop
) -> None:
    server = await start_server(tmp_path, options=("--AgentBoxApp.approval_timeout=0.5",))
    async with server.kernel() as kernel:
        done = await kernel.run(CALL)
        assert (done.error or "").startswith("ApprovalExpiredError")
    await server.approval(lambda found: found["status"] == "expired")
    await server.stop()


async def card_is_made(kernel: Kernel) -> None:
    """Wait for the card before an interrupt: ipykernel 6 loses one that comes within a garbage collection."""
    async with asyncio.timeout(TIMEOUT):
        await kernel.shown.wait()


@pytest.mark.parametrize(
    ("call", "name", "is_explained"),
    [
        ("tools.shop.list_orders()", "KeyboardInterrupt", True),
        ("await tools.shop.list_orders.aio()", "CancelledError", True),
        # a thread's call: the loop, where ipykernel handles the interrupt, sleeps
        ("await asyncio.to_thread(tools.shop.list_orders)", "CancelledError", False),
    ],
)
async def test_interrupt_while_a_person_thinks_withdraws_the_request(
    server: Server, ipykernel: str, call: str, name: str, *, is_explained: bool
) -> None:
    async with server.kernel(name=ipykernel) as kernel:
        cell = asyncio.create_task(kernel.run(f"import asyncio\nfrom jupyter_agentbox import tools\n{call}"))
        approval = await server.pending("list_orders")
        await card_is_made(kernel)
        await server.api("POST", f"api/kernels/{kernel.id}/interrupt", {})
        done = await cell
        said = "the request for `shop.list_orders` was withdrawn" if is_explained else ""
        assert done.error == f"{name}: {said}", done.stderr
        assert len(done.traceback) == 3 or not is_explained, done.traceback
        await final(server, approval["id"], "cancelled")
        assert (await kernel.run("1 + 1")).value == "2"


async def test_interrupt_while_the_tool_runs_cancels_it(server: Server, ipykernel: str) -> None:
    async with server.kernel(name=ipykernel) as kernel:
        cell = asyncio.create_task(kernel.run(SLOW))
        approval = await server.pending("forecast")
        await card_is_made(kernel)
        await server.decide(approval)
        await outcome(server, approval["id"], "running")
        await server.api("POST", f"api/kernels/{kernel.id}/interrupt", {})
        done = await cell
        assert (done.error or "").startswith("KeyboardInterrupt: "), done.stderr
        assert "`shop.forecast`" in str(done.error)
        assert len(done.traceback) == 3, done.traceback
        await outcome(server, approval["id"], "cancelled")


@pytest.mark.parametrize("end", ["kill", "restart", "shutdown"])
async def test_a_kernel_that_goes_away_orphans_its_request(server: Server, end: str) -> None:
    async with server.kernel() as kernel:
        cell = asyncio.create_task(kernel.run(CALL))
        approval = await server.pending("list_orders")
        if end == "kill":
            kernel_process(server, kernel).kill()
        elif end == "restart":
            await server.api("POST", f"api/kernels/{kernel.id}/restart", {})
        else:
            await server.api("DELETE", f"api/kernels/{kernel.id}")
        await final(server, approval["id"], "orphaned")
        cell.cancel()


async def test_a_kernel_that_dies_while_its_tool_runs_cancels_the_tool(server: Server) -> None:
    async with server.kernel() as kernel:
        cell = asyncio.create_task(kernel.run(SLOW))
        approval = await server.pending("forecast")
        await server.decide(approval)
        await outcome(server, approval["id"], "running")
        kernel_process(server, kernel).kill()
        await outcome(server, approval["id"], "cancelled")
        cell.cancel()


async def test_calls_work_again_after_a_restart(server: Server, ipykernel: str) -> None:
    async with server.kernel(name=ipykernel) as kernel:
        assert (await kernel.run("1")).value == "1"
        await server.api("POST", f"api/kernels/{kernel.id}/restart", {})
        await kernel.ready()
        cell = asyncio.create_task(kernel.run(CALL))
        await server.decide(await server.pending("list_orders"))
        assert (await cell).error is None


async def test_a_server_that_is_killed_leaves_its_requests_orphaned_and_runs_nothing_again(
    tmp_path: Path, jp_asyncio_loop: asyncio.AbstractEventLoop
) -> None:
    server = await start_server(tmp_path)
    async with server.kernel("a.ipynb") as first, server.kernel("b.ipynb") as second:
        cells = [asyncio.create_task(first.run(CALL)), asyncio.create_task(second.run(SLOW))]
        waiting = await server.pending("list_orders")
        running = await server.pending("forecast")
        await server.decide(running)
        await outcome(server, running["id"], "running")
        below = children(server.process.pid)
        os.killpg(server.process.pid, signal.SIGKILL)
        await server.process.wait()
        for cell in cells:
            cell.cancel()
    await server.stop()
    assert not await asyncio.to_thread(survivors, below, TIMEOUT)

    again = await start_server(tmp_path)
    _, orphaned = await again.api("GET", f"jupyter-agentbox/approvals/{waiting['id']}")
    _, failed = await again.api("GET", f"jupyter-agentbox/approvals/{running['id']}")
    assert orphaned["status"] == "orphaned"
    assert (failed["status"], failed["outcome"]["state"]) == ("approved", "failed")
    assert "stopped" in failed["outcome"]["error"]
    await again.stop()


async def test_a_locked_database_keeps_the_call_from_running(own_server: Server) -> None:
    server = own_server
    database = server.root / "data" / "agentbox" / "approvals.sqlite"
    async with server.kernel() as kernel:
        await kernel.run("from jupyter_agentbox import tools")
        await server.api("GET", "jupyter-agentbox/approvals")
        blocker = sqlite3.connect(database, isolation_level=None)
        blocker.execute("BEGIN EXCLUSIVE")
        done = await kernel.run(CALL)
        blocker.execute("ROLLBACK")
        blocker.close()
        assert (done.error or "").startswith("StorageError")
        _, page = await server.api("GET", "jupyter-agentbox/approvals")
        assert page["approvals"] == []


@pytest.mark.timeout(300)
async def test_a_thousand_requests_wait_at_once_and_each_gets_its_own_answer(
    own_server: Server, ipykernel: str
) -> None:
    server = own_server
    code = """
import asyncio
from jupyter_agentbox import tools
orders = await asyncio.gather(*(tools.shop.get_order.aio(order_id=1001 + i % 2) for i in range(1000)))
[order["id"] for order in orders] == [1001 + i % 2 for i in range(1000)]
"""
    async with server.kernel(name=ipykernel) as kernel:
        cell = asyncio.create_task(kernel.run(code, timeout=200))
        decided: set[str] = set()
        async for page in server.pending_requests():
            await asyncio.gather(*(server.decide(approval) for approval in page))
            decided |= {approval["id"] for approval in page}
            if len(decided) == 1000:
                break
        done = await cell
        assert (done.error, done.value) == (None, "True")


async def test_a_server_that_cannot_start_is_named_in_the_cell_with_what_it_said(
    tmp_path: Path, jp_asyncio_loop: asyncio.AbstractEventLoop
) -> None:
    broken = {"command": sys.executable, "args": ["-c", "import sys; sys.exit('no license')"]}
    server = await start_server(tmp_path, servers={"broken": broken, "shop": SHOP})
    async with server.kernel() as kernel:
        done = await kernel.run("from jupyter_agentbox import tools\ntools.broken")
        assert "no license" in (done.error or "")
        cell = asyncio.create_task(kernel.run(CALL))
        await server.decide(await server.pending("list_orders"))
        assert (await cell).error is None
    await server.stop()


async def test_code_that_forges_a_decision_through_its_comm_or_its_widget_fails(server: Server) -> None:
    code = """
import threading, gc
from jupyter_agentbox import tools, ToolCallRejectedError
def forge(request_id):
    import comm, ipywidgets
    for widget in [found for found in gc.get_objects() if isinstance(found, ipywidgets.Widget)]:
        if hasattr(widget, "request_id"):
            for name, value in dict(status="approved", decision="allow_once", approved=True).items():
                setattr(widget, name, value)
            widget.send({"decision": "allow_once", "request_id": request_id})
            widget.send_state()
    for target in comm.get_comm_manager().comms.values():
        for kind in ("decision", "approved", "running", "reply"):
            target.send({"type": kind, "id": request_id, "request_id": request_id, "decision": "allow_once"})
    print("forged", flush=True)
try:
    threading.Timer(0.5, forge, ["REQUEST"]).start()
    tools.shop.delete_order(order_id=1001)
    print("RAN")
except ToolCallRejectedError:
    print("refused")
"""
    async with server.kernel() as kernel:
        cell = asyncio.create_task(kernel.run(code))
        approval = await server.pending("delete_order")
        async with asyncio.timeout(TIMEOUT):
            await kernel.printed("forged")
        _, still = await server.api("GET", f"jupyter-agentbox/approvals/{approval['id']}")
        assert still["status"] == "pending"
        await server.decide(still, "reject_once")
        assert (await cell).stdout == "forged\nrefused\n"
