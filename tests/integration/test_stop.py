"""A Jupyter server that is stopped while a call waits."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

from jupyter_agentbox.core.approvals import Status
from jupyter_agentbox.core.ports import ApprovalQuery
from jupyter_agentbox.storage.approvals import SqlApprovalStore, sqlite_url
from jupyter_agentbox.system import SystemClock

from .conftest import TIMEOUT, start_server

CALL = "from jupyter_agentbox import tools\ntools.shop.delete_order(order_id=1042)"


@pytest.mark.parametrize(
    "signals", [(signal.SIGTERM,), (signal.SIGINT,), (signal.SIGINT, signal.SIGTERM)], ids=["stop", "interrupt", "both"]
)
async def test_a_server_without_a_terminal_withdraws_what_waits_before_it_ends(
    tmp_path: Path, signals: tuple[signal.Signals, ...]
) -> None:
    """A JupyterHub sends an interrupt first, and a stop ten seconds later."""
    server = await start_server(tmp_path)
    async with server.kernel() as kernel:
        cell = asyncio.create_task(kernel.run(CALL))
        request = await server.pending("delete_order")
        server.hang_up()
        for number in signals:
            server.process.send_signal(number)
        async with asyncio.timeout(TIMEOUT):
            assert await server.process.wait() == 0
            await server.following
        cell.cancel()
    url = sqlite_url(str(tmp_path / "data" / "agentbox" / "approvals.sqlite"))
    async with SqlApprovalStore(url, clock=SystemClock()) as store:
        (kept,) = (await store.list(ApprovalQuery())).approvals
    assert (kept.id, kept.status) == (request["id"], Status.ORPHANED)
    assert "Interrupted..." not in (tmp_path / "server.log").read_text()
