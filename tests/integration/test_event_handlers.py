"""The events of a server reach the handlers that an administrator configures for Jupyter's events."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from .conftest import TIMEOUT, start_server

APPROVAL = "https://events.jupyter-agentbox.org/approval/v1"
SECRET = "hunter2hunter2"
CODE = f"""
from jupyter_agentbox import tools
tools.shop.query(sql="select '{SECRET}'")
"""


async def written(path: Path, **wanted: Any) -> dict[str, Any]:
    """Wait until an event with these fields is in the file, and return it."""
    async with asyncio.timeout(TIMEOUT):
        while True:
            for event in map(json.loads, path.read_text().splitlines()):
                if wanted.items() <= event.items():
                    return dict(event)
            await asyncio.sleep(0.05)


async def test_what_becomes_of_a_call_is_written_by_a_handler_of_the_administrator(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "jupyter_server_config.py").write_text(
        f"import logging\nc.EventLogger.handlers = [logging.FileHandler({str(path)!r})]\n"
    )
    server = await start_server(tmp_path)
    try:
        async with server.kernel("events.ipynb") as kernel:
            cell = asyncio.create_task(kernel.run(CODE))
            asked = await server.pending("query")
            waiting = await written(path, id=asked["id"], status="pending")
            await server.decide(asked)
            assert (await cell).error is None
            ended = await written(path, id=asked["id"], outcome="succeeded")
    finally:
        await server.stop()
    assert (waiting["__schema__"], waiting["kernel_id"], waiting["decision"]) == (APPROVAL, kernel.id, None)
    assert (ended["status"], ended["decision"], ended["via"]) == ("approved", "allow_once", "api_token")
    assert ended["reviewer"]
    assert ended["decided_at"] <= ended["ended_at"]
    assert SECRET not in path.read_text()
